// transform/crop_image: a decoded image becomes a crop of fixed size.
#pragma once

#include <string>
#include <vector>

#include <penstock/transform/crop.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock {

struct CropImageOptions {
  static constexpr const char* kName = "crop_image";  ///< in plans

  std::string field = "image";  ///< the field of the pixels, which the crop replaces
  Crop crop{};                  ///< as in DecodeImageOptions, here and below
  float flip = 0;
  ResizeFilter filter = ResizeFilter::bilinear;
  std::string geometry{};
  std::vector<std::string> masks{};
  int mask_fill = 255;
  DType mask_dtype = DType::u8;
};

template <class Visitor>
void visit_fields(Visitor& visit, CropImageOptions& options) {
  visit("field", options.field);
  visit.required("crop", options.crop);
  visit("flip", options.flip);
  visit("filter", options.filter);
  visit("geometry", options.geometry);
  visit.later("masks", options.masks);
  visit.later("mask_fill", options.mask_fill);
  visit.later("mask_dtype", options.mask_dtype);
}

/// decode_image for images that are decoded already, such as arrays of CIFAR's: the same crops,
/// the same random numbers, the same pixels and the same masks.
///
/// A fault: an image without pixels, or smaller than a random_crop without pad_if_needed.
///
/// Shapes   in: `field` u8 or u16 [H,W,C], with C 1 or 3; H and W may differ from record to record. out:
///          `field` [H,W,C] of the crop's size and that type, `geometry` i32 [8] if asked for, and masks as of decode_image; with
///          five_crops or ten_crops a first dimension of as many.
/// Threads  any number at the same time. While it works, a thread needs four bytes for each pixel that the crop reaches.
/// Errors   std::invalid_argument  an empty crop or field name, flip outside [0,1], or two fields of one
///          name; at bind: another type or shape, a fill of several levels for images of one channel, or a mask whose
///          type has no `mask_fill`; pillow_bicubic for u16
[[nodiscard]] TransformPtr crop_image(CropImageOptions options);

}  // namespace penstock
