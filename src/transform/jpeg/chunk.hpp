// transform/jpeg/chunk: the coefficients of a few MCUs in a row, between bits and pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/transform/jpeg/header.hpp"
#include "src/transform/jpeg/huffman.hpp"

namespace penstock::detail {

inline constexpr int kBlockSize = 64;
/// MCUs that are decoded before their pixels are made.
inline constexpr int kChunkMcus = 8;
inline constexpr int kMaxBlocksPerMcu = 6;
inline constexpr int kChunkBlocks = kChunkMcus * kMaxBlocksPerMcu;

/// The coefficients of a chunk, as they come out of the scan: the value's bits (the lowest `size`
/// ones of `raw`; those above it are anything) and their number. The symbols that fill it need no
/// branch; vectors make numbers of it.
///
/// Both count down: the first block is the highest, and coefficient k of a block is at 63 - k. A
/// stream in lockstep with others may run on by kAhead coefficients behind its last block, which
/// are below the first index.
struct Chunk {
  static constexpr int kAhead = 4 * kBlockSize;
  static constexpr int kCoefficients = kChunkBlocks * kBlockSize;

  /// A block's first coefficient was put there by a DC symbol, with this many bits.
  static constexpr std::uint8_t kDcMark = symbol::kDc >> 8;

  alignas(64) std::array<std::uint16_t, kAhead + kCoefficients> raw;
  alignas(64) std::array<std::uint8_t, kAhead + kCoefficients> size;

  [[nodiscard]] std::uint16_t* raws() noexcept { return raw.data() + kAhead; }
  [[nodiscard]] std::uint8_t* sizes() noexcept { return size.data() + kAhead; }
};

/// Whose blocks follow one another in an MCU.
struct McuLayout {
  int components = 1;
  int blocks = 1;
  int luma = 1;  ///< of them

  McuLayout() = default;
  explicit McuLayout(const JpegHeader& header) noexcept
      : components(header.components), blocks(header.blocks_per_mcu()), luma(header.h * header.v) {}
  /// The component of a block of an MCU.
  [[nodiscard]] std::size_t component(int block) const noexcept {
    return static_cast<std::size_t>(block < luma ? 0 : block - luma + 1);
  }
};

/// The difference that `size` bits of `raw` stand for.
///
/// Source  ITU-T T.81, F.2.2.1: EXTEND
[[nodiscard]] constexpr std::int32_t extend(std::uint32_t raw, unsigned size) noexcept {
  const std::uint32_t mask = ~0U << size;
  const std::uint32_t bits = raw & ~mask;
  // Below half: minus what is missing to all ones. The sign is as good as random: no branch.
  const std::uint32_t half = size == 0 ? 0 : 1U << (size - 1);
  return static_cast<std::int32_t>(bits +
                                   ((mask + 1) & (0U - static_cast<std::uint32_t>(bits < half))));
}

}  // namespace penstock::detail
