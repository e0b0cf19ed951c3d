// batch/slicing: how global batches are divided over the replicas.
#pragma once

#include <cstdint>
#include <utility>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>

namespace PENSTOCK_EXPORT penstock {

/// What happens to a last batch that is not full.
enum class Remainder : std::uint8_t {
  keep,  ///< it is delivered short
  drop,  ///< it is left out
  pad,  ///< zeroes fill it up, and one more field, valid bool [], is true for a sample and false for a row of zeroes
};
template <>
struct EnumNames<Remainder> {
  static constexpr std::pair<Remainder, const char*> kNames[] = {
      {Remainder::keep, "keep"}, {Remainder::drop, "drop"}, {Remainder::pad, "pad"}};
};

/// How a global batch reaches the replicas.
enum class Split : std::uint8_t {
  scatter,      ///< replica r gets the contiguous slice r of each batch; with locality, other rows
  round_robin,  ///< batches of global_batch / R; batch k goes to replica k mod R
  shard_early,  ///< each replica r has its own order of the samples i with i mod R == r
};
template <>
struct EnumNames<Split> {
  static constexpr std::pair<Split, const char*> kNames[] = {{Split::scatter, "scatter"},
                                                             {Split::round_robin, "round_robin"},
                                                             {Split::shard_early, "shard_early"}};
};

}  // namespace penstock
