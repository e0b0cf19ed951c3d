// order/mix: several orders blended in fixed shares.
#pragma once

#include <cstdint>
#include <vector>

#include <penstock/core/random.hpp>
#include <penstock/order/mix.hpp>

#include "src/order/order.hpp"

namespace penstock::order {

/// From `position` of the mix on, these weights hold.
struct MixWeights {
  std::uint64_t position = 0;
  std::vector<double> weights;  ///< one an input; need not add up to 1; 0 leaves an input out

  friend bool operator==(const MixWeights&, const MixWeights&) = default;
};

/// Blocks of 64 to 1024 positions, in each of which every input has its exact quota of places, in
/// an order drawn from (key, iteration, position). Each input is read in its own order, once; where
/// one ends, the last block is shortened for all alike. A position is arithmetic: no pool of
/// samples is held, and a cursor that jumps computes one block.
///
/// A quota is the weight's share of the block, exact where a block of at most 1024 can express the
/// shares, else rounded; a positive weight has one place at the least.
///
/// `weights` come in order of their positions, the first at 0. A change within a block ends it
/// there. Over a mix a whole shuffle is right but slow: every number computes a block.
///
///   mix({range(40, 0), range(20, 1)}, {{0, {2, 1}}}, key)
///     ==  60 samples, in any 60 of a block 40 : 20
///
/// Units   a cursor holds at most 8 KiB besides its inputs.
/// Errors  std::invalid_argument  no inputs; a number of weights that is not that of the inputs, a
///         weight that is negative or not finite, all weights 0, more than 1024 inputs with a
///         weight, positions out of order
[[nodiscard]] OrderPtr mix(std::vector<OrderPtr> inputs, std::vector<MixWeights> weights,
                           RandomKey key, MixUntil until = MixUntil::first_exhausted);

}  // namespace penstock::order
