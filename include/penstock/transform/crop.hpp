// transform/crop: which part of an image a sample shows, and at what size.
#pragma once

#include <cstdint>
#include <string>

#include <penstock/core/geometry.hpp>
#include <penstock/core/random.hpp>

namespace penstock {

/// How pixels become fewer, or more. Both are antialiased: where an image shrinks, the filter is as
/// much wider.
enum class ResizeFilter : std::uint8_t {
  bilinear,
  bicubic,  ///< sharper; Keys' cubic with a = -1/2, as Pillow's BICUBIC
};

/// Both ends included.
struct Range {
  double low = 0;
  double high = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

/// How to choose a region of an image, and the size it is resized to. A value; an empty one
/// (default-constructed) is refused wherever a crop is needed.
class Crop {
 public:
  enum class Kind : std::uint8_t { empty, random_resized, center, whole };

  Crop() = default;
  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  /// Size of the sample that it makes.
  [[nodiscard]] ImageSize size() const noexcept { return size_; }
  /// Of random_resized_crop: shares of the area, and width over height.
  [[nodiscard]] Range scale() const noexcept { return scale_; }
  [[nodiscard]] Range ratio() const noexcept { return ratio_; }
  /// Of center_crop, in pixels.
  [[nodiscard]] int resize() const noexcept { return resize_; }
  /// "random_resized_crop(224x224, scale=[0.08,1], ratio=[0.75,1.3333333333333333])".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Crop&, const Crop&) = default;

 private:
  friend Crop random_resized_crop(ImageSize size, struct RandomResizedCropOptions options);
  friend Crop center_crop(ImageSize size, struct CenterCropOptions options);
  friend Crop resize_to(int height, int width);
  friend Region choose_region(const Crop& crop, int image_width, int image_height, Random& random);

  Kind kind_ = Kind::empty;
  ImageSize size_;
  Range scale_;
  Range ratio_;
  int resize_ = 0;
};

struct RandomResizedCropOptions {
  Range scale{0.08, 1};           ///< share of the image's area
  Range ratio{3.0 / 4, 4.0 / 3};  ///< width over height
};

struct CenterCropOptions {
  int resize = 256;  ///< what the shorter side of the whole image is resized to
};

/// A random part of the image, resized: the crop of training.
///
/// Errors  std::invalid_argument  a size below 1, or a range that is empty or not positive
/// Source  torchvision's RandomResizedCrop: ten attempts with an area uniform in `scale` and a
///         ratio whose logarithm is uniform in that of `ratio`, then the largest centred crop that
///         fits.
[[nodiscard]] Crop random_resized_crop(ImageSize size, RandomResizedCropOptions options = {});

/// The middle of the image after resizing its shorter side to `resize`: the crop of validation.
/// Done as one region and one resize; nothing outside the crop is decoded.
///
/// Errors  std::invalid_argument  a size below 1, or one larger than `resize`
/// Source  torchvision's Resize followed by CenterCrop.
[[nodiscard]] Crop center_crop(ImageSize size, CenterCropOptions options = {});

/// The whole image, stretched.
///
/// Errors  std::invalid_argument  a size below 1
[[nodiscard]] Crop resize_to(int height, int width);

/// The region that `crop` takes from an image of this size; draws from `random` as much as it
/// needs. The same on every machine: only IEEE +, -, *, / and square roots are used.
///
/// Errors  std::invalid_argument  the crop is empty, or the image has no pixels
[[nodiscard]] Region choose_region(const Crop& crop, int image_width, int image_height,
                                   Random& random);

}  // namespace penstock
