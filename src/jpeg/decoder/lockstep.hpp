// jpeg/decoder/lockstep: Huffman decoding of sixteen streams at once, where the CPU has AVX-512 and is faster so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/jpeg/decoder/chunk.hpp"
#include "src/jpeg/decoder/huffman.hpp"

namespace penstock::jpeg {

inline constexpr std::size_t kLockstepLanes = 16;

/// Streams of one image, a symbol each in every step. The blocks are those that Lanes::decode makes.
///
/// Threads  one caller at a time
class Lockstep {
 public:
  enum class Choice : std::uint8_t { no, yes, try_both };
  /// Whether to decode so many streams in lockstep, rather than by Lanes. CPUs differ in how fast they gather, so the first
  /// streams of a process are decoded twice, and timed; then it is what mostly took less.
  [[nodiscard]] static Choice choose(std::size_t streams) noexcept;
  /// How long the same streams took both ways.
  static void note(std::int64_t lockstep_ns, std::int64_t lanes_ns) noexcept;
  /// For tests and benchmarks: `always` with any number of streams, where the CPU has AVX-512.
  enum class When : std::uint8_t { faster, always, never };
  static void use(When when) noexcept;

  /// Of the image whose streams come next; `data` as for Lanes, at most 2^28 bytes.
  void begin(const EntropyTables& entropy, const McuLayout& layout, const std::uint8_t* data);
  /// Gives a lane the next `blocks` blocks, whole MCUs, from `bit` on.
  void start(std::size_t lane, std::uint64_t bit, int blocks) noexcept;
  /// Decodes until some lanes are done: returns which, a bit each. 0 where a stream meets with a code that is in no table, or
  /// with a block of too many coefficients; or where no lane has anything to do.
  [[nodiscard]] std::uint32_t decode();
  /// The blocks of a lane that is done.
  void take(std::size_t lane, Chunk& chunk) noexcept;
  /// All of them were taken.
  void finish() noexcept { is_clean_ = true; }
  /// Where it stands.
  [[nodiscard]] std::uint64_t bit(std::size_t lane) const noexcept { return state_.bit[lane]; }

  // The lanes, side by side.
  struct State {
    alignas(64) std::array<std::uint32_t, kLockstepLanes> bit{};
    alignas(64)
        std::array<std::uint32_t, kLockstepLanes> at{};  // coefficients of the block that are done
    alignas(64) std::array<std::uint32_t, kLockstepLanes> block{};  // of an MCU
    alignas(64) std::array<std::uint32_t,
                           kLockstepLanes> out{};  // where the block begins, in `coefficients`
    alignas(64) std::array<std::uint32_t, kLockstepLanes> left{};  // blocks
    // Of the blocks of an MCU: where their tables are, from `tables` on.
    alignas(64) std::array<std::uint32_t, kLockstepLanes> dc{};
    alignas(64) std::array<std::uint32_t, kLockstepLanes> ac{};
    std::uint32_t live = 0;    // lanes, a bit each
    std::uint32_t blocks = 1;  // of an MCU
    const std::uint32_t* tables = nullptr;
    const BlockTables* of_blocks = nullptr;
    const std::uint8_t* data = nullptr;
    std::uint32_t* coefficients = nullptr;  // as `coefficients_`
  };

 private:
  struct Coefficients {
    // Of each lane's blocks in zigzag order: a value's bits, the lowest ones, and above bit 16 their number.
    alignas(64) std::array<std::uint32_t, kLockstepLanes * kChunkBlocks * kBlockSize> bits{};
  };

  State state_;
  std::array<std::uint32_t, kLockstepLanes> blocks_{};  // that a lane was given
  std::unique_ptr<Coefficients> coefficients_;          // all zeros but for what is not taken yet
  bool is_clean_ = true;
};

}  // namespace penstock::jpeg
