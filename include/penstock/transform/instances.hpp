// transform/instances: the things that an image shows, one by one: boxes, keypoints and masks, which move with its pixels.
#pragma once

#include <string>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/image_fields.hpp>

namespace PENSTOCK_EXPORT penstock {

/// The fields of an image's instances, with one row for each instance in all of them. Boxes, keypoints and masks are moved as
/// the pixels are, by the same numbers, and what lies outside the new image is cut off. An instance of whose box too little is
/// left is removed: its row goes from all of the fields.
///
/// A rotated or sheared box becomes the upright box around its corners, so it grows. A keypoint outside the new image gets
/// the visibility 0; x and y of keypoints with this visibility become 0, which in COCO means "not labelled". Where an image
/// is mirrored, from left to right or from top to bottom, keypoints are exchanged as `flip_index` says. Corners of boxes that are
/// turned are moved, in their order, and stay where they are outside of the new image; an instance of which a perspective does not
/// show a corner is removed. What one transform leaves is what the next one takes: `format` and `normalized` are for the first.
///
/// Segmentations are a text in JSON, a list with one of COCO's segmentations for each instance: polygons [[x1,y1,x2,y2,...],...],
/// or runs {"size":[height,width],"counts":...}. decode_image() and crop_image() draw them: a mask has the pixels of pycocotools'
/// annToMask, cropped and resized as Pillow's NEAREST, 1 where the instance is and 0 elsewhere.
///
/// Shapes  in: boxes f32 or f64 [?,4]; keypoints f32 or f64 [?,k,3] (x, y, visibility); corners f32 or f64 [?,4,2] (x, y); masks u8
///         [?], which are segmentations, or u8 or bool [?,H,W] of the image's height and width; other fields of any type [?,...]. out:
///         boxes f32 [?,4] (left, top, right, bottom), keypoints f32 [?,k,3] and corners f32 [?,4,2], in pixels of the new image; masks
///         [?,H,W], of its height and width; other fields as they were. pad() makes them one length for a batch
/// Faults  fields with different numbers of rows; a box that is not finite, or ends before it begins; a visible keypoint or a corner
///         of an instance that is left that is not finite; coordinates above 2 that are said to be normalized; of decode_image and
///         crop_image boxes, keypoints or polygons that all lie in the first pixel and are not said to be normalized;
///         segmentations that are not of this form, such as one without a polygon of three points or more; masks or runs of another size
///         than the image
/// Source  as torchvision.transforms.v2.functional moves boxes; min_visible as Albumentations' min_visibility; polygons as
///         rleFrPoly of cocoapi's common/maskApi.c
struct Instances {
  std::string boxes{};      ///< the field of the boxes
  std::string keypoints{};  ///< the field of the keypoints; "": there is none
  /// other fields, of which the rows of removed instances are removed, too, such as labels and areas, which stay as they
  /// are otherwise
  std::vector<std::string> fields{};
  BoxFormat format = BoxFormat::xyxy;  ///< of the boxes that come in
  /// whether boxes, keypoints, corners and polygons that come in are fractions of the image's width and height
  bool normalized = false;
  double min_size = 1;  ///< an instance with a box of less width or height, in pixels, is removed
  /// an instance is removed if this transform leaves less than this fraction of its box's area; of a box that turns, of the
  /// upright box around it
  double min_visible = 0;
  /// whether an instance is removed if the middle of its box, as it comes in, is outside of the new image
  bool middle = false;
  /// for each keypoint the one whose place it takes where the image is mirrored, such as [0, 2, 1] of a nose and two eyes; by
  /// default they stay, which a plan refuses where the source says that they have a left and a right
  std::vector<int> flip_index{};
  std::string
      masks{};  ///< the field of the masks, or of the segmentations that they are drawn from; "": there is none
  std::string corners{};  ///< the field of the corners of boxes that are turned; "": there is none

  friend bool operator==(const Instances&, const Instances&) = default;
};

template <class Visitor>
void visit_fields(Visitor& visit, Instances& instances) {
  visit("boxes", instances.boxes);
  visit("keypoints", instances.keypoints);
  visit("fields", instances.fields);
  visit("format", instances.format);
  visit("normalized", instances.normalized);
  visit("min_size", instances.min_size);
  visit("min_visible", instances.min_visible);
  visit.later("middle", instances.middle);
  visit("flip_index", instances.flip_index);
  visit.later("masks", instances.masks);
  visit.later("corners", instances.corners);
}

}  // namespace penstock
