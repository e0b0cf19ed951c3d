#include "src/loader/plan/by_length.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/loader/plan/branches.hpp"
#include "src/loader/plan/order.hpp"
#include "src/sequence/by_length.hpp"
#include "src/source/zip.hpp"
#include "src/transform/pad.hpp"

namespace penstock::loader {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("batch_by_length: " + what);
}

void check_fields(const std::vector<FieldSpec>& fields, const ByLengthOptions& options) {
  for (const ByLengthOptions::Field& padded : options.fields)
    if (std::ranges::find(fields, padded.name, &FieldSpec::name) == fields.end())
      refuse(fmt::format(
          "the samples have no field '{}', which is to be padded: name theirs in fields",
          padded.name));
  for (const FieldSpec& field : fields) {
    const bool padded = std::ranges::find(options.fields, field.name,
                                          &ByLengthOptions::Field::name) != options.fields.end();
    if (field.shape.is_dynamic() && !padded)
      refuse(fmt::format(
          "'{}' differs from sample to sample, too: name it in fields, or map it to one "
          "shape",
          field.to_string()));
    if (!padded && field.name == options.lengths)
      refuse(
          fmt::format("the samples have a field '{}' already: give `lengths` another name, or an "
                      "empty one for none",
                      field.name));
  }
}

}  // namespace

void check_sortable(const Plan& plan, const ByLengthOptions& options) {
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
  sequence::check(options);
  check_fields(fields_of(plan), options);
}

void sort_samples(const Plan& plan, Batch& batch) {
  if (!batch.by_length) return;
  const SourcePtr source = branches_of(plan).front().source;
  batch.sorted = std::make_shared<const sequence::SortedByLength>(sequence::sort_by_length(
      source::source_of_field(*source, batch.by_length->fields.front().name),
      *sample_order(plan, {}), *batch.by_length, batch.options.remainder == Remainder::drop));
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
  // Samples of the other buckets are shorter than the edge, as far as their source knows.
  const bool is_last = bucket + 1 == options.edges.size();
  for (const ByLengthOptions::Field& field : options.fields)
    padding.push_back(transform::pad(
        {.field = field.name,
         .to = options.edges[bucket],
         .value = field.value,
         .truncate = is_last && options.long_samples == LongSamples::truncate,
         .lengths = padding.empty() ? options.lengths : std::string()},
        fmt::format(
            "batch_by_length has it among those of at most {}, by the length that its source "
            "knows: a map made it longer, another field is longer than '{}', or its file was "
            "changed",
            options.edges[bucket], options.fields.front().name)));
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
