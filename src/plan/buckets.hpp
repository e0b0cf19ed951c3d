// plan/buckets: batches of samples that were sorted into buckets: by_length, by_aspect. A plain batch has one
// bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/tensor.hpp>

#include "src/order/bucket_table.hpp"
#include "src/plan/plan.hpp"

namespace penstock::plan {

/// "batch(64)", "batch_by_length": for errors.
[[nodiscard]] std::string call_of(const Batch& batch);

/// Errors  std::invalid_argument  samples of `plan` have an order of their own, or differ from epoch to epoch; says
///                                what to leave out; options that contradict each other, or do not fit the samples'
///                                fields
void check_sortable(const Plan& plan, const Batch& batch);

/// Where `batch` has buckets: sorts the samples of `plan`.
///
/// Errors  as sequence::sort_by_length and sort_by_aspect
void sort_samples(const Plan& plan, Batch& batch);

[[nodiscard]] std::size_t buckets_of(const Batch& batch) noexcept;
/// Rows of a full global batch.
[[nodiscard]] std::uint64_t rows_of(const Batch& batch, std::size_t bucket) noexcept;
/// "samples up to 512": for errors.
[[nodiscard]] std::string describe_bucket(const Batch& batch, std::size_t bucket);
/// What is done to the samples of a bucket only, behind all maps.
[[nodiscard]] std::vector<TransformPtr> maps_of(const Batch& batch, std::size_t bucket);
/// Makes extents ? that are others in `others`, fields of another bucket.
///
/// Errors  std::invalid_argument  they differ in more than that
void forget_differences(std::vector<FieldSpec>& fields, std::span<const FieldSpec> others);

/// Of the options that sort into buckets; none where there are none.
[[nodiscard]] std::optional<std::uint64_t> seed_of(const Batch& batch) noexcept;
/// Which batches come when, of a batch with buckets.
[[nodiscard]] order::BucketOrder bucket_order(const Batch& batch, std::uint64_t seed);

}  // namespace penstock::plan
