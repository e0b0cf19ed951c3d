// transform/augment_image: changes the pixels of images at random, as training wants it.
#pragma once

#include <string>
#include <vector>

#include <penstock/augment/augmentation.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock {

struct AugmentImageOptions {
  std::string field = "image";
  std::vector<Augmentation> operations;  ///< one after another
};

/// Does these operations to an image, or to each of several views of one: a view draws its own numbers, and the first one
/// draws those of a single image.
///
/// Shapes  in and out: `field` u8 [H,W,C] or [views,H,W,C], of 1 or 3 channels and at most 32767 pixels a side
/// Errors  std::invalid_argument  no field name; at bind: no such field, or one of another type or shape
[[nodiscard]] TransformPtr augment_image(AugmentImageOptions options);

}  // namespace penstock
