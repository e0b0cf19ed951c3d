#include "src/loader/step_cursor.hpp"

namespace penstock::loader {

StepCursor::StepCursor(const Plan& plan, std::uint64_t seed)
    : global_batch_(plan.batch->global_batch) {
  const OrderPtr samples = plan.sample_order(seed);
  const OrderPtr batches = plan.batch_order(seed);
  samples_ = samples->open();
  batches_ = batches->open();
  // The batches of an endless pass are numbered without end, and take() makes them finite again.
  steps_ = batches->size();
  if (!samples->size() && plan.batch_ops.empty()) steps_ = std::nullopt;
}

bool StepCursor::draw(std::uint64_t step, std::vector<SampleId>& ids) {
  ids.clear();
  SampleId batch;
  if (batches_->read(0, step, 1, {&batch, 1}) == 0) return false;
  ids.resize(global_batch_);
  ids.resize(samples_->read(batch.epoch, batch.number * global_batch_, 1, ids));
  return !ids.empty();
}

}  // namespace penstock::loader
