// core/sample_id: the identity that every sample carries from the order to the delivered batch.
#pragma once

#include <cstdint>

namespace penstock {

/// Which sample this is: identity = (source, epoch, number), and which draw of it where an epoch
/// may have a sample more than once.
struct SampleId {
  std::uint64_t number = 0;  ///< 0..N-1 in its source
  std::uint32_t epoch = 0;   ///< passes over the source before this one, all repeats together
  std::uint32_t source = 0;  ///< which source of the plan
  /// 0, or 1 + the position in the output of the outermost `sample`, or `select` that repeats
  /// positions: each draw of a sample has random numbers of its own.
  std::uint64_t draw = 0;

  friend bool operator==(const SampleId&, const SampleId&) = default;
};

}  // namespace penstock
