// transform/window: what a sample shows of its image.
#pragma once

#include <penstock/core/geometry.hpp>

#include "src/transform/pillow_resize.hpp"

namespace penstock::transform {

/// Of the upright image, before it is flipped.
struct Window {
  ImageSize image;
  ImageSize sample;
  PixelRect place;    ///< of the image in the sample; what is beside it is filled
  PillowLine across;  ///< what fills the place
  PillowLine down;
  bool flipped = false;
};

}  // namespace penstock::transform
