// jpeg/decoder/plan: which MCUs a rectangle of an image needs, and how large they get.
#pragma once

#include <cstdint>

#include <penstock/core/export.hpp>
#include <penstock/jpeg/decoder.hpp>

#include "src/jpeg/decoder/chunk.hpp"
#include "src/jpeg/decoder/header.hpp"
#include "src/jpeg/pixels/rows.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace jpeg {

/// What is left of `pixels` in an image that is decoded at 1/scale of its size.
[[nodiscard]] constexpr int scaled_down(int pixels, int scale) noexcept {
  return (pixels + scale - 1) / scale;
}

struct RegionPlan {
  /// Samples of a block in each direction. At a smaller scale, chroma that is stored at half the
  /// size in both directions needs no upsampling: there are coefficients for more samples.
  int luma_side = kBlockSide;
  int chroma_side = kBlockSide;
  int mcu_width = kBlockSide;  ///< in pixels
  int mcu_height = kBlockSide;
  int h = 1;  ///< pixels that share a chroma sample
  int v = 1;
  bool smooth_h = false;  ///< chroma is smoothed along rows
  bool smooth_v = false;  ///< and across them
  /// MCU columns and rows that hold what the rectangle's pixels are made of: [first, last).
  int first_column = 0;
  int last_column = 0;
  int first_row = 0;
  int last_row = 0;
  /// libjpeg-turbo reads the MCUs before that one, and what is wrong with them counts.
  std::int64_t checked_mcus = 0;

  RegionPlan() = default;
  /// `rect` is in pixels of the image at 1/scale of its size: 1, 2, 4 or 8.
  RegionPlan(const JpegHeader& header, const PixelRect& rect, Chroma upsampling, int scale);

  /// Samples of a component in one direction, of `side` to `most` MCUs' blocks.
  [[nodiscard]] static constexpr int samples_of(int pixels, int side, int most) noexcept {
    return (pixels * side + most * kBlockSide - 1) / (most * kBlockSide);
  }
};

}  // namespace jpeg
}  // namespace penstock
