// transform/resize_kernels: the two loops of a resize, for the CPU that runs them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <penstock/transform/crop.hpp>

#include "src/core/host_device.hpp"

namespace penstock::transform {

/// Fraction bits between the two directions. A filter with negative weights goes beyond the levels
/// of a pixel, and needs the room of one bit there.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr int fraction_bits(ResizeFilter filter) noexcept {
  return filter == ResizeFilter::bilinear ? 7 : 6;
}

/// Two output rows are worked on together. Between the directions, pixels 2j and 2j+1 of both make
/// one group of 16 numbers: R R G G B B X X of the first row, then the same of the second.
inline constexpr int kRowsTogether = 2;
inline constexpr std::size_t kGroup = 16;

/// The weighted sum of `taps` rows of pixels becomes row `lane` (0 or 1) of the groups 0..pairs-1
/// in `between`. Loads and stores are rounded up to a whole vector: 16 pixels more at most.
void sum_rows(ResizeFilter filter, const std::uint8_t* const* rows, const std::int16_t* weights,
              int taps, int pairs, int lane, std::int16_t* between);

struct PairTable {
  const std::int32_t* at;        // first group, per output pixel
  const std::uint32_t* weights;  // `pairs` per output pixel
  int pairs;
};

/// The weighted sums of groups become `width` RGB pixels of two rows; the rows may be the same.
void sum_columns(ResizeFilter filter, const std::int16_t* between, const PairTable& table,
                 int width, std::uint8_t* first, std::uint8_t* second);

}  // namespace penstock::transform
