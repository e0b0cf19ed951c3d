#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/core/tensor.hpp>

namespace penstock {

Shape::Shape(std::span<const std::int64_t> extents) {
  if (extents.size() > kMaxRank)
    throw std::invalid_argument(
        fmt::format("a shape has at most {} extents, found {}", kMaxRank, extents.size()));
  for (const std::int64_t extent : extents) {
    if (extent < kDynamic)
      throw std::invalid_argument(fmt::format("an extent is 0 or more, found {}", extent));
    extents_[rank_++] = extent;
  }
}

bool Shape::is_dynamic() const noexcept { return std::ranges::count(extents(), kDynamic) > 0; }

Shape Shape::with_rows(std::int64_t rows) const {
  if (rank_ == kMaxRank)
    throw std::invalid_argument(
        fmt::format("a sample of shape {} has no room for a batch axis: at most {} extents with it",
                    to_string(), kMaxRank));
  Shape batch;
  batch.rank_ = static_cast<std::uint8_t>(rank_ + 1);
  batch.extents_[0] = rows;
  std::ranges::copy(extents(), batch.extents_.begin() + 1);
  return batch;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (const std::int64_t extent : extents()) {
    if (text.size() > 1) text += ',';
    text += extent == kDynamic ? "?" : std::to_string(extent);
  }
  return text + "]";
}

std::string FieldSpec::to_string() const {
  return fmt::format("{} {} {}", name, name_of(dtype), shape.to_string());
}

}  // namespace penstock
