// order/permutation: a random bijection of [0, size) that is computed, not stored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <penstock/core/random.hpp>

namespace penstock::order {

/// Up to this size a permutation is a table, drawn by Fisher and Yates: exactly uniform where a
/// tester could tell, and faster.
inline constexpr std::uint64_t kPermutationTable = 256;

/// The Feistel network's numbers; values go through it in groups of kFeistelGroup.
inline constexpr std::size_t kFeistelRounds = 24;
inline constexpr std::size_t kFeistelGroup = 32;
struct FeistelKey {
  struct Round {
    std::uint64_t factor;
    std::uint64_t summand;
  };
  int low_bits = 0;   ///< of the domain's bits, the half rounded up
  int high_bits = 0;  ///< the other half
  std::array<Round, kFeistelRounds> rounds{};
};

/// A permutation of [0, size), picked by (key, iteration).
///
/// Beyond the table it is a Feistel network over the next power of two, and walks the cycle: a
/// value outside [0, size) is sent through again until it falls inside, fewer than twice on
/// average. The two halves take turns: one is hashed and xored into the other. A round's hash is
/// multiply, add, shift with its own random odd factor and its own random summand, which maps any
/// two inputs to two independent outputs.
///
/// Threads  apply() may be called by several at a time.
/// Source   Mitchell, Stokes, Frank, Holmes: Bandwidth-Optimal Random Shuffling for GPUs (2021),
///          with the 24 rounds of its VariablePhilox and another round function;
///          Dietzfelbinger: Universal Hashing and k-Wise Independent Random Variables via Integer
///          Arithmetic (1996)
class Permutation {
 public:
  Permutation() = default;
  Permutation(std::uint64_t size, const RandomKey& key, std::uint32_t iteration) noexcept;

  /// Replaces each position, which must be below size, by its image.
  void apply(std::span<std::uint64_t> positions) const noexcept;

 private:
  std::uint64_t size_ = 0;
  FeistelKey feistel_;
  std::array<std::uint8_t, kPermutationTable> table_{};
};

}  // namespace penstock::order
