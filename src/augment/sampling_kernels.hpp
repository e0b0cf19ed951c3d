// augment/sampling_kernels: RGB pixels read between others, whose neighbours all lie within the image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/augment/sampling.hpp"

namespace penstock::augment {

/// cubic_weights of every share.
inline constexpr std::array<CubicWeights, kAllShares> kCubicTable = [] {
  std::array<CubicWeights, kAllShares> table{};
  for (std::int32_t share = 0; share < kAllShares; ++share)
    table[static_cast<std::size_t>(share)] = cubic_weights(share);
  return table;
}();

/// What bilinear and Pillow's bilinear and bicubic give at places that have been moved by half a pixel, so that their whole
/// parts are those of an upper left neighbour. A bilinear place has two pixels more to its right and one below, a bicubic
/// one two on either side and two below and one above.
void sample_line(const Picture& from, Sampler sampler, const SourcePlace* places, int count,
                 std::uint8_t* to);

}  // namespace penstock::augment
