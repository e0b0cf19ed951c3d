// storage/http/request_counts: what reads cost in requests.
#pragma once

#include <cstdint>

namespace penstock::storage {

/// What the reads of a store took. All of them count: also those that were repeated, and those sent a second time.
struct RequestCounts {
  std::uint64_t requests = 0;
  std::uint64_t failures =
      0;  ///< that were answered with an error that may pass, broke off, or got no answer
  std::uint64_t hedges = 0;  ///< sent a second time since the first was late
};

}  // namespace penstock::storage
