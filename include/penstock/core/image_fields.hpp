// core/image_fields: which fields of a sample are places in an image, and what their numbers are.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>

namespace PENSTOCK_EXPORT penstock {

/// What the four numbers of a box are. Coordinates go to the right and downwards from the upper left corner of the image,
/// so that the pixel (x, y) lies from (x, y) to (x + 1, y + 1).
enum class BoxFormat : std::uint8_t {
  xyxy,    ///< left, top, right, bottom: torchvision, Pascal VOC
  xywh,    ///< left, top, width, height: COCO
  cxcywh,  ///< the middle, width, height: YOLO, DETR
};
template <>
struct EnumNames<BoxFormat> {
  static constexpr std::pair<BoxFormat, const char*> kNames[] = {
      {BoxFormat::xyxy, "xyxy"}, {BoxFormat::xywh, "xywh"}, {BoxFormat::cxcywh, "cxcywh"}};
};

/// An image and the fields that belong to its pixels. What moves the pixels has to move these fields, too.
struct ImageFields {
  std::string image;                   ///< the field of the image
  std::vector<std::string> fields;     ///< all that belong to it, also those named below
  std::string boxes{};                 ///< the boxes of its instances; "": there are none
  std::string keypoints{};             ///< the keypoints of its instances; "": there are none
  std::string masks{};                 ///< the masks of its instances; "": there are none
  std::string corners{};               ///< the corners of boxes that are turned; "": there are none
  BoxFormat format = BoxFormat::xyxy;  ///< of the boxes
  /// whether boxes, keypoints, corners and polygons are fractions of the image's width and height
  bool normalized = false;
  /// for each keypoint the one whose place it takes where the image is mirrored; empty: that is not known
  std::vector<int> flip_index{};
};

}  // namespace penstock
