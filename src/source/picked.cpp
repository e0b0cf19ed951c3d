#include "src/source/picked.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>

#include "src/core/call_text.hpp"
#include "src/source/composite.hpp"

namespace penstock::source {

namespace {

class Picked final : public Composite {
 public:
  Picked(SourcePtr source, std::shared_ptr<const std::vector<std::uint64_t>> numbers)
      : source_(std::move(source)), numbers_(std::move(numbers)) {
    for (const std::uint64_t number : *numbers_)
      if (number >= source_->size())
        throw std::invalid_argument(
            fmt::format("record {} was chosen of {}, counted from 0", number, source_->size()));
  }

  std::uint64_t size() const noexcept override { return numbers_->size(); }
  std::span<const FieldSpec> fields() const noexcept override { return source_->fields(); }
  Result<void> read(std::uint64_t number, Record& record) const override {
    record.set_number(at(number));
    return source_->read(at(number), record);
  }
  std::string location(std::uint64_t number) const override {
    return source_->location(at(number));
  }
  RecordInfo info(std::uint64_t number) const override { return source_->info(at(number)); }
  std::optional<std::int64_t> label(std::uint64_t number) const override {
    return source_->label(at(number));
  }
  RecordName name(std::uint64_t number) const override { return source_->name(at(number)); }
  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    return source_->length(at(number));
  }
  std::uint64_t files() const noexcept override { return source_->files(); }
  std::uint64_t file_of(std::uint64_t number) const override {
    return source_->file_of(at(number));
  }
  std::vector<std::uint64_t> chunks() const override {
    const std::vector<std::uint64_t> theirs = source_->chunks();
    std::vector<std::uint64_t> begins;
    std::ptrdiff_t last = -1;
    for (std::uint64_t number = 0; !theirs.empty() && number < size(); ++number) {
      const auto chunk = std::ranges::upper_bound(theirs, at(number)) - theirs.begin();
      if (chunk != std::exchange(last, chunk)) begins.push_back(number);
    }
    return begins;
  }
  bool is_blocking() const noexcept override { return source_->is_blocking(); }
  int max_concurrent_reads() const noexcept override { return source_->max_concurrent_reads(); }
  std::span<const std::string> class_names() const noexcept override {
    return source_->class_names();
  }
  std::string fingerprint() const override {
    const std::string_view bytes(reinterpret_cast<const char*>(numbers_->data()),
                                 numbers_->size() * sizeof(std::uint64_t));
    return fmt::format("picked({}, {} records, {})", source_->fingerprint(), size(),
                       hash_text(bytes));
  }
  std::span<const SourcePtr> parts() const noexcept override { return {&source_, 1}; }
  // For texts: plans have the operations that chose the records.
  Description describe(const std::vector<Description>& parts) const override {
    return {.name = "picked",
            .options = {},
            .text = fmt::format("{}.select(<{} positions>)", core::text_of(parts.front()), size())};
  }

 private:
  [[nodiscard]] std::uint64_t at(std::uint64_t number) const {
    return (*numbers_)[static_cast<std::size_t>(number)];
  }

  SourcePtr source_;
  std::shared_ptr<const std::vector<std::uint64_t>> numbers_;
};

}  // namespace

SourcePtr picked(SourcePtr source, std::shared_ptr<const std::vector<std::uint64_t>> numbers) {
  return std::make_shared<Picked>(std::move(source), std::move(numbers));
}

}  // namespace penstock::source
