// loader/step_cursor: from a step number to its samples, and which replica gets which. Arithmetic
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <penstock/batch/slicing.hpp>
#include <penstock/core/sample_id.hpp>
#include <penstock/order/order.hpp>

#include "src/loader/plan.hpp"

namespace penstock::loader {

/// A global batch in numbers.
struct DrawnStep {
  std::vector<SampleId> ids;  // of all replicas, in row order
  std::vector<Slice> slices;  // of all replicas; their samples lie one behind the other in ids
};

/// Reads one order for all replicas, or (shard_early) one for each.
///
/// Threads  one caller at a time.
class StepCursor {
 public:
  StepCursor(const Plan& plan, std::uint64_t seed, const Slicing& slicing);

  /// The samples of global batch `step`; none when there is no such step.
  [[nodiscard]] std::optional<DrawnStep> draw(std::uint64_t step);
  /// Steps in the whole plan; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> steps() const noexcept { return steps_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  Slicing slicing_;
  std::vector<std::unique_ptr<OrderCursor>> samples_;  // one, or one per replica
  std::unique_ptr<OrderCursor> batches_;
  std::optional<std::uint64_t> steps_;
};

}  // namespace penstock::loader
