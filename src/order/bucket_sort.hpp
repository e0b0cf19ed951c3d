// order/bucket_sort: the samples of an order sorted into buckets, on all cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <penstock/core/error.hpp>

#include "src/order/bucket_table.hpp"
#include "src/order/order.hpp"

namespace penstock::order {

inline constexpr std::size_t kMostBuckets = 4096;
/// In place of a bucket: the sample is in none.
inline constexpr std::uint16_t kNoBucket = 0xFFFF;

/// Says in which bucket each of some samples is. Those at positions [first, first + samples.size()) of the order.
///
/// Threads  called by any number at once, with different positions
using FindBuckets = std::function<void(std::uint64_t first, std::span<const SampleId> samples,
                                       std::span<std::uint16_t> buckets)>;

/// Sorts the samples of the order's first iteration into rows.size() <= kMostBuckets buckets. A batch of bucket k has
/// rows[k] samples; its last one, when it is not full, is short or left out. What `find` throws comes out.
///
/// Memory  4 bytes a sample, or 8 from 2^32 samples on; while it is made 2 more, and 16 bytes a bucket for every 65,536
///         samples
[[nodiscard]] std::shared_ptr<const BucketTable> sort_into_buckets(
    const Order& order, std::span<const std::uint64_t> rows, bool drops_last,
    const FindBuckets& find);

}  // namespace penstock::order
