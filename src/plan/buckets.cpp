#include "src/plan/buckets.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/plan/branches.hpp"
#include "src/plan/by_aspect.hpp"
#include "src/plan/by_length.hpp"
#include "src/plan/order.hpp"
#include "src/sequence/sorted.hpp"

namespace penstock::plan {

namespace {

void check_order(const Plan& plan, const char* verb) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("{}: {}", verb, what));
  };
  if (const Stream* const stream = plan.stream())
    refuse(
        fmt::format("{} is a stream, whose records come one by one, and all of them must be known "
                    "before the first batch: write them to files first",
                    stream->fingerprint()));
  if (!std::holds_alternative<Read>(plan.input()) && !makes_one_source(plan.input()))
    refuse(
        fmt::format("its samples must come from one source, and the plan begins with {}: give all "
                    "files to one source",
                    name_of(plan.input())));
  for (const Operation& operation : plan.operations()) {
    if (std::holds_alternative<Shuffle>(operation))
      refuse("it has a random order of its own: leave shuffle out");
    if (std::holds_alternative<Repeat>(operation))
      refuse("it makes the batches of one epoch: put repeat behind it");
    if (std::holds_alternative<RepeatEach>(operation))
      refuse("its buckets have each sample once: put repeat_each behind it");
    if (is_on_positions(operation) && !traits_of(operation).selects)
      refuse(
          fmt::format("{} makes other samples in every epoch, and those of its buckets are the "
                      "same: leave it out",
                      name_of(operation)));
  }
}

sequence::Sorted sort_all(const Plan& plan, const Batch& batch) {
  const SourcePtr source = branches_of(plan).front().source;
  const order::OrderPtr order = sample_order(plan, {});
  const bool drops_last = batch.options.remainder == Remainder::drop;
  return std::visit(
      Overloaded{[](const std::monostate&) -> sequence::Sorted {
                   throw std::logic_error("a batch without buckets is not sorted");
                 },
                 [&](const auto& given) { return sort(*source, *order, given, drops_last); }},
      batch.buckets);
}

// How the batches are shuffled; the same options in all kinds.
order::BucketOrder order_of(const auto& options, std::uint64_t seed, std::size_t buckets) {
  const std::uint64_t own = options.seed.value_or(seed);
  order::BucketOrder order{.of_batches = RandomKey(own, kBatches),
                           .of_buckets = {},
                           .shuffle = options.shuffle,
                           .reshuffle = options.reshuffle_each_epoch};
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket)
    order.of_buckets.emplace_back(own, kBatches, 1 + bucket);
  return order;
}

}  // namespace

std::string call_of(const Batch& batch) {
  return std::visit(
      Overloaded{
          [&](const std::monostate&) { return fmt::format("batch({})", batch.global_batch); },
          [](const ByLengthOptions&) { return std::string("batch_by_length"); },
          [](const ByAspect&) { return std::string("batch_by_aspect"); }},
      batch.buckets);
}

void check_sortable(const Plan& plan, const Batch& batch) {
  check_order(plan, call_of(batch).c_str());
  std::visit(Overloaded{[](const std::monostate&) {},
                        [&](const auto& given) { check_options(fields_of(plan), given); }},
             batch.buckets);
}

void sort_samples(const Plan& plan, Batch& batch) {
  if (!batch.has_buckets()) return;
  batch.sorted = std::make_shared<const sequence::Sorted>(sort_all(plan, batch));
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

std::string describe_bucket(const Batch& batch, std::size_t bucket) {
  if (const ByLengthOptions* const options = batch.by_length())
    return fmt::format("samples up to {}", options->edges[bucket]);
  if (const ByAspect* const given = batch.by_aspect()) {
    const ImageSize shape = given->options.shapes[bucket];
    return fmt::format("images of {}x{}", shape.height, shape.width);
  }
  return "samples";
}

std::vector<TransformPtr> maps_of(const Batch& batch, std::size_t bucket) {
  if (const ByLengthOptions* const options = batch.by_length()) return padding_of(*options, bucket);
  if (const ByAspect* const given = batch.by_aspect()) return {given->maps[bucket]};
  return {};
}

void forget_differences(std::vector<FieldSpec>& fields, std::span<const FieldSpec> others) {
  const auto refuse = [](const std::string& here, const std::string& there) {
    throw std::invalid_argument(
        fmt::format("the buckets' samples differ in more than extents: one has {}, another {}: map "
                    "them alike",
                    here, there));
  };
  if (fields.size() != others.size())
    refuse(fmt::format("{} fields", fields.size()), fmt::format("{}", others.size()));
  for (std::size_t k = 0; k < fields.size(); ++k) {
    FieldSpec& field = fields[k];
    const FieldSpec& other = others[k];
    if (field.name != other.name || field.dtype != other.dtype ||
        field.shape.rank() != other.shape.rank())
      refuse(field.to_string(), other.to_string());
    std::vector<std::int64_t> extents(field.shape.extents().begin(), field.shape.extents().end());
    for (std::size_t d = 0; d < extents.size(); ++d)
      if (extents[d] != other.shape[d]) extents[d] = kDynamic;
    field.shape = Shape(extents);
  }
}

std::optional<std::uint64_t> seed_of(const Batch& batch) noexcept {
  if (const ByLengthOptions* const options = batch.by_length()) return options->seed;
  if (const ByAspect* const given = batch.by_aspect()) return given->options.seed;
  return std::nullopt;
}

order::BucketOrder bucket_order(const Batch& batch, std::uint64_t seed) {
  if (const ByAspect* const given = batch.by_aspect())
    return order_of(given->options, seed, buckets_of(batch));
  return order_of(*batch.by_length(), seed, buckets_of(batch));
}

}  // namespace penstock::plan
