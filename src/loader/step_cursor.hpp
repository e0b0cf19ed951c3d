// loader/step_cursor: from a step number to its samples, and which replica gets which. Arithmetic
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/batch/slicing.hpp"
#include "src/loader/topology.hpp"
#include "src/order/bucket_table.hpp"
#include "src/order/order.hpp"
#include "src/plan/order.hpp"
#include "src/plan/plan.hpp"

namespace penstock::loader {

/// A global batch in numbers.
struct DrawnStep {
  std::uint64_t samples = 0;  // of all replicas
  std::size_t bucket = 0;     // whose batch it is
  std::uint32_t epoch = 0;    // of the first of them
  /// One a replica, from first_replica on: those that share an order with this process's. Their
  /// samples are contiguous in ids.
  std::vector<batch::Slice> slices;
  std::uint32_t first_replica = 0;
  std::vector<SampleId> ids;
  /// Of each of ids, which row it is, where rows go to their homes; else empty: the rows of the slices.
  std::vector<std::uint64_t> rows;
};

/// Reads the orders of this process's groups; what the others have is only counted.
///
/// Threads  one caller at a time.
class StepCursor {
 public:
  /// `weights` take the place of the outermost mix's, where there are any; `stop` ends the waiting
  /// for a stream, which then has no more steps.
  StepCursor(const plan::Plan& plan, std::uint64_t seed, const Topology& topology,
             std::span<const order::MixWeights> weights, std::stop_token stop = {});

  /// The samples of global batch `step`; none when there is no such step, and where a stream has ended.
  [[nodiscard]] std::optional<DrawnStep> draw(std::uint64_t step);
  /// Steps in the whole plan; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> steps() const noexcept { return steps_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  struct Group {
    order::OrderPtr order;
    std::unique_ptr<order::OrderCursor>
        cursor;  // of another process's: opened when it is first read
    order::OrderCursor& open() {
      if (!cursor) cursor = order->open();
      return *cursor;
    }
  };

  [[nodiscard]] std::optional<DrawnStep> draw_consecutive(std::uint64_t step,
                                                          const SampleId& batch);
  [[nodiscard]] DrawnStep draw_of_bucket(std::uint64_t step, const SampleId& batch);
  void send_home(DrawnStep& drawn) const;

  std::vector<batch::Slicing> slicings_;  // of a group
  std::shared_ptr<const batch::Locality> locality_;
  bool is_stream_;
  std::uint32_t first_group_;
  std::uint32_t own_groups_;
  std::vector<Group> groups_;
  std::optional<order::BucketCursor> buckets_;  // then there is one group
  std::unique_ptr<order::OrderCursor> batches_;
  std::optional<std::uint64_t> steps_;
};

}  // namespace penstock::loader
