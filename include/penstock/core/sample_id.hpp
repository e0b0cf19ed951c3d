// core/sample_id: the identity that every sample carries from the order to the delivered batch.
#pragma once

#include <cstdint>

namespace penstock {

/// Which sample this is: identity = (source, epoch, number).
struct SampleId {
  std::uint64_t number = 0;  ///< 0..N-1 in its source
  std::uint32_t epoch = 0;   ///< passes over the source before this one, all repeats together
  std::uint32_t source = 0;  ///< which source of the plan

  friend bool operator==(const SampleId&, const SampleId&) = default;
};

}  // namespace penstock
