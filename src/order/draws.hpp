// order/draws: the random numbers of a run of positions, many at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <penstock/core/random.hpp>

namespace penstock::order {

/// 64 random bits for every (iteration, position): for a Philox key drawn from the operation's key,
/// one half of the block (position / 2, iteration), the first half for an even position.
class Draws {
 public:
  /// The most numbers of one at().
  static constexpr std::size_t kMost = 512;

  explicit Draws(const RandomKey& key) noexcept;

  /// The numbers of `count` positions from `first` on; good until the next call.
  [[nodiscard]] std::span<const std::uint64_t> at(std::uint32_t iteration, std::uint64_t first,
                                                  std::size_t count) noexcept;

 private:
  static constexpr std::size_t kVectorBlocks = 8;

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint64_t, kMost + 2 + 2 * kVectorBlocks> numbers_;
};

}  // namespace penstock::order
