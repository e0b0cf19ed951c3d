// batch/slicing: how global batches are divided over the replicas.
#pragma once

#include <cstdint>

namespace penstock {

/// What happens to a last batch that is not full.
enum class Remainder : std::uint8_t {
  keep,  ///< it is delivered short
  drop,  ///< it is left out, whole
  pad,   ///< it is filled up with zeroes; the field 'valid' marks which rows are samples
};

/// How a global batch reaches the replicas.
enum class Split : std::uint8_t {
  scatter,      ///< replica r gets the contiguous slice r of the global batch, in place
  round_robin,  ///< batches of global_batch / R; batch k goes to replica k mod R
  shard_early,  ///< each replica has an order of its own, over the samples i with i mod R == r
};

}  // namespace penstock
