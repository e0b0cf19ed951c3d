#include "src/transform/paste.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace penstock::transform {

namespace {

struct PixelBounds {
  int left = 0, top = 0, right = 0, bottom = 0;
};

PixelBounds bounds_of(std::span<const std::uint8_t> mask, ImageSize sample) {
  PixelBounds all{.left = sample.width, .top = sample.height};
  for (int y = 0; y < sample.height; ++y) {
    const auto row =
        mask.subspan(static_cast<std::size_t>(y) * static_cast<std::size_t>(sample.width),
                     static_cast<std::size_t>(sample.width));
    const auto first = std::ranges::find_if(row, [](std::uint8_t value) { return value != 0; });
    if (first == row.end()) continue;
    const auto last =
        std::find_if(row.rbegin(), row.rend(), [](std::uint8_t value) { return value != 0; });
    all.left = std::min(all.left, static_cast<int>(first - row.begin()));
    all.right = std::max(all.right, static_cast<int>(row.rend() - last));
    all.top = std::min(all.top, y);
    all.bottom = y + 1;
  }
  return all;
}

std::size_t field_of(const JoinedRows& rows, const std::string& name) {
  const auto found = std::ranges::find(rows.fields(), name, &FieldSpec::name);
  return static_cast<std::size_t>(found - rows.fields().begin());
}

}  // namespace

void paste_instances(JoinedRows& rows, std::size_t own, double share, const Instances& instances,
                     ImageSize sample, Random& random, std::vector<std::uint8_t>& pasted) {
  const std::size_t boxes = field_of(rows, instances.boxes);
  const std::size_t masks = field_of(rows, instances.masks);
  pasted.assign(static_cast<std::size_t>(sample.height) * static_cast<std::size_t>(sample.width),
                0);
  std::vector<bool> kept(rows.count(), true);
  for (std::size_t row = own; row < rows.count(); ++row) {
    const auto mask = rows.row<std::uint8_t>(masks, row);
    kept[row] = random.uniform() < share &&
                std::ranges::any_of(mask, [](std::uint8_t value) { return value != 0; });
    if (!kept[row]) continue;
    for (std::size_t i = 0; i < mask.size(); ++i) pasted[i] |= mask[i] != 0 ? 1 : 0;
  }
  for (std::size_t row = 0; row < own; ++row) {
    const auto mask = rows.row<std::uint8_t>(masks, row);
    std::size_t before = 0, after = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      before += mask[i] != 0 ? 1 : 0;
      if (pasted[i] != 0) mask[i] = 0;
      after += mask[i] != 0 ? 1 : 0;
    }
    if (after == before) continue;
    const PixelBounds left = bounds_of(mask, sample);
    kept[row] = after > 0 && left.right - left.left >= instances.min_size &&
                left.bottom - left.top >= instances.min_size &&
                static_cast<double>(after) >= instances.min_visible * static_cast<double>(before);
    const auto box = rows.row<float>(boxes, row);
    const std::array edges{left.left, left.top, left.right, left.bottom};
    std::ranges::transform(edges, box.begin(), [](int edge) { return static_cast<float>(edge); });
  }
  if (!instances.keypoints.empty()) {
    const std::size_t keypoints = field_of(rows, instances.keypoints);
    for (std::size_t row = 0; row < own; ++row) {
      const auto points = rows.row<float>(keypoints, row);
      for (std::size_t i = 0; i + 2 < points.size(); i += 3) {
        const auto x = std::min(static_cast<int>(points[i]), sample.width - 1);
        const auto y = std::min(static_cast<int>(points[i + 1]), sample.height - 1);
        if (pasted[static_cast<std::size_t>(y) * static_cast<std::size_t>(sample.width) +
                   static_cast<std::size_t>(x)] != 0)
          points[i + 2] = std::min(points[i + 2], 1.0F);
      }
    }
  }
  rows.keep(kept);
}

}  // namespace penstock::transform
