// core/geometry: sizes and parts of images.
#pragma once

#include <utility>

#include <penstock/core/enum_names.hpp>

namespace penstock {

/// Height and width of an image, in pixels; one number means a square.
struct ImageSize {
  int height = 0;
  int width = 0;

  constexpr ImageSize() = default;
  constexpr ImageSize(int side)  // NOLINT(google-explicit-constructor)
      : height(side), width(side) {}
  constexpr ImageSize(int height_px, int width_px) : height(height_px), width(width_px) {}

  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

template <class Visitor>
void visit_elements(Visitor& visit, ImageSize& size) {
  visit("height", size.height);
  visit("width", size.width);
}

/// A rectangle of an upright image, origin at its upper left corner.
///
/// Units  source pixels; may be fractions of them
struct Region {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  friend bool operator==(const Region&, const Region&) = default;
};

/// Where a part lies in a larger image.
enum class CropPosition : unsigned char {
  center,
  random,  ///< all whole pixels equally likely
};
template <>
struct EnumNames<CropPosition> {
  static constexpr std::pair<CropPosition, const char*> kNames[] = {
      {CropPosition::center, "center"}, {CropPosition::random, "random"}};
};

/// A rectangle of whole pixels of an image as it is stored, origin at its upper left corner.
struct PixelRect {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const PixelRect&, const PixelRect&) = default;
};

}  // namespace penstock
