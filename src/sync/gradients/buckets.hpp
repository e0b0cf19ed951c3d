// sync/buckets: which gradients are reduced together, and which rank owns which variable. Pure
// arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <penstock/sync/gradient_sync.hpp>

namespace penstock::sync {

struct BucketItem {
  DType dtype = DType::f32;
  std::uint64_t elements = 0;
};

/// Goes through `items` from the last to the first, since a backward pass produces them so, and
/// fills one bucket of each type at a time. Buckets come in the order in which they are complete.
///
/// Errors  std::invalid_argument  a limit is 0
/// Source  as PyTorch's DistributedDataParallel, but with limits that are never passed
[[nodiscard]] std::vector<GradientBucket> plan_buckets(std::span<const BucketItem> items,
                                                       const BucketLimits& limits);

/// The owner of each variable: in their order each goes to the rank that has the fewest bytes so
/// far, the lowest of these.
///
/// Source  TensorFlow's GreedyLoadBalancingStrategy, as tensorpack uses it for parameter servers
[[nodiscard]] std::vector<std::uint32_t> owners_by_bytes(std::span<const std::size_t> bytes,
                                                         std::uint32_t ranks);

}  // namespace penstock::sync
