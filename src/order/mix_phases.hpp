// order/mix_phases: where in a mix which shares hold, in numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <penstock/core/random.hpp>

#include "src/order/mix.hpp"

namespace penstock::order {

inline constexpr std::uint32_t kLeastMixBlock = 64;
inline constexpr std::uint32_t kMostMixBlock = 1024;

/// Positions in a row that are blocks of the same quotas; the last may be shorter, with its quotas
/// in proportion.
struct MixPhase {
  std::uint64_t start = 0;
  std::uint64_t end = 0;             ///< kEndless for a phase that never ends
  std::vector<std::uint64_t> begin;  ///< per input, what the phases before have taken of it
  std::vector<std::uint32_t> quotas;
  std::uint32_t block = 0;  ///< the sum of the quotas
  std::uint64_t whole_blocks = 0;
  std::vector<std::uint32_t> tail;  ///< quotas of the block behind the whole ones

  /// Quotas of block `number`.
  [[nodiscard]] const std::vector<std::uint32_t>& quotas_of(std::uint64_t number) const noexcept {
    return number < whole_blocks ? quotas : tail;
  }
};

/// One block: whose turn it is at each of its positions.
struct MixBlock {
  struct Turn {
    std::uint32_t input;
    std::uint32_t rank;  ///< how many turns of this input stand before it in the block
  };
  std::vector<Turn> turns;

  /// The turns of block `number` of `phase`, shuffled by (key, iteration, position).
  void fill(const MixPhase& phase, std::uint64_t number, const RandomKey& key,
            std::uint32_t iteration);
};

/// The shares of a block of 64 to 1024 places; the smallest that has them exactly, else the
/// largest.
[[nodiscard]] std::vector<std::uint32_t> mix_quotas(std::span<const double> weights);

/// All phases of a mix of inputs of these sizes (none for an endless one). Where weights change
/// within a block, what was taken until then depends on the block as iteration 0 draws it.
[[nodiscard]] std::vector<MixPhase> mix_phases(std::span<const std::optional<std::uint64_t>> sizes,
                                               std::span<const MixWeights> weights,
                                               const RandomKey& key, MixUntil until);

}  // namespace penstock::order
