// plan/order: from a plan to the orders of its samples and of its batches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include <penstock/core/random.hpp>
#include <penstock/order/mix.hpp>
#include <penstock/plan/options.hpp>

#include "src/order/order.hpp"
#include "src/plan/plan.hpp"

namespace penstock::plan {

/// The operations of one part of a mix or concatenate, apart from those of the next.
inline constexpr std::uint32_t kBranchStride = 0x1000;

/// What an order needs to know when it is made for a run.
struct OrderContext {
  std::uint64_t seed = 0;
  std::uint32_t group = 0;  // whose order it is, where there are several
  std::uint32_t groups = 1;
  ShardPolicy shards = ShardPolicy::data;        // what a group has of the sources
  std::uint32_t branch = 0;                      // number of the first source in it
  std::span<const order::MixWeights> weights{};  // instead of those of the outermost mix
  std::stop_token stop{};                        // ends the waiting for a stream

  /// The key of an operation on positions; an operation may have a seed of its own.
  [[nodiscard]] RandomKey key(std::uint32_t operation,
                              std::optional<std::uint64_t> own = {}) const {
    return {own.value_or(seed), operation + kBranchStride * branch, group};
  }
};

/// The order of the samples before batch.
///
/// Errors  std::invalid_argument  an operation that its input does not allow
[[nodiscard]] order::OrderPtr sample_order(const Plan& plan, const OrderContext& context);

/// For each source of the plan, the samples that a replacement may be taken from: those that take,
/// skip, shard, select and filter leave of it, before anything gives each epoch another order.
[[nodiscard]] std::vector<order::OrderPtr> candidates_of(const Plan& plan,
                                                         const OrderContext& context);

/// The order of the batches of passes of `per_pass` (endless if none): its numbers are batches of
/// a pass, its epochs are passes.
[[nodiscard]] order::OrderPtr batch_order(const Plan& plan, std::uint64_t seed,
                                          std::optional<std::uint64_t> per_pass);

/// Global batches in one pass, of groups that have `sizes` samples each; none when endless.
[[nodiscard]] std::optional<std::uint64_t> batches_per_pass(
    const Plan& plan, std::span<const std::optional<std::uint64_t>> sizes);

/// Size of an order of batches; none when endless.
[[nodiscard]] std::optional<std::uint64_t> steps_of(const order::Order& batches) noexcept;

/// The weights of the mix that global batches are cut from; empty where they are not.
[[nodiscard]] std::span<const double> changeable_weights(const Plan& plan) noexcept;

/// The largest shuffle buffer before batch, parts included; 0 where there is none.
[[nodiscard]] std::uint64_t largest_window(const Plan& plan) noexcept;

}  // namespace penstock::plan
