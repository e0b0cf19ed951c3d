// sequence/by_aspect: images sorted into buckets of similar aspects.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/sequence/buckets.hpp>
#include <penstock/source/source.hpp>

#include "src/order/order.hpp"
#include "src/sequence/sorted.hpp"

namespace penstock::sequence {

/// All but `sizes`.
///
/// Errors  std::invalid_argument  options that contradict each other; names the one to change
void check(const ByAspectOptions& options);

/// Rows of a full batch of each bucket, of options that check() takes.
[[nodiscard]] std::vector<std::uint64_t> rows_of(const ByAspectOptions& options);

/// Sorts the samples of an order of `source` by the aspects of their images, on all cores; `sizes` stand in for those
/// of the options. As sort_by_length.
///
/// Errors  std::invalid_argument  as check(); not one size for each record
///         Error                  with UnmatchedImages::error an image that fits no bucket; names it
[[nodiscard]] Sorted sort_by_aspect(const Source& source, const order::Order& order,
                                    const ByAspectOptions& options,
                                    std::span<const ImageSize> sizes, bool drops_last);

}  // namespace penstock::sequence
