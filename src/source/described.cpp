#include "src/source/described.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::source {

namespace {

class Described final : public Source {
 public:
  Described(SourcePtr source, Description description)
      : source_(std::move(source)), description_(std::move(description)) {}

  [[nodiscard]] const Source& inner() const noexcept { return *source_; }

  std::uint64_t size() const noexcept override { return source_->size(); }
  std::span<const FieldSpec> fields() const noexcept override { return source_->fields(); }
  Result<void> read(std::uint64_t number, Record& record) const override {
    return source_->read(number, record);
  }
  std::size_t reads_together() const noexcept override { return source_->reads_together(); }
  void read_together(std::span<RecordRead> reads) const override { source_->read_together(reads); }
  std::string location(std::uint64_t number) const override { return source_->location(number); }
  RecordInfo info(std::uint64_t number) const override { return source_->info(number); }
  std::optional<std::int64_t> label(std::uint64_t number) const override {
    return source_->label(number);
  }
  RecordName name(std::uint64_t number) const override { return source_->name(number); }
  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    return source_->length(number);
  }
  std::uint64_t files() const noexcept override { return source_->files(); }
  std::uint64_t file_of(std::uint64_t number) const override { return source_->file_of(number); }
  std::vector<std::uint64_t> chunks() const override { return source_->chunks(); }
  bool is_blocking() const noexcept override { return source_->is_blocking(); }
  int max_concurrent_reads() const noexcept override { return source_->max_concurrent_reads(); }
  std::string fingerprint() const override { return source_->fingerprint(); }
  std::optional<Description> description() const override { return description_; }
  std::optional<FunctionTime> function_time() const override { return source_->function_time(); }
  std::vector<StorageTier> tiers() const override { return source_->tiers(); }
  bool is_random() const noexcept override { return source_->is_random(); }
  std::span<const std::string> class_names() const noexcept override {
    return source_->class_names();
  }
  std::vector<ImageFields> image_fields() const override { return source_->image_fields(); }
  std::vector<Notice> notices() const override { return source_->notices(); }

 private:
  SourcePtr source_;
  Description description_;
};

}  // namespace

SourcePtr described(SourcePtr source, Description description) {
  return std::make_shared<Described>(std::move(source), std::move(description));
}

const Source& without_description(const Source& source) {
  const auto* const described = dynamic_cast<const Described*>(&source);
  return described != nullptr ? described->inner() : source;
}

}  // namespace penstock::source
