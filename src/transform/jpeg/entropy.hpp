// transform/jpeg/entropy: Huffman decoding of one stretch of a scan, MCU after MCU.
#pragma once

#include <array>
#include <cstdint>

#include "src/transform/jpeg/chunk.hpp"
#include "src/transform/jpeg/huffman.hpp"

namespace penstock::detail {

/// Where a stream stands, in bits of Unstuffed::data(), and what its next DC values are predicted
/// from. They wrap around as libjpeg's coefficients do.
struct StreamPosition {
  std::uint64_t bit = 0;
  std::array<std::int16_t, 3> dc{};

  friend bool operator==(const StreamPosition&, const StreamPosition&) = default;
};

/// A piece of Unstuffed::data().
struct StreamBytes {
  const std::uint8_t* data = nullptr;
  std::uint64_t end_bit = 0;  ///< bits behind it are not the stream's; they can be read
};

/// Decodes `mcus` MCUs, kChunkMcus at most, into `chunk`, and moves `at.bit`; the predictors are
/// finish_chunk's. The chunk's sizes must be zero. False where something is wrong with the data:
/// a code that is not in the table, a block of more than 64 coefficients, too few bits. `at` and
/// `chunk` then hold anything.
[[nodiscard]] bool decode_mcus(const EntropyTables& tables, const McuLayout& layout,
                               StreamBytes bytes, StreamPosition& at, int mcus, Chunk& chunk);

/// Moves on by `mcus` MCUs; needs the skip tables. False as above.
[[nodiscard]] bool skip_mcus(const EntropyTables& tables, const McuLayout& layout,
                             StreamBytes bytes, StreamPosition& at, int mcus);

}  // namespace penstock::detail
