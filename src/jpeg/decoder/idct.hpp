// jpeg/decoder/idct: coefficients to samples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/jpeg/decoder/chunk.hpp"

namespace penstock::jpeg {

/// A component's quantization table, in zigzag order.
struct QuantTable {
  alignas(64) std::array<std::uint16_t, kBlockSize> zigzag;
};

/// Where natural coefficient 8 * row + column is in the zigzag.
inline constexpr std::array<std::uint8_t, kBlockSize> kZigzagOf{0,  1,  5,  6,  14, 15, 27, 28,  //
                                                                2,  4,  7,  13, 16, 26, 29, 42,  //
                                                                3,  8,  12, 17, 25, 30, 41, 43,  //
                                                                9,  11, 18, 24, 31, 40, 44, 53,  //
                                                                10, 19, 23, 32, 39, 45, 52, 54,  //
                                                                20, 22, 33, 38, 46, 51, 55, 60,  //
                                                                21, 34, 37, 47, 50, 56, 59, 61,  //
                                                                35, 36, 48, 49, 57, 58, 62, 63};

/// Blocks of a chunk that lie side by side in the image.
struct BlockRow {
  const Block* blocks = nullptr;
  const std::uint8_t* number = nullptr;  ///< of each in `blocks`, in their order in the image
  const std::int16_t* dc = nullptr;      ///< of each, in that order
  int count = 0;
};

/// Writes 8 rows of 8 * count samples, 0 to 255, and nothing beside them.
///
/// Source  libjpeg's accurate integer DCT (jidctint.c), with the 16-bit sums of libjpeg-turbo's
///         vectors for this kind of CPU, bit for bit: these differ where coefficients are out of
///         any encoder's range.
void inverse_dct(const BlockRow& blocks, const QuantTable& quant, std::uint8_t* out,
                 std::ptrdiff_t stride);

}  // namespace penstock::jpeg
