// sequence/sorted: samples sorted into buckets of which each makes batches of its own.
#pragma once

#include <cstdint>
#include <memory>

#include <penstock/sequence/buckets.hpp>

#include "src/order/bucket_table.hpp"

namespace penstock::sequence {

struct Sorted {
  std::shared_ptr<const order::BucketTable> table;
  BucketSummary summary;
  std::uint64_t hash = 0;  ///< of all lengths or sizes, in the order's order
};

}  // namespace penstock::sequence
