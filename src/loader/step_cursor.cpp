#include "src/loader/step_cursor.hpp"

#include <algorithm>

#include "src/plan/buckets.hpp"
#include "src/sequence/sorted.hpp"

namespace penstock::loader {

StepCursor::StepCursor(const plan::Plan& plan, std::uint64_t seed, const Topology& topology,
                       std::span<const order::MixWeights> weights, std::stop_token stop)
    : slicings_(topology.slicings),
      locality_(topology.locality),
      is_stream_(plan.stream() != nullptr),
      first_group_(topology.group_of(topology.first_replica)),
      own_groups_(topology.group_of(topology.first_replica + topology.own_replicas - 1) + 1 -
                  first_group_) {
  std::vector<std::optional<std::uint64_t>> sizes;
  for (std::uint32_t group = 0; group < topology.groups; ++group) {
    groups_.push_back({.order = sample_order(plan, {.seed = seed,
                                                    .group = group,
                                                    .groups = topology.groups,
                                                    .shards = topology.shards,
                                                    .weights = weights,
                                                    .stop = stop})});
    sizes.push_back(groups_.back().order->size());
    if (group - first_group_ < own_groups_) groups_.back().open();
  }
  if (const plan::Batch& batch = plan.batch(); batch.sorted)
    buckets_.emplace(*groups_.front().order, batch.sorted->table, bucket_order(batch, seed));
  const order::OrderPtr batches = batch_order(plan, seed, batches_per_pass(plan, sizes));
  batches_ = batches->open();
  steps_ = plan::steps_of(*batches);
}

std::optional<DrawnStep> StepCursor::draw(std::uint64_t step) {
  // Its epoch is the pass over the samples, its number that of the batch in the pass. How often it
  // has been drawn is left out: a batch that comes again is the same one.
  SampleId batch;
  if (batches_->read(0, step, 1, {&batch, 1}) == 0) return std::nullopt;
  std::optional<DrawnStep> drawn =
      buckets_ ? draw_of_bucket(step, batch) : draw_consecutive(step, batch);
  if (drawn && locality_) send_home(*drawn);
  return drawn;
}

// Sorts the samples by the replicas that get them.
void StepCursor::send_home(DrawnStep& drawn) const {
  drawn.rows = locality_->rows(drawn.ids, drawn.slices);
  std::vector<SampleId> ids;
  ids.reserve(drawn.rows.size());
  for (const std::uint64_t row : drawn.rows) ids.push_back(drawn.ids[row]);
  drawn.ids = std::move(ids);
}

DrawnStep StepCursor::draw_of_bucket(std::uint64_t step, const SampleId& batch) {
  DrawnStep drawn;
  const order::BucketTable::Part part = buckets_->read(batch.epoch, batch.number, drawn.ids);
  drawn.samples = drawn.ids.size();
  drawn.epoch = batch.epoch;
  drawn.bucket = part.bucket;
  drawn.slices = slicings_[part.bucket].slices(step, drawn.samples);
  return drawn;
}

std::optional<DrawnStep> StepCursor::draw_consecutive(std::uint64_t step, const SampleId& batch) {
  DrawnStep drawn;
  const batch::Slicing& slicing = slicings_.front();
  drawn.first_replica = first_group_ * static_cast<std::uint32_t>(slicing.replicas());
  const std::uint64_t share = slicing.global_batch();
  const std::uint64_t first = batch.number * share;
  std::uint64_t first_row = 0;
  bool has_epoch = false;
  for (std::uint32_t number = 0; number < groups_.size(); ++number) {
    Group& group = groups_[number];
    const bool own = number - first_group_ < own_groups_;
    const std::size_t filled = drawn.ids.size();
    std::uint64_t count = 0;
    if (own) {
      drawn.ids.resize(filled + share);
      count = group.open().read(batch.epoch, first, 1, std::span(drawn.ids).subspan(filled));
      drawn.ids.resize(filled + count);
    } else {
      const std::uint64_t size = group.order->size().value_or(first + share);
      count = std::min(share, size - std::min(size, first));
    }
    // A stream of another process is not here.
    if (!has_epoch && count > 0 && (own || !is_stream_)) {
      has_epoch = true;
      SampleId first_sample;
      if (own)
        first_sample = drawn.ids[filled];
      else
        group.open().read(batch.epoch, first, 1, {&first_sample, 1});
      drawn.epoch = first_sample.epoch;
    }
    drawn.samples += count;

    std::vector<batch::Slice> slices = slicing.slices(step, count);
    for (batch::Slice& slice : slices) slice.first += first_row;
    first_row = slices.back().first + slices.back().rows;
    if (own) drawn.slices.insert(drawn.slices.end(), slices.begin(), slices.end());
  }
  if (drawn.samples == 0 || (is_stream_ && drawn.ids.empty())) return std::nullopt;
  // Of a stream it is not known beforehand which batch is the last.
  const bool drops = slicing.remainder() == Remainder::drop;
  if (drops && drawn.samples < share * groups_.size()) return std::nullopt;
  return drawn;
}

std::size_t StepCursor::memory_bytes() const noexcept {
  std::size_t total = 0;
  for (const Group& group : groups_)
    if (group.cursor) total += group.cursor->memory_bytes();
  if (buckets_) total += buckets_->memory_bytes();
  return total;
}

}  // namespace penstock::loader
