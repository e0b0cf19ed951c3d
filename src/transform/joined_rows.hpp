// transform/joined_rows: fields of instances of several images as those of one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/transform/transform.hpp>

#include "src/jpeg/pixels/rows.hpp"

namespace penstock::transform {

/// Takes outputs of several images, one after another, and puts the rows of all in their place.
///
/// Usage  begin, then for each image outputs() are written; finish
class JoinedRows final : public Outputs::OutputAllocator {
 public:
  /// Of outputs with such rows, from number `first` on.
  void begin(std::size_t first, std::vector<FieldSpec> rows) {
    first_ = first;
    rows_ = std::move(rows);
    views_.assign(first + rows_.size(), TensorView{});
    if (bytes_.size() < rows_.size()) bytes_.resize(rows_.size());
    for (std::vector<std::byte>& bytes : bytes_) bytes.clear();
    counts_.assign(rows_.size(), 0);
  }
  [[nodiscard]] Outputs outputs() { return Outputs(std::span<const TensorView>(views_), this); }

  void resize(std::size_t output, const Shape& shape) override {
    const std::size_t field = output - first_;
    std::vector<std::byte>& bytes = bytes_[field];
    const std::size_t before = bytes.size();
    bytes.resize(before + FieldSpec{{}, rows_[field].dtype, shape}.bytes());
    views_[output] = TensorView(bytes.data() + before, rows_[field].dtype, shape);
    counts_[field] += shape[0];
  }

  /// Of the fields, in their order.
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept { return rows_; }
  /// Rows so far, as many in each field.
  [[nodiscard]] std::size_t count() const noexcept {
    return static_cast<std::size_t>(counts_.front());
  }
  /// One row of a field, to be read and changed.
  template <class T>
  [[nodiscard]] std::span<T> row(std::size_t field, std::size_t row) {
    const std::size_t bytes = rows_[field].bytes();
    return {reinterpret_cast<T*>(bytes_[field].data() + row * bytes), bytes / sizeof(T)};
  }
  /// Removes the rows of which `kept` is false.
  void keep(const std::vector<bool>& kept) {
    const auto left = std::ranges::count(kept, true);
    for (std::size_t field = 0; field < rows_.size(); ++field) {
      const std::size_t bytes = rows_[field].bytes();
      std::byte* to = bytes_[field].data();
      for (std::size_t row = 0; row < kept.size(); ++row) {
        if (!kept[row]) continue;
        if (bytes != 0) std::memmove(to, bytes_[field].data() + row * bytes, bytes);
        to += bytes;
      }
      bytes_[field].resize(static_cast<std::size_t>(left) * bytes);
      counts_[field] = left;
    }
  }

  /// Gives large scratch memory back.
  void trim() {
    for (std::vector<std::byte>& bytes : bytes_) jpeg::trim(bytes);
  }

  void finish(Outputs out) {
    for (std::size_t field = 0; field < rows_.size(); ++field) {
      const TensorView& to =
          out.resize(first_ + field, rows_[field].shape.with_rows(counts_[field]));
      if (!bytes_[field].empty()) std::memcpy(to.raw(), bytes_[field].data(), bytes_[field].size());
    }
  }

 private:
  std::size_t first_ = 0;
  std::vector<FieldSpec> rows_;
  std::vector<TensorView> views_;
  std::vector<std::int64_t> counts_;
  std::vector<std::vector<std::byte>> bytes_;
};

}  // namespace penstock::transform
