// transform/augment_image: changes the pixels of images at random, as training wants it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <penstock/augment/augmentation.hpp>
#include <penstock/core/export.hpp>
#include <penstock/transform/instances.hpp>
#include <penstock/transform/transform.hpp>

namespace PENSTOCK_EXPORT penstock {

struct AugmentImageOptions {
  static constexpr const char* kName = "augment_image";  ///< in plans

  std::string field = "image";           ///< the field of the image, or of several views of one
  std::vector<Augmentation> operations;  ///< what is done to it, one after another
  /// fields that are moved with the image (by flips, rotations, shears, translations, affine and perspective, also those
  /// of policies) and otherwise stay as they are: the classes of its pixels; the nearest pixel is taken, whatever the
  /// operation's interpolation
  std::vector<std::string> masks{};
  int mask_fill = 255;  ///< the value of masks beside the image; most losses ignore 255
  std::optional<Instances>
      instances{};  ///< boxes, keypoints and masks that are moved as the pixels are
};

template <class Visitor>
void visit_fields(Visitor& visit, AugmentImageOptions& options) {
  visit("field", options.field);
  visit.required("operations", options.operations);
  visit.later("masks", options.masks);
  visit.later("mask_fill", options.mask_fill);
  visit.later("instances", options.instances);
}

/// Does these operations to an image, or to each of several views of one: a view draws its own numbers, and the first one
/// draws those of a single image.
///
/// Shapes  in and out: `field` u8 [H,W,C] or [views,H,W,C], of 1 or 3 channels and at most 32767 pixels a side; masks u8 [H,W];
///         instances as Instances says
/// Errors  std::invalid_argument  no field name, or one twice; a mask_fill outside [0,255]; masks or instances with
///                                operations that may mix images (aug_mix); limits of instances out of range; at bind: no such
///                                field, or one of another type or shape; masks or instances for several views
[[nodiscard]] TransformPtr augment_image(AugmentImageOptions options);

}  // namespace penstock
