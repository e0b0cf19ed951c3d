// loader/plan: what a Dataset holds. Immutable once made; Dataset's calls copy it and add to the
// copy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <penstock/batch/slicing.hpp>
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

/// What an operation on positions needs to know when it is applied.
struct OpContext {
  std::uint64_t seed = 0;
  std::uint32_t lane = 0;  // the replica, where each has its own order
};

/// One operation on positions; applied when the seed is known.
struct OrderOp {
  std::function<OrderPtr(OrderPtr, const OpContext&)> apply;
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

  /// The order of the samples before batch, for its size and for errors.
  [[nodiscard]] OrderPtr sample_order() const;
  /// The orders that global batches are drawn from: one, or one for each replica of shard_early.
  [[nodiscard]] std::vector<OrderPtr> sample_orders(std::uint64_t plan_seed,
                                                    const Slicing& slicing) const;
  /// For each of these, the samples that a replacement may be taken from: the source with the
  /// selections that stand before anything random.
  [[nodiscard]] std::vector<OrderPtr> candidates(const Slicing& slicing) const;
  /// Global batches in one pass over these orders; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> batches_per_pass(
      const std::vector<OrderPtr>& orders) const;
  /// Size of an order of batches; none when endless.
  [[nodiscard]] static std::optional<std::uint64_t> steps(const Order& batches) noexcept;
  /// The order of the batches: its numbers are batches of a pass, its epochs are passes.
  [[nodiscard]] OrderPtr batch_order(std::uint64_t plan_seed,
                                     std::optional<std::uint64_t> per_pass) const;
  /// Orders that a step is drawn from.
  [[nodiscard]] static std::uint64_t lanes_of(const Slicing& slicing) noexcept {
    return slicing.split() == Split::shard_early ? slicing.replicas() : 1;
  }
  /// Source and operations, joined by points.
  [[nodiscard]] std::string describe() const;
};

}  // namespace penstock::loader
