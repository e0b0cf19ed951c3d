#include "src/loader/plan/by_length.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/transform/pad.hpp>

#include "src/loader/plan/branches.hpp"
#include "src/loader/plan/order.hpp"
#include "src/sequence/by_length.hpp"

namespace penstock::loader {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("batch_by_length: " + what);
}

}  // namespace

void check_sortable(const Plan& plan) {
  if (const Stream* const stream = plan.stream())
    refuse(
        fmt::format("{} is a stream, whose records come one by one, and all lengths must be known "
                    "before the first batch: write them to files first",
                    stream->fingerprint()));
  if (!std::holds_alternative<Read>(plan.input()) && !std::holds_alternative<Zip>(plan.input()))
    refuse(
        fmt::format("its samples must come from one source, and the plan begins with {}: give all "
                    "files to one source",
                    name_of(plan.input())));
  for (const Operation& operation : plan.operations()) {
    if (std::holds_alternative<Shuffle>(operation))
      refuse("it has a random order of its own: leave shuffle out");
    if (std::holds_alternative<Repeat>(operation))
      refuse("it makes the batches of one epoch: put repeat behind it");
    if (is_on_positions(operation) && !only_selects(operation))
      refuse(
          fmt::format("{} makes other samples in every epoch, and those of a batch by length are "
                      "the same: leave it out",
                      name_of(operation)));
  }
}

void sort_samples(const Plan& plan, Batch& batch) {
  if (!batch.by_length) return;
  const SourcePtr source = branches_of(plan).front().source;
  batch.sorted = std::make_shared<const sequence::SortedByLength>(
      sequence::sort_by_length(*source, *sample_order(plan, {}), *batch.by_length,
                               batch.options.remainder == Remainder::drop));
  batch.global_batch = 0;
  for (std::size_t bucket = 0; bucket < buckets_of(batch); ++bucket)
    batch.global_batch = std::max(batch.global_batch, rows_of(batch, bucket));
}

std::size_t buckets_of(const Batch& batch) noexcept {
  return batch.sorted ? batch.sorted->table->buckets() : 1;
}

std::uint64_t rows_of(const Batch& batch, std::size_t bucket) noexcept {
  return batch.sorted ? batch.sorted->table->rows(bucket) : batch.global_batch;
}

std::vector<TransformPtr> padding_of(const Batch& batch, std::size_t bucket) {
  std::vector<TransformPtr> padding;
  if (!batch.by_length) return padding;
  const ByLengthOptions& options = *batch.by_length;
  for (const ByLengthOptions::Field& field : options.fields)
    padding.push_back(pad({.field = field.name,
                           .to = options.edges[bucket],
                           .value = field.value,
                           .truncate = options.long_samples == LongSamples::truncate,
                           .lengths = padding.empty() ? options.lengths : std::string()}));
  return padding;
}

void forget_padding(const Batch& batch, std::vector<FieldSpec>& fields) {
  if (!batch.by_length) return;
  for (FieldSpec& field : fields) {
    if (std::ranges::find(batch.by_length->fields, field.name, &ByLengthOptions::Field::name) ==
        batch.by_length->fields.end())
      continue;
    std::vector<std::int64_t> extents(field.shape.extents().begin(), field.shape.extents().end());
    extents.front() = kDynamic;
    field.shape = Shape(extents);
  }
}

order::BucketOrder bucket_order(const Batch& batch, std::uint64_t seed) {
  const ByLengthOptions& options = *batch.by_length;
  const std::uint64_t own = options.seed.value_or(seed);
  order::BucketOrder order{.of_batches = RandomKey(own, kBatches),
                           .of_buckets = {},
                           .shuffle = options.shuffle,
                           .reshuffle = options.reshuffle_each_epoch};
  for (std::uint32_t bucket = 0; bucket < buckets_of(batch); ++bucket)
    order.of_buckets.emplace_back(own, kBatches, 1 + bucket);
  return order;
}

}  // namespace penstock::loader
