#include "src/batch/layout.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace penstock::batch {

namespace {

// Slots of many devices are still counted by 64 bits.
constexpr std::size_t kMostBytes = std::size_t{1} << 47;

// Of one row; none beyond what 64 bits count.
std::optional<std::size_t> bytes_of(const FieldSpec& field) {
  std::size_t bytes = size_of(field.dtype);
  for (const std::int64_t extent : field.shape.extents())
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace

BatchLayout::BatchLayout(std::vector<FieldSpec> fields, std::uint64_t max_rows)
    : fields_(std::move(fields)), max_rows_(max_rows) {
  for (const FieldSpec& spec : fields_) {
    if (spec.shape.is_dynamic())
      throw std::invalid_argument(
          fmt::format("batch: the samples of '{}' differ in size: map them to one shape first, for "
                      "example with "
                      "decode_image and a crop",
                      spec.to_string()));
    if (std::ranges::count(fields_, spec.name, &FieldSpec::name) > 1)
      throw std::invalid_argument(fmt::format("batch: two fields are named '{}'", spec.name));
    const auto row = bytes_of(spec);
    std::size_t all_rows = 0;
    if (!row || __builtin_mul_overflow(*row, max_rows, &all_rows) ||
        all_rows > kMostBytes - slice_bytes_)
      throw std::invalid_argument(fmt::format("batch: {} rows of '{}' are too large to address",
                                              max_rows, spec.to_string()));
    places_.push_back({.offset = slice_bytes_, .row_bytes = *row});
    slice_bytes_ += (all_rows + kAlignment - 1) / kAlignment * kAlignment;
    row_bytes_ += *row;
  }
}

std::optional<std::size_t> BatchLayout::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(fields_, name, &FieldSpec::name);
  if (found == fields_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - fields_.begin());
}

TensorView BatchLayout::field(std::byte* slice, std::size_t field, std::uint64_t rows) const {
  const FieldSpec& spec = fields_[field];
  return {slice + places_[field].offset, spec.dtype,
          spec.shape.with_rows(static_cast<std::int64_t>(rows))};
}

}  // namespace penstock::batch
