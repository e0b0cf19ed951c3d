// The random part of a device transform.
#include <algorithm>
#include <cmath>
#include <optional>

#include <penstock/device/device_transform.hpp>

#include "src/augment/variates.hpp"
#include "src/core/exact_math.hpp"
#include "src/device/device_transform_numbers.hpp"

namespace penstock {

namespace {

constexpr int kAttempts = 10;  // torchvision's
// What each image draws comes from sequences of their own, so that switching one off leaves the
// others as they were.
enum Stream : std::uint16_t { kFlip, kErase, kMix, kStreams };

Random stream_of(const RandomKey& key, const SampleId& sample, std::size_t view, Stream stream) {
  return {key.of_part(sample.source), sample, static_cast<std::uint16_t>(view * kStreams + stream)};
}

std::optional<DeviceTransformRow::Box> erased_box(const RandomErasing& erase, int height, int width,
                                                  Random& random) {
  if (erase.probability == 0 || random.uniform() >= erase.probability) return std::nullopt;
  const double low = core::exact_log2(erase.ratio.low);
  const double high = core::exact_log2(erase.ratio.high);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double area = random.uniform(erase.area.low, erase.area.high) * height * width;
    const double ratio = core::exact_exp2(random.uniform(low, high));
    const auto h = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const auto w = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (h < 1 || w < 1 || h > height || w > width) continue;
    const auto top = static_cast<int>(random.below(static_cast<std::uint64_t>(height - h + 1)));
    const auto left = static_cast<int>(random.below(static_cast<std::uint64_t>(width - w + 1)));
    return DeviceTransformRow::Box{
        static_cast<std::uint16_t>(top), static_cast<std::uint16_t>(left),
        static_cast<std::uint16_t>(top + h), static_cast<std::uint16_t>(left + w)};
  }
  return std::nullopt;
}

// A box of a share 1 - weight of the image around a point anywhere in it, cut off at the edges.
DeviceTransformRow::Box cut_box(double weight, int height, int width, Random& random) {
  const double side = std::sqrt(1 - weight);
  const auto interval = [&](int extent) {
    const auto length = static_cast<int>(side * extent);
    const auto center = static_cast<int>(random.below(static_cast<std::uint64_t>(extent)));
    return std::pair{std::max(center - length / 2, 0), std::min(center + length / 2, extent)};
  };
  const auto [top, bottom] = interval(height);
  const auto [left, right] = interval(width);
  return {static_cast<std::uint16_t>(top), static_cast<std::uint16_t>(left),
          static_cast<std::uint16_t>(bottom), static_cast<std::uint16_t>(right)};
}

}  // namespace

void DeviceTransform::draw_own(const RandomKey& key, const SampleId& sample, bool is_present,
                               std::span<DeviceTransformRow> rows) const {
  for (std::size_t view = 0; view < rows.size(); ++view) {
    DeviceTransformRow& row = rows[view] = {};
    row.present = is_present ? 1 : 0;
    if (options_.flip > 0)
      row.flip = stream_of(key, sample, view, kFlip).uniform() < options_.flip ? 1 : 0;
    Random erasing = stream_of(key, sample, view, kErase);
    row.erase = erased_box(options_.erase, numbers_->height, numbers_->width, erasing)
                    .value_or(DeviceTransformRow::Box{});
  }
}

// Which rows are mixed with each other differs from step to step.
std::size_t DeviceTransform::partner_distance(const RandomKey& key, std::uint64_t step,
                                              std::uint32_t replica, std::size_t count) {
  return count > 1 ? 1 + scale_to(key.u64(step, replica, 0), count - 1) : 0;
}

void DeviceTransform::draw_mixture(const RandomKey& key, std::size_t distance,
                                   std::span<const SampleId> samples,
                                   std::span<const std::byte> present, std::size_t i,
                                   DeviceTransformRow& row) const {
  const auto is_present = [&](std::size_t at) {
    return present.empty() || present[at] != std::byte{0};
  };
  const std::size_t partner = (i + distance) % samples.size();
  row.partner = static_cast<std::int32_t>(partner);
  if (distance == 0 || !is_present(i) || !is_present(partner)) return;
  Random random = stream_of(key, samples[i], 0, kMix);
  if (options_.mix_probability < 1 && random.uniform() >= options_.mix_probability) return;
  const bool cuts =
      options_.cutmix > 0 && (options_.mixup == 0 || random.uniform() < options_.cutmix_fraction);
  const double weight = augment::beta_variate(cuts ? options_.cutmix : options_.mixup, random);
  row.mix = cuts ? DeviceTransformRow::Mix::cutmix : DeviceTransformRow::Mix::mixup;
  row.weight = static_cast<float>(weight);
  if (!cuts) return;
  const int height = numbers_->height;
  const int width = numbers_->width;
  row.cut = cut_box(weight, height, width, random);
  const auto area = (row.cut.bottom - row.cut.top) * (row.cut.right - row.cut.left);
  row.weight = 1 - static_cast<float>(area) / static_cast<float>(height * width);
}

void DeviceTransform::draw(const RandomKey& key, std::uint64_t step, std::uint32_t replica,
                           std::span<const SampleId> samples, std::span<const std::byte> present,
                           std::span<DeviceTransformRow> rows) const {
  const std::size_t distance = partner_distance(key, step, replica, samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    draw_own(key, samples[i], present.empty() || present[i] != std::byte{0},
             rows.subspan(i * views(), views()));
    if (mixes()) draw_mixture(key, distance, samples, present, i, rows[i]);
  }
}

}  // namespace penstock
