// sync/buckets: which gradients are reduced together, and which rank owns which variable. Pure
// arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <penstock/core/dtype.hpp>

namespace penstock {

/// No bucket is larger, but for one that holds a single gradient which is.
struct BucketLimits {
  std::size_t bytes = std::size_t{25} << 20;
  std::size_t count = std::numeric_limits<std::size_t>::max();  ///< gradients
};

/// Gradients of one type that are reduced together.
struct Bucket {
  std::vector<std::size_t> gradients;  ///< their indices, highest first
  DType dtype = DType::f32;
  std::uint64_t elements = 0;

  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(elements) * size_of(dtype);
  }
};

struct BucketItem {
  DType dtype = DType::f32;
  std::uint64_t elements = 0;
};

/// Goes through `items` from the last to the first, since a backward pass produces them so, and
/// fills one bucket of each type at a time. Buckets come in the order in which they are complete.
///
/// Errors  std::invalid_argument  a limit is 0
/// Source  as PyTorch's DistributedDataParallel, but with limits that are never passed
[[nodiscard]] std::vector<Bucket> plan_buckets(std::span<const BucketItem> items,
                                               const BucketLimits& limits);

/// The owner of each variable: in their order each goes to the rank that has the fewest bytes so
/// far, the lowest of these.
///
/// Source  TensorFlow's GreedyLoadBalancingStrategy, as tensorpack uses it for parameter servers
[[nodiscard]] std::vector<std::uint32_t> owners_by_bytes(std::span<const std::size_t> bytes,
                                                         std::uint32_t ranks);

}  // namespace penstock
