// jpeg/decoder/lanes: Huffman decoding, of one stream or of several in lockstep.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/jpeg/decoder/chunk.hpp"
#include "src/jpeg/decoder/huffman.hpp"

namespace penstock::jpeg {

/// A symbol's look-up has to wait for that of the symbol before it, but not for those of other
/// streams: a few of them keep a core busy. More would not fit in its registers.
inline constexpr int kMaxLanes = 4;
inline constexpr int kDecodingLanes = 3;
inline constexpr int kSkippingLanes = 4;

/// One stream, and where it stands in a chunk of MCUs.
struct Lane {
  std::uint64_t bit = 0;  ///< next one, in the data
  int blocks_left = 0;    ///< of the chunk; 0 when it is done
  /// It met with a code that is in no table, or with a block of too many coefficients, and
  /// continued as if the block had ended. Set only.
  bool failed = false;

  // Where it was interrupted: minus the coefficients left of the block, and what it is made of.
  std::int64_t state = 0;
  const BlockTables* tables = nullptr;
  std::size_t block = 0;
};

/// Streams of one image. Each symbol takes a handful of instructions and one branch that is taken
/// where a block ends: the CPU cannot predict it, but it costs less than code without it.
///
/// Threads  one caller at a time
struct Lanes {
  EntropyTables entropy;
  const std::uint8_t* data = nullptr;
  std::array<Lane, kMaxLanes> lane;
  std::array<Chunk, kMaxLanes> chunks;
  std::array<std::array<DcDifference, kChunkBlocks>, kMaxLanes> differences;

  /// Begins a chunk of whole MCUs. Before decode(), the sizes of its blocks must be zero.
  void start(std::size_t i, std::uint64_t at, int blocks) noexcept {
    lane[i].bit = at;
    lane[i].blocks_left = blocks;
    lane[i].tables = nullptr;
  }
  /// Decodes `count` streams (one or kDecodingLanes), none of which is done, into their chunks,
  /// until the first is done; returns which. Each reads at most as many symbols as its chunk has
  /// coefficients: at least kUnstuffSlack readable bytes must follow the start of a chunk.
  [[nodiscard]] std::size_t decode(int count);
  /// The same for the DC differences alone, with one stream or kSkippingLanes.
  [[nodiscard]] std::size_t skip(int count);
};

}  // namespace penstock::jpeg
