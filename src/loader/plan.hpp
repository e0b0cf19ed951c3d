// loader/plan: what a Dataset holds. Immutable once made; Dataset's calls copy it and add to the
// copy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <penstock/device/device.hpp>
#include <penstock/loader/options.hpp>
#include <penstock/order/order.hpp>
#include <penstock/source/source.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock::loader {

// Operation numbers keep the random numbers of a plan's operations apart: those on positions count
// from 0, transforms from here, so that a map has the same numbers before and after a shuffle.
inline constexpr std::uint32_t kFirstTransform = 0x100;
inline constexpr std::uint32_t kReplacement = 0x200;

/// One operation on positions; applied when the seed is known.
struct OrderOp {
  std::function<OrderPtr(OrderPtr, std::uint64_t seed)> apply;
  /// take, skip or shard: which samples there are at all, whatever the epoch.
  bool selects = false;
};

struct BatchPlan {
  std::uint64_t global_batch = 0;
  BatchOptions options;
};

struct Plan {
  SourcePtr source;
  std::optional<std::uint64_t> seed;  // Dataset::seed, or the first shuffle's own
  bool seed_given = false;            // by Dataset::seed
  std::vector<OrderOp> sample_ops;
  std::vector<TransformPtr> transforms;
  std::optional<BatchPlan> batch;
  std::vector<OrderOp> batch_ops;
  std::vector<Device> devices;  // empty before prefetch_to_devices
  PrefetchOptions prefetch;
  std::vector<std::string> texts;  // the operations as written

  /// The order of the samples, before batch.
  [[nodiscard]] OrderPtr sample_order(std::uint64_t plan_seed) const;
  /// The samples that a replacement may be taken from: the source with the selections that stand
  /// before anything random.
  [[nodiscard]] OrderPtr candidates() const;
  /// The order of the batches: its numbers are batches of a pass, its epochs are passes.
  [[nodiscard]] OrderPtr batch_order(std::uint64_t plan_seed) const;
  /// Batches in one pass over the samples; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> batches_per_pass(const Order& samples) const;
  /// Source and operations, joined by points.
  [[nodiscard]] std::string describe() const;
};

}  // namespace penstock::loader
