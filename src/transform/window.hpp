// transform/window: what a sample shows of its image.
#pragma once

#include <penstock/core/tensor.hpp>

#include "src/transform/pillow_resize.hpp"

namespace penstock::transform {

/// Of the upright image, before it is flipped.
struct Window {
  ImageSize image;
  ImageSize sample;
  Region region;      ///< of the image
  PixelRect place;    ///< of the sample, where that lies; what is beside it is filled
  PillowLine across;  ///< what fills the place, by Pillow's filters
  PillowLine down;
  bool flipped = false;
  bool turned = false;  ///< whether the sides of the stored image were exchanged, by its EXIF data
};

}  // namespace penstock::transform
