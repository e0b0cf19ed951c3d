// sequence/sorted: samples sorted into buckets of which each makes batches of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include <penstock/sequence/by_aspect.hpp>
#include <penstock/sequence/by_length.hpp>

#include "src/order/bucket_table.hpp"

namespace penstock::sequence {

struct Sorted {
  std::shared_ptr<const order::BucketTable> table;
  std::variant<ByLengthSummary, ByAspectSummary> summary;
  std::uint64_t hash = 0;  ///< of all lengths or sizes, in the order's order
};

}  // namespace penstock::sequence
