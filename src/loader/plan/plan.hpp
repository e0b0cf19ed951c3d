// loader/plan/plan: what a Dataset holds. Immutable once made; Dataset's calls copy it and add to the
// copy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <penstock/device/device.hpp>
#include <penstock/device/finish.hpp>
#include <penstock/loader/options.hpp>
#include <penstock/source/source.hpp>
#include <penstock/source/stream.hpp>
#include <penstock/transform/transform.hpp>

#include "src/batch/slicing.hpp"
#include "src/order/mix.hpp"
#include "src/order/order.hpp"

namespace penstock::loader {

// Operation numbers keep the random numbers of a plan's operations apart: those on positions count
// from 0, transforms from here, so that a map has the same numbers before and after a shuffle.
inline constexpr std::uint32_t kFirstTransform = 0x100;
inline constexpr std::uint32_t kReplacement = 0x200;
inline constexpr std::uint32_t kFinish = 0x300;
// The operations of one joined dataset, apart from those of the next.
inline constexpr std::uint32_t kBranchStride = 0x1000;

/// What an order needs to know when it is made for a run.
struct OrderContext {
  std::uint64_t seed = 0;
  std::uint32_t lane = 0;  // whose order it is, where there are several
  std::uint32_t lanes = 1;
  ShardPolicy shards = ShardPolicy::data;  // what a lane has of the sources
  std::uint32_t branch = 0;                // number of the first source in it
  std::span<const MixWeights> weights{};   // instead of those of the outermost mix
  std::stop_token stop{};                  // ends the waiting for a stream

  /// The key of an operation on positions; an operation may have a seed of its own.
  [[nodiscard]] RandomKey key(std::uint32_t operation,
                              std::optional<std::uint64_t> own = {}) const {
    return {own.value_or(seed), operation + kBranchStride * branch, lane};
  }
};

using MakeOrder = std::function<OrderPtr(const OrderContext&)>;
using AddToOrder = std::function<OrderPtr(OrderPtr, const OrderContext&)>;

/// One source, and what is done to each of its records.
struct Branch {
  SourcePtr source;
  std::vector<TransformPtr> transforms;
  std::optional<std::uint64_t> seed;  // where it is not the plan's
  MakeOrder candidates;               // samples that a replacement may be taken from
};

struct BatchPlan {
  std::uint64_t global_batch = 0;
  BatchOptions options;
};

struct Plan {
  std::vector<Branch> branches;  // SampleId::source counts them
  MakeOrder samples;             // the order before batch
  AddToOrder batches;            // operations after batch, on numbers of batches
  std::optional<BatchPlan> batch;
  std::vector<Finish> finishes;
  std::vector<Device> devices;  // empty before prefetch_to_devices
  PrefetchOptions prefetch;

  std::optional<std::uint64_t> seed;  // Dataset::seed, or the first shuffle's own
  bool seed_given = false;            // by Dataset::seed
  std::uint32_t operations = 0;       // on positions, so far
  bool plain = true;                  // a source and maps, nothing on positions
  bool selecting = true;              // nothing on positions but take, skip, shard and select
  std::uint64_t window = 0;           // the largest shuffle buffer
  std::vector<double> mix_weights;    // of the mix that global batches are cut from; else empty
  std::vector<std::pair<std::int64_t, std::int64_t>> shards;  // as shard() was called
  std::vector<std::string> texts;                             // the operations as written

  /// The order of the samples before batch, for its size and for errors.
  [[nodiscard]] OrderPtr sample_order() const { return samples({}); }
  /// The order of the batches of passes of `per_pass` (endless if none): its numbers are batches of
  /// a pass, its epochs are passes.
  [[nodiscard]] OrderPtr batch_order(std::uint64_t plan_seed,
                                     std::optional<std::uint64_t> per_pass) const;
  /// Global batches in one pass, of lanes that have `sizes` samples each; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> batches_per_pass(
      std::span<const std::optional<std::uint64_t>> sizes) const;
  /// Size of an order of batches; none when endless.
  [[nodiscard]] static std::optional<std::uint64_t> steps(const Order& batches) noexcept;
  /// Source and operations, joined by points.
  [[nodiscard]] std::string describe() const;
  /// The plan's source, where it is a stream; then it is the only one.
  [[nodiscard]] const Stream* stream() const noexcept;
  /// Of all sources.
  [[nodiscard]] std::string fingerprint() const;
};

/// The samples of one source that a lane has, in their order: all of them, or those in `kept`.
[[nodiscard]] MakeOrder source_order(SourcePtr source,
                                     std::shared_ptr<const std::vector<std::uint64_t>> kept = {});

}  // namespace penstock::loader
