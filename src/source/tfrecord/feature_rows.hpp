// source/tfrecord/feature_rows: the rows that a field makes of values whose number differs between records.
//
// A feature is read twice: the first time counts and checks, so that memory is taken for what is there, the second time
// copies.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "src/source/tfrecord/example.hpp"

namespace penstock::source {

struct RowForm {
  FeatureKind kind = FeatureKind::none;  ///< of the values
  std::uint64_t row = 1;                 ///< values of a row; of bytes, the bytes of one value
  bool steps = false;       ///< rows are the steps of a feature list, and not one feature's values
  bool any_length = false;  ///< rows are of any length, whatever `row` is
};

/// "a multiple of 4 floats".
[[nodiscard]] inline std::string describe(const RowForm& form) {
  if (form.kind == FeatureKind::bytes) {
    const std::string size = form.any_length ? "bytes" : fmt::format("{} bytes", form.row);
    return form.steps ? fmt::format("one value of {} a step", size) : "values of " + size;
  }
  const std::string_view kind = name_of_kind(form.kind);
  if (form.any_length || (form.row == 1 && !form.steps)) return std::string(kind);
  return form.steps ? fmt::format("{} {} a step", form.row, kind)
                    : fmt::format("a multiple of {} {}", form.row, kind);
}

/// A sink of read_feature(), between begin_step() and end_step(), and of read_feature_list().
class RowSink {
 public:
  /// Counts and checks.
  explicit RowSink(const RowForm& form) noexcept : form_(form) {}
  /// Copies to `values`, and each row's length to `lengths`, as far as there is room. `data` is what ranges are of.
  RowSink(const RowForm& form, std::span<const std::byte> data, std::span<std::byte> values,
          std::span<std::int64_t> lengths) noexcept
      : form_(form), data_(data), values_(values), lengths_(lengths) {}

  void begin_step() noexcept { start(FeatureKind::none); }
  void start(FeatureKind found) noexcept {
    kind_ = found;
    count_ = 0;
    bytes_ = done_.bytes;
    unlike_.reset();
  }
  void bytes(WireRange range) noexcept {
    if (range.size() != form_.row && !unlike_) unlike_ = range.size();
    if (!form_.steps) put_length(done_.count + count_, range.size());
    put(values_.empty() ? nullptr : data_.data() + range.begin, range.size());
  }
  void number(std::uint64_t value) noexcept { put(&value, sizeof value); }
  void float_bits(std::uint32_t bits) noexcept { put(&bits, sizeof bits); }
  void end_step() {
    if (!wrong_) wrong_ = find_wrong();
    if (form_.steps)
      put_length(done_.steps, form_.kind == FeatureKind::bytes ? bytes_ - done_.bytes : count_);
    done_ = {done_.steps + 1, done_.count + count_, bytes_};
  }

  /// What was found in place of what describe() says, if anything.
  [[nodiscard]] const std::optional<std::string>& wrong() const noexcept { return wrong_; }
  [[nodiscard]] std::uint64_t rows() const noexcept {
    if (form_.steps) return done_.steps;
    return form_.kind == FeatureKind::bytes ? done_.count : done_.count / form_.row;
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return done_.bytes; }  ///< of all values

 private:
  struct Done {
    std::uint64_t steps = 0;
    std::uint64_t count = 0;  // of values
    std::uint64_t bytes = 0;
  };

  // What a later list of another kind makes void may be longer than what counts.
  void put(const void* from, std::uint64_t size) noexcept {
    ++count_;
    if (size > 0 && bytes_ <= values_.size() && size <= values_.size() - bytes_)
      std::memcpy(values_.data() + bytes_, from, size);
    bytes_ += size;
  }
  void put_length(std::uint64_t row, std::uint64_t length) noexcept {
    if (row < lengths_.size()) lengths_[row] = static_cast<std::int64_t>(length);
  }

  [[nodiscard]] std::optional<std::string> find_wrong() const {
    const bool is_bytes = form_.kind == FeatureKind::bytes;
    const auto at = [&](const std::string& found) {
      return form_.steps ? fmt::format("{} at step {}", found, done_.steps) : found;
    };
    if (kind_ != FeatureKind::none && kind_ != form_.kind)
      return at(std::string(name_of_kind(kind_)));
    const bool is_count_wrong =
        form_.steps ? count_ != (is_bytes ? 1 : form_.row) : !is_bytes && count_ % form_.row != 0;
    if (is_count_wrong && (is_bytes || !form_.any_length))
      return at(fmt::format("{} values", count_));
    if (is_bytes && !form_.any_length && unlike_)
      return at(fmt::format("a value of {} bytes", *unlike_));
    return std::nullopt;
  }

  RowForm form_;
  std::span<const std::byte> data_;
  std::span<std::byte> values_;
  std::span<std::int64_t> lengths_;
  FeatureKind kind_ = FeatureKind::none;
  std::uint64_t count_ = 0;              // values of this step
  std::uint64_t bytes_ = 0;              // up to here
  std::optional<std::uint64_t> unlike_;  // of this step's first value that has not form_.row bytes
  Done done_;
  std::optional<std::string> wrong_;
};

}  // namespace penstock::source
