// sequence/by_length: samples sorted into buckets of similar lengths.
#pragma once

#include <cstdint>
#include <vector>

#include <penstock/sequence/buckets.hpp>
#include <penstock/source/source.hpp>

#include "src/order/order.hpp"
#include "src/sequence/sorted.hpp"

namespace penstock::sequence {

/// Errors  std::invalid_argument  options that contradict each other; names the one to change
void check(const ByLengthOptions& options);

/// Rows of a full batch of each bucket, of options that check() takes.
[[nodiscard]] std::vector<std::uint64_t> rows_of(const ByLengthOptions& options);

/// Sorts the samples of an order of `source` by their lengths, on all cores. The order's first iteration counts. A bucket's
/// last batch, when it is not full, is short or left out.
///
/// Memory  as order::sort_into_buckets
/// Errors  std::invalid_argument  as check()
///         Error                  a length that is not known or damaged; with LongSamples::error a sample that is too
///                                long; names it
[[nodiscard]] Sorted sort_by_length(const Source& source, const order::Order& order,
                                    const ByLengthOptions& options, bool drops_last);

}  // namespace penstock::sequence
