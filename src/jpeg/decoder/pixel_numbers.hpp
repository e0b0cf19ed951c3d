// jpeg/decoder/pixel_numbers: one pixel of its samples, for the host and for kernels. It says what the vectors have to come to.
#pragma once

#include <cstdint>

#include "src/core/host_device.hpp"

namespace penstock::jpeg::pixel {

PENSTOCK_HOST_DEVICE inline std::uint8_t level(int value) {
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

/// Source  jdcolor.c, 16 bits of fraction
PENSTOCK_HOST_DEVICE inline void from_ycc(int y, int cb, int cr, std::uint8_t* rgb) {
  constexpr int kHalf = 1 << 15;
  const int b = cb - 128;
  const int r = cr - 128;
  rgb[0] = level(y + ((91881 * r + kHalf) >> 16));
  rgb[1] = level(y + ((-22554 * b - 46802 * r + kHalf) >> 16));
  rgb[2] = level(y + ((116130 * b + kHalf) >> 16));
}

/// Chroma of half the size along rows, across them, or both: 3/4 of the nearer sample, 1/4 of the further one. `odd`: the
/// pixel's column is; `below`: the further row is the one below.
///
/// Source  jdsample.c: h2v1_fancy_upsample, h1v2_fancy_upsample, h2v2_fancy_upsample
PENSTOCK_HOST_DEVICE inline int smooth_h2(int here, int beside, bool odd) {
  return (3 * here + beside + (odd ? 2 : 1)) >> 2;
}
PENSTOCK_HOST_DEVICE inline int smooth_v2(int near, int far, bool below) {
  return (3 * near + far + (below ? 2 : 1)) >> 2;
}
/// Of two sums 3 * near + far.
PENSTOCK_HOST_DEVICE inline int smooth_h2v2(int here, int beside, bool odd) {
  return (3 * here + beside + (odd ? 7 : 8)) >> 4;
}

}  // namespace penstock::jpeg::pixel
