// loader/plan/by_length: what batch_by_length needs of the plan before it, and gives to the one after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <penstock/core/tensor.hpp>

#include "src/loader/plan/plan.hpp"
#include "src/order/bucket_table.hpp"

namespace penstock::loader {

/// Errors  std::invalid_argument  samples of `plan` have an order of their own, or differ from epoch to epoch; says what
///                                to leave out; options that contradict each other, or do not fit the samples' fields
void check_sortable(const Plan& plan, const ByLengthOptions& options);

/// Where `batch` is by length: sorts the samples of `plan`.
///
/// Errors  as sequence::sort_by_length
void sort_samples(const Plan& plan, Batch& batch);

/// Lengths that its batches are padded to; 1 for a batch that is not by length.
[[nodiscard]] std::size_t buckets_of(const Batch& batch) noexcept;
/// Rows of a full global batch.
[[nodiscard]] std::uint64_t rows_of(const Batch& batch, std::size_t bucket) noexcept;
/// What is done to the samples of a bucket, behind all maps.
[[nodiscard]] std::vector<TransformPtr> padding_of(const Batch& batch, std::size_t bucket);
/// Of fields after a padding: those of all buckets.
void forget_padding(const Batch& batch, std::vector<FieldSpec>& fields);

/// Which batches come when, of a batch by length.
[[nodiscard]] order::BucketOrder bucket_order(const Batch& batch, std::uint64_t seed);

}  // namespace penstock::loader
