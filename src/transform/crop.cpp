#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/transform/crop.hpp>

#include "src/transform/exact_math.hpp"

namespace penstock {

namespace {

constexpr int kAttempts = 10;  // torchvision's

void check_size(const char* crop, ImageSize size) {
  if (size.height < 1 || size.width < 1)
    throw std::invalid_argument(fmt::format("{}: a crop has at least 1x1 pixels, found {}x{}", crop,
                                            size.height, size.width));
}

void check_range(const char* name, const Range& range, double most) {
  if (!(range.low > 0 && range.low <= range.high && range.high <= most))
    throw std::invalid_argument(
        fmt::format("random_resized_crop: {} must be a range above 0{}, found [{}, {}]", name,
                    most < 1e9 ? " up to 1" : "", range.low, range.high));
}

double round_half_up(double value) { return std::floor(value + 0.5); }

Region centered(double width, double height, double image_width, double image_height) {
  return {.x = std::floor((image_width - width) / 2),
          .y = std::floor((image_height - height) / 2),
          .width = width,
          .height = height};
}

Region random_region(const Range& scale, const Range& ratio, double image_width,
                     double image_height, Random& random) {
  const double log_low = transform::exact_log2(ratio.low);
  const double log_high = transform::exact_log2(ratio.high);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double area = image_width * image_height * random.uniform(scale.low, scale.high);
    const double aspect = transform::exact_exp2(random.uniform(log_low, log_high));
    const double width = round_half_up(std::sqrt(area * aspect));
    const double height = round_half_up(std::sqrt(area / aspect));
    if (width < 1 || width > image_width || height < 1 || height > image_height) continue;
    const auto below = [&](double places) {
      return static_cast<double>(random.below(static_cast<std::uint64_t>(places)));
    };
    const double y = below(image_height - height + 1);
    const double x = below(image_width - width + 1);
    return {.x = x, .y = y, .width = width, .height = height};
  }
  const double aspect = image_width / image_height;
  double width = image_width;
  double height = image_height;
  if (aspect < ratio.low) height = std::clamp(round_half_up(width / ratio.low), 1.0, image_height);
  if (aspect > ratio.high) width = std::clamp(round_half_up(height * ratio.high), 1.0, image_width);
  return centered(width, height, image_width, image_height);
}

}  // namespace

std::string Crop::to_string() const {
  const std::string size = fmt::format("{}x{}", size_.height, size_.width);
  switch (kind_) {
    case Kind::empty:
      return "no crop";
    case Kind::random_resized:
      return fmt::format("random_resized_crop({}, scale=[{},{}], ratio=[{},{}])", size, scale_.low,
                         scale_.high, ratio_.low, ratio_.high);
    case Kind::center:
      return fmt::format("center_crop({}, resize={})", size, resize_);
    case Kind::whole:
      return fmt::format("resize_to({})", size);
  }
  return "?";
}

Crop random_resized_crop(ImageSize size, RandomResizedCropOptions options) {
  check_size("random_resized_crop", size);
  check_range("scale", options.scale, 1);
  check_range("ratio", options.ratio, 1e9);
  Crop crop;
  crop.kind_ = Crop::Kind::random_resized;
  crop.size_ = size;
  crop.scale_ = options.scale;
  crop.ratio_ = options.ratio;
  return crop;
}

Crop center_crop(ImageSize size, CenterCropOptions options) {
  check_size("center_crop", size);
  if (options.resize < std::max(size.height, size.width))
    throw std::invalid_argument(
        fmt::format("center_crop: the shorter side is resized to {}, which is less than the crop "
                    "of {}x{}: raise resize",
                    options.resize, size.height, size.width));
  Crop crop;
  crop.kind_ = Crop::Kind::center;
  crop.size_ = size;
  crop.resize_ = options.resize;
  return crop;
}

Crop resize_to(int height, int width) {
  check_size("resize_to", {height, width});
  Crop crop;
  crop.kind_ = Crop::Kind::whole;
  crop.size_ = {height, width};
  return crop;
}

Region choose_region(const Crop& crop, int image_width, int image_height, Random& random) {
  if (image_width < 1 || image_height < 1)
    throw std::invalid_argument(
        fmt::format("an image has at least 1x1 pixels, found {}x{}", image_width, image_height));
  const double width = image_width;
  const double height = image_height;
  switch (crop.kind_) {
    case Crop::Kind::empty:
      break;
    case Crop::Kind::random_resized:
      return random_region(crop.scale_, crop.ratio_, width, height, random);
    case Crop::Kind::center: {
      const double pixels_per_pixel = std::min(width, height) / crop.resize_;
      const double crop_width = crop.size_.width * pixels_per_pixel;
      const double crop_height = crop.size_.height * pixels_per_pixel;
      return {.x = (width - crop_width) / 2,
              .y = (height - crop_height) / 2,
              .width = crop_width,
              .height = crop_height};
    }
    case Crop::Kind::whole:
      return {.x = 0, .y = 0, .width = width, .height = height};
  }
  throw std::invalid_argument("there is no crop: give one, such as random_resized_crop(224)");
}

}  // namespace penstock
