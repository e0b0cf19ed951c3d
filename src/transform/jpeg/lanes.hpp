// transform/jpeg/lanes: several streams decoded in lockstep.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/transform/jpeg/chunk.hpp"
#include "src/transform/jpeg/huffman.hpp"

namespace penstock::detail {

/// One symbol's look-up waits for that of the symbol before it, but not for those of other streams:
/// this many keep a core busy. More would not fit in its registers.
inline constexpr int kLanes = 5;

/// The streams, and all that they look up: one object, so that one register leads to it.
///
/// Threads  one caller at a time
struct Lanes {
  /// The table of the next symbol, as its offset in EntropyTables::tables, by the coefficients that
  /// are left of the chunk, from kBehind on. So no branch is needed where blocks end, which nobody
  /// can predict. A stream at its chunk's end goes on, with symbols that do nothing, for the rest
  /// of a round.
  static constexpr std::size_t kBehind = Chunk::kAhead;
  using Map = std::array<std::uint16_t, kBehind + Chunk::kCoefficients + 1>;

  EntropyTables entropy;
  Map map;
  std::array<Chunk, kLanes> chunks;
  std::array<std::uint64_t, kLanes> bit{};  ///< next one, in the data
  /// Coefficients left of the chunk. 0 when it is done; below that a whole number of blocks when it
  /// is done, too, and any other number when its last block had too many.
  std::array<std::int32_t, kLanes> left{};
  /// A bit for each stream: it met with a code that is in no table, or with a block of too many
  /// coefficients, and went on as if the block had ended. Set only.
  std::uint32_t failed = 0;
  const std::uint8_t* data = nullptr;

  /// Sets the map. `skipping`: several AC symbols at a time, without their values.
  void set_map(const McuLayout& layout, bool skipping);
  /// Begins a chunk: its sizes must be zero, or with run(skipping) those of DC differences.
  void start(std::size_t lane, std::uint64_t at, int mcus, const McuLayout& layout) noexcept {
    bit[lane] = at;
    left[lane] = mcus * layout.blocks * kBlockSize;
  }
  /// Decodes until at least one stream is at the end of its chunk; returns a bit for each such one.
  /// Each reads at most Chunk::kCoefficients symbols behind where it starts: the data must go on
  /// for kUnstuffSlack bytes there. With `skipping` only the DC differences come out.
  [[nodiscard]] std::uint32_t run(bool skipping);
};

}  // namespace penstock::detail
