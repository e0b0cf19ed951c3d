// loader/step_cursor: from a step number to the sample numbers of its global batch. Arithmetic
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <penstock/core/sample_id.hpp>
#include <penstock/order/order.hpp>

#include "src/loader/plan.hpp"

namespace penstock::loader {

/// Threads  one caller at a time.
class StepCursor {
 public:
  StepCursor(const Plan& plan, std::uint64_t seed);

  /// Fills `ids` with the samples of global batch `step`. False, and no ids, when there is no such
  /// step.
  bool draw(std::uint64_t step, std::vector<SampleId>& ids);
  /// Steps in the whole plan; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> steps() const noexcept { return steps_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return samples_->memory_bytes(); }

 private:
  std::unique_ptr<OrderCursor> samples_;
  std::unique_ptr<OrderCursor> batches_;
  std::uint64_t global_batch_;
  std::optional<std::uint64_t> steps_;
};

}  // namespace penstock::loader
