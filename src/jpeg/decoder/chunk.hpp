// jpeg/decoder/chunk: the coefficients of a few MCUs in a row, between bits and pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/core/host_device.hpp"
#include "src/jpeg/decoder/header.hpp"

namespace penstock::jpeg {

inline constexpr int kBlockSide = 8;
inline constexpr int kBlockSize = 64;
/// MCUs that are decoded before their pixels are made.
inline constexpr int kChunkMcus = 8;
inline constexpr int kMaxBlocksPerMcu = 6;
inline constexpr int kChunkBlocks = kChunkMcus * kMaxBlocksPerMcu;

/// The coefficients of a block as they come out of the scan, in zigzag order: the value's bits (the
/// lowest `size` ones of `raw`; those above it are anything) and their number. Storing them takes
/// no decision; vectors make numbers of them later. Where `size` is 0, `raw` is anything.
struct alignas(64) Block {
  std::array<std::uint16_t, kBlockSize> raw;
  std::array<std::uint8_t, kBlockSize> size;
};

/// Blocks in the order of the scan.
using Chunk = std::array<Block, kChunkBlocks>;

/// A block's DC difference alone.
struct DcDifference {
  std::uint16_t raw;
  std::uint8_t size;
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
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::int32_t extend(std::uint32_t raw,
                                                                 unsigned size) noexcept {
  const std::uint32_t mask = ~0U << size;
  const std::uint32_t bits = raw & ~mask;
  // Below half: minus what is missing to all ones. The sign is as good as random: no branch.
  const auto below = static_cast<std::uint32_t>(2 * bits < (1U << size));
  return static_cast<std::int32_t>(bits + ((mask + 1) & (0U - below)));
}

}  // namespace penstock::jpeg
