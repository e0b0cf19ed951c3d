#include "src/loader/step_cursor.hpp"

namespace penstock::loader {

StepCursor::StepCursor(const Plan& plan, std::uint64_t seed, const Slicing& slicing)
    : slicing_(slicing) {
  const std::vector<OrderPtr> orders = plan.sample_orders(seed, slicing);
  for (const OrderPtr& order : orders) samples_.push_back(order->open());
  const OrderPtr batches = plan.batch_order(seed, plan.batches_per_pass(orders));
  batches_ = batches->open();
  steps_ = Plan::steps(*batches);
}

std::optional<DrawnStep> StepCursor::draw(std::uint64_t step) {
  SampleId
      batch;  // its epoch is the pass over the samples, its number that of the batch in the pass
  if (batches_->read(0, step, 1, {&batch, 1}) == 0) return std::nullopt;

  DrawnStep drawn;
  drawn.ids.resize(slicing_.global_batch());
  const std::uint64_t share = slicing_.global_batch() / samples_.size();
  std::vector<std::uint64_t> counts;
  std::size_t filled = 0;
  for (const auto& cursor : samples_) {
    const auto room = std::span(drawn.ids).subspan(filled, share);
    counts.push_back(cursor->read(batch.epoch, batch.number * share, 1, room));
    filled += counts.back();
  }
  drawn.ids.resize(filled);
  if (filled == 0) return std::nullopt;
  drawn.slices = samples_.size() == 1 ? slicing_.slices(step, filled) : slicing_.slices_of(counts);
  return drawn;
}

std::size_t StepCursor::memory_bytes() const noexcept {
  std::size_t total = 0;
  for (const auto& cursor : samples_) total += cursor->memory_bytes();
  return total;
}

}  // namespace penstock::loader
