// plan/by_length: what batch_by_length needs of the plan before it, and gives to the one after.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/source/source.hpp>

#include "src/order/order.hpp"
#include "src/plan/operations.hpp"
#include "src/sequence/sorted.hpp"

namespace penstock::plan {

/// Errors  std::invalid_argument  options that contradict each other, or do not fit the samples' fields
void check_options(std::span<const FieldSpec> fields, const ByLengthOptions& options);

/// Errors  as sequence::sort_by_length
[[nodiscard]] sequence::Sorted sort(const Source& source, const order::Order& order,
                                    const ByLengthOptions& options, bool drops_last);

/// What is done to the samples of a bucket, behind all maps.
[[nodiscard]] std::vector<TransformPtr> padding_of(const ByLengthOptions& options,
                                                   std::size_t bucket);

}  // namespace penstock::plan
