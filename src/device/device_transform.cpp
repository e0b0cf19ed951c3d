#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/device/device_transform.hpp>

#include "src/device/device_augmentation.hpp"
#include "src/device/device_transform_numbers.hpp"

namespace penstock {

namespace {

constexpr std::int64_t kMaxExtent = std::numeric_limits<std::uint16_t>::max();  // of a Box

[[noreturn]] void refuse(const DeviceTransformOptions& options, const std::string& what) {
  throw std::invalid_argument(fmt::format("device transform of '{}': {}", options.field, what));
}

void check_input(const DeviceTransformOptions& options, const FieldSpec& input) {
  const Shape& shape = input.shape;
  const std::size_t rank = shape.rank();
  const bool has_views = rank == 4 && shape[0] >= 1 && shape[0] <= device::kMaxViews;
  const bool is_image = input.dtype == DType::u8 && (rank == 3 || has_views) &&
                        !shape.is_dynamic() && shape[rank - 1] >= 1 &&
                        shape[rank - 1] <= device::kMaxChannels;
  if (!is_image)
    refuse(options,
           fmt::format(
               "it takes decoded images, u8 [height, width, 1 to {} channels], or up to {} views "
               "of each, u8 [views, height, width, channels], found {}; {}",
               device::kMaxChannels, device::kMaxViews, input.to_string(),
               input.dtype == DType::u16
                   ? "images of 16 bits become numbers for the network by a function of your own, "
                     "in map or on the batch"
                   : "put map(decode_image(…)) before batch"));
  if (shape[rank - 3] > kMaxExtent || shape[rank - 2] > kMaxExtent)
    refuse(options, fmt::format("images of at most {0}x{0} pixels, found {1}", kMaxExtent,
                                input.to_string()));
  if (has_views && (options.mixup > 0 || options.cutmix > 0 || options.classes > 0))
    refuse(options,
           fmt::format("mixup, cutmix and targets are of one image a sample, found the views {}",
                       input.to_string()));
}

void check_probability(const DeviceTransformOptions& options, const char* name, double value) {
  if (!(value >= 0 && value <= 1))
    refuse(options, fmt::format("{} is a probability, from 0 to 1, found {}", name, value));
}

void check_numbers(const DeviceTransformOptions& options) {
  if (options.dtype != DType::f32 && options.dtype != DType::f16 && options.dtype != DType::bf16)
    refuse(options, fmt::format("dtype is f32, f16 or bf16, found {}", name_of(options.dtype)));
  check_probability(options, "flip", options.flip);
  check_probability(options, "erase.probability", options.erase.probability);
  for (const auto& [name, alpha] :
       {std::pair{"mixup", options.mixup}, std::pair{"cutmix", options.cutmix}})
    if (!(alpha >= 0 && alpha <= 1000))
      refuse(options, fmt::format("{} is the alpha of a Beta distribution, 0 for none, up to 1000; "
                                  "found {}",
                                  name, alpha));
  check_probability(options, "mix_probability", options.mix_probability);
  check_probability(options, "cutmix_fraction", options.cutmix_fraction);
  check_probability(options, "label_smoothing", options.label_smoothing);
  constexpr std::int64_t kMostClasses = 1 << 24;
  if (options.classes < 0 || options.classes > kMostClasses)
    refuse(options, fmt::format("classes are the number of all labels, up to {}, or 0 for no "
                                "targets; found {}",
                                kMostClasses, options.classes));
  if (options.mixup == 0 && options.cutmix == 0 && options.mix_probability < 1)
    refuse(options,
           "mix_probability is that of mixup and cutmix: give one of them, or leave it out");
  if ((options.mixup == 0 || options.cutmix == 0) &&
      options.cutmix_fraction != DeviceTransformOptions().cutmix_fraction)
    refuse(options,
           "cutmix_fraction chooses between mixup and cutmix: give both of them, or leave it out");
  if (options.classes == 0 && options.label_smoothing > 0)
    refuse(options,
           "label_smoothing makes targets, which need the number of classes: give classes");
  const RandomErasing& erase = options.erase;
  if (!(erase.area.low > 0 && erase.area.low <= erase.area.high && erase.area.high <= 1))
    refuse(options, fmt::format("erase: area is a range above 0 and up to 1, found {} to {}",
                                erase.area.low, erase.area.high));
  constexpr double kLeastRatio = 0.001;
  if (!(erase.ratio.low >= kLeastRatio && erase.ratio.low <= erase.ratio.high &&
        erase.ratio.high <= 1000))
    refuse(options, fmt::format("erase: ratio is a range from {} to 1000, found {} to {}",
                                kLeastRatio, erase.ratio.low, erase.ratio.high));
  for (const float mean : options.mean)
    if (!(mean <= 1))
      refuse(options,
             fmt::format("pixels count from 0 to 1, and so does mean, found {}: divide mean "
                         "and standard deviation by 255",
                         mean));
  for (const float deviation : options.std)
    if (!(deviation > 0)) refuse(options, fmt::format("std is above 0, found {}", deviation));
}

// One number for each channel, or one for all, or none.
double of_channel(const DeviceTransformOptions& options, const char* name,
                  const std::vector<float>& numbers, int channel, int channels,
                  double default_value) {
  if (numbers.empty()) return default_value;
  if (numbers.size() == 1) return numbers.front();
  if (numbers.size() != static_cast<std::size_t>(channels))
    refuse(options, fmt::format("{} has {} numbers, and the images have {} channels: give one for "
                                "each, or one for all",
                                name, numbers.size(), channels));
  return numbers[static_cast<std::size_t>(channel)];
}

}  // namespace

DeviceTransform::DeviceTransform(DeviceTransformOptions options, const FieldSpec& input)
    : options_(std::move(options)) {
  check_input(options_, input);
  check_numbers(options_);
  if (!options_.augment.empty()) (void)device::DeviceAugmentation(options_, input);
  device::DeviceTransformNumbers numbers;
  const std::span image = input.shape.extents().last(3);
  numbers.views = image.size() == input.shape.rank() ? 0 : static_cast<int>(input.shape[0]);
  numbers.height = static_cast<int>(image[0]);
  numbers.width = static_cast<int>(image[1]);
  numbers.channels = static_cast<int>(image[2]);
  for (int c = 0; c < numbers.channels; ++c) {
    const double mean = of_channel(options_, "mean", options_.mean, c, numbers.channels, 0);
    const double deviation = of_channel(options_, "std", options_.std, c, numbers.channels, 1);
    numbers.scale[c] = static_cast<float>(1 / (255 * deviation));
    numbers.bias[c] = static_cast<float>(-mean / deviation);
    numbers.erased[c] = static_cast<float>(
        of_channel(options_, "erase.value", options_.erase.value, c, numbers.channels, 0));
  }
  numbers_ = std::make_shared<const device::DeviceTransformNumbers>(numbers);
}

FieldSpec DeviceTransform::output() const {
  const std::int64_t height = numbers_->height;
  const std::int64_t width = numbers_->width;
  const std::int64_t channels = numbers_->channels;
  const bool planes = options_.layout == ImageLayout::nchw;
  const Shape image = planes ? Shape{channels, height, width} : Shape{height, width, channels};
  return {.name = options_.field,
          .dtype = options_.dtype,
          .shape = numbers_->views == 0 ? image : image.with_rows(numbers_->views)};
}

std::size_t DeviceTransform::views() const noexcept {
  return static_cast<std::size_t>(std::max(numbers_->views, 1));
}

}  // namespace penstock
