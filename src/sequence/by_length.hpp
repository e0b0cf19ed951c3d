// sequence/by_length: samples sorted into buckets of similar lengths.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <penstock/sequence/by_length.hpp>
#include <penstock/source/source.hpp>

#include "src/order/bucket_table.hpp"
#include "src/order/order.hpp"

namespace penstock::sequence {

/// Errors  std::invalid_argument  options that contradict each other; names the one to change
void check(const ByLengthOptions& options);

/// Rows of a full batch of each bucket, of options that check() takes.
[[nodiscard]] std::vector<std::uint64_t> rows_of(const ByLengthOptions& options);

/// What came of sorting.
struct SortedByLength {
  std::shared_ptr<const order::BucketTable> table;
  ByLengthSummary summary;
  std::uint64_t hash = 0;  ///< of all lengths, in the order's order
};

/// Sorts the samples of an order of `source` by their lengths, on all cores. The order's first iteration counts. A bucket's
/// last batch, when it is not full, is short or left out.
///
/// Memory  4 bytes a sample, or 8 from 2^32 samples on; while it is made 2 more, and 24 bytes a bucket for every 65,536
///         samples
/// Errors  std::invalid_argument  as check()
///         Error                  a length that is not known or damaged; with LongSamples::refuse a sample that is too
///                                long; names it
[[nodiscard]] SortedByLength sort_by_length(const Source& source, const order::Order& order,
                                            const ByLengthOptions& options, bool drops_last);

}  // namespace penstock::sequence
