#include "src/source/partners.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/random.hpp>

#include "src/core/call_text.hpp"
#include "src/core/partner_names.hpp"
#include "src/core/printable.hpp"
#include "src/source/composite.hpp"

namespace penstock::source {

namespace {

using core::kPartners;
using core::partner_name;

constexpr std::uint64_t kMostPartners = 8;

void check(const PartnersOptions& options) {
  if (options.count < 1 || options.count > kMostPartners)
    throw std::invalid_argument(fmt::format("{}: a sample has 1 to {} of them, found {}", kPartners,
                                            kMostPartners, options.count));
  if (!(options.probability >= 0 && options.probability <= 1))
    throw std::invalid_argument(fmt::format("{}: probability is a number from 0 to 1, found {}",
                                            kPartners, options.probability));
}

class Partners final : public Composite {
 public:
  Partners(SourcePtr source, const PartnersOptions& options)
      : source_(std::move(source)), options_(options) {
    const std::span<const FieldSpec> own = source_->fields();
    fields_.assign(own.begin(), own.end());
    for (std::size_t k = 1; k <= count(); ++k)
      for (const FieldSpec& field : own)
        fields_.push_back({partner_name(field.name, k), field.dtype, field.shape});
    fields_.push_back({kPartners, DType::i64, {static_cast<std::int64_t>(count())}});
    for (const FieldSpec& field : fields_)
      if (std::ranges::count(fields_, field.name, &FieldSpec::name) > 1)
        throw std::invalid_argument(
            fmt::format("{0}: the samples have a field '{1}', which is the name of one that {0} "
                        "adds: rename() it before",
                        kPartners, field.name));
  }

  std::uint64_t size() const noexcept override { return source_->size(); }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    if (auto result = read_part(number, 0, record); !result) return result;
    Random random = record.random();
    const bool drawn = random.uniform() < options_.probability;
    const bool has_partners =
        drawn && (!options_.until_epoch || record.epoch() < *options_.until_epoch);
    std::array<std::int64_t, kMostPartners> numbers{};
    for (std::size_t k = 1; k <= count(); ++k) {
      const std::uint64_t partner = random.below(size());
      numbers[k - 1] = has_partners ? static_cast<std::int64_t>(partner) : -1;
      auto result = has_partners ? read_part(partner, k, record) : leave_empty(k, record);
      if (result) continue;
      Fault fault = std::move(result.fault());
      fault.reason = fmt::format("partner {} of it, {}: {}", k,
                                 core::printable(source_->location(partner)), fault.reason);
      if (fault.file.empty()) fault.file = source_->location(partner);
      fault.partner = partner;
      return fault;
    }
    return write(fields_.size() - 1, std::as_bytes(std::span(numbers).first(count())),
                 {static_cast<std::int64_t>(count())}, record);
  }

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
  bool is_random() const noexcept override { return true; }
  std::span<const std::string> class_names() const noexcept override {
    return source_->class_names();
  }
  std::string fingerprint() const override {
    return fmt::format("{}({}, {})", kPartners, source_->fingerprint(),
                       core::arguments_text(core::changed_arguments(options_)));
  }
  // Of the sample and of each partner.
  std::vector<ImageFields> image_fields() const override {
    const std::vector<ImageFields> own = source_->image_fields();
    std::vector<ImageFields> all = own;
    for (std::size_t k = 1; k <= count(); ++k)
      for (ImageFields fields : own) {
        fields.image = partner_name(fields.image, k);
        for (std::string& field : fields.fields) field = partner_name(field, k);
        for (std::string* const name :
             {&fields.boxes, &fields.keypoints, &fields.masks, &fields.corners})
          if (!name->empty()) *name = partner_name(*name, k);
        all.push_back(std::move(fields));
      }
    return all;
  }
  std::span<const SourcePtr> parts() const noexcept override { return {&source_, 1}; }
  // For texts: plans have the operation.
  Description describe(const std::vector<Description>& parts) const override {
    return {.name = kPartners,
            .options = {},
            .text = fmt::format("{}.{}", core::text_of(parts.front()),
                                core::call_text(kPartners, core::changed_arguments(options_), 1))};
  }

 private:
  [[nodiscard]] std::size_t count() const noexcept {
    return static_cast<std::size_t>(options_.count);
  }
  [[nodiscard]] std::size_t first_field(std::size_t part) const noexcept {
    return part * source_->fields().size();
  }

  // Reads one record into the fields of the sample, part 0, or of a partner; nothing where none of them is wanted.
  Result<void> read_part(std::uint64_t number, std::size_t index, Record& record) const {
    const std::size_t own = source_->fields().size();
    std::span<const std::uint8_t> wanted = record.wanted_fields();
    if (!wanted.empty()) wanted = wanted.subspan(first_field(index), own);
    if (!wanted.empty() && std::ranges::count(wanted, 0) == std::ssize(wanted)) return {};
    Record& part = record.part(index, wanted);
    part.set_number(number);
    auto result = source_->read(number, part);
    if (!result) return result;
    for (std::size_t field = 0; field < own; ++field)
      record[first_field(index) + field] = part[field];
    record.add_bytes_read(part.bytes_read());
    return result;
  }

  Result<void> leave_empty(std::size_t part, Record& record) const {
    for (std::size_t field = 0; field < source_->fields().size(); ++field) {
      const FieldSpec& spec = source_->fields()[field];
      std::vector<std::int64_t> extents(spec.shape.extents().begin(), spec.shape.extents().end());
      std::ranges::replace(extents, kDynamic, std::int64_t{0});
      const std::size_t to = first_field(part) + field;
      if (auto written = write(to, {}, Shape(extents), record); !written) return written;
    }
    return {};
  }

  // Sets a field to `bytes`, and to zeros where there are fewer.
  Result<void> write(std::size_t field, std::span<const std::byte> bytes, const Shape& shape,
                     Record& record) const {
    if (!record.is_wanted(field)) return {};
    const FieldSpec spec{fields_[field].name, fields_[field].dtype, shape};
    auto place = record.allocate(spec.bytes());
    if (!place) return std::move(place.fault());
    if (!place->empty()) std::memset(place->data(), 0, place->size());
    if (!bytes.empty()) std::memcpy(place->data(), bytes.data(), bytes.size());
    record.set(field, place->data(), spec.dtype, shape);
    return {};
  }

  SourcePtr source_;
  PartnersOptions options_;
  std::vector<FieldSpec> fields_;
};

}  // namespace

SourcePtr partners(SourcePtr source, const PartnersOptions& options) {
  check(options);
  return std::make_shared<Partners>(std::move(source), options);
}

namespace {

bool has_field(const Source& source, std::string_view field) {
  return std::ranges::find(source.fields(), field, &FieldSpec::name) != source.fields().end();
}

// Of what a source is made of, what the field comes from.
const Source* part_with(const Source& source, std::string_view field) {
  const auto* const composite = dynamic_cast<const Composite*>(&source);
  if (composite == nullptr) return nullptr;
  for (const SourcePtr& part : composite->parts())
    if (has_field(*part, field)) return part.get();
  return nullptr;
}

}  // namespace

std::string location_of_partner(const Source& source, std::uint64_t partner) {
  if (dynamic_cast<const Partners*>(&source) != nullptr) return source.location(partner);
  const Source* const part = part_with(source, kPartners);
  return part == nullptr ? std::string() : location_of_partner(*part, partner);
}

bool is_drawn(const Source& source, std::string_view field) {
  const Source* const part = part_with(source, field);
  if (dynamic_cast<const Partners*>(&source) != nullptr && part == nullptr)
    return has_field(source, field);
  return part != nullptr && is_drawn(*part, field);
}

}  // namespace penstock::source
