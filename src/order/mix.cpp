#include "src/order/mix.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/order/joined.hpp"
#include "src/order/mix_phases.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

using Phases = std::shared_ptr<const std::vector<order::MixPhase>>;

class MixCursor final : public OrderCursor {
 public:
  MixCursor(std::vector<std::unique_ptr<OrderCursor>> inputs, Phases phases, const RandomKey& key)
      : inputs_(std::move(inputs)), phases_(std::move(phases)), key_(key) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    const std::uint64_t size = phases_->empty() ? 0 : phases_->back().end;
    return order::read_in_chunks(*this, size, iteration, first, stride, out);
  }

  void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
               std::span<SampleId> out) override {
    buckets_.sort(positions, inputs_.size(),
                  [&](std::uint64_t position) { return place(iteration, position); });
    buckets_.read(inputs_, iteration, out);
  }

  std::size_t memory_bytes() const noexcept override {
    std::size_t total =
        sizeof(*this) + buckets_.memory_bytes() + block_.turns.capacity() * sizeof(block_.turns[0]);
    for (const auto& input : inputs_) total += input->memory_bytes();
    return total;
  }

 private:
  // Which input a position goes to, and which position of it that is.
  std::pair<std::size_t, std::uint64_t> place(std::uint32_t iteration, std::uint64_t position) {
    const auto phase = std::ranges::partition_point(
        *phases_, [&](const order::MixPhase& one) { return one.end <= position; });
    const std::uint64_t number = (position - phase->start) / phase->block;
    const std::uint64_t first = phase->start + number * phase->block;
    if (block_.turns.empty() || iteration != iteration_ || first != first_) {
      block_.fill(*phase, number, key_, iteration);
      iteration_ = iteration;
      first_ = first;
    }
    const auto [input, rank] = block_.turns[position - first];
    return {input, phase->begin[input] + number * phase->quotas[input] + rank};
  }

  std::vector<std::unique_ptr<OrderCursor>> inputs_;
  Phases phases_;
  RandomKey key_;
  order::MixBlock block_;  // the one at first_ of iteration_
  std::uint32_t iteration_ = 0;
  std::uint64_t first_ = 0;
  order::Buckets buckets_;
};

class Mix final : public Order {
 public:
  Mix(std::vector<OrderPtr> inputs, Phases phases, const RandomKey& key)
      : inputs_(std::move(inputs)), phases_(std::move(phases)), key_(key) {}

  std::optional<std::uint64_t> size() const noexcept override {
    if (phases_->empty()) return 0;
    const std::uint64_t end = phases_->back().end;
    return end == order::kEndless ? std::nullopt : std::optional(end);
  }
  std::optional<std::uint32_t> epochs() const noexcept override {
    return order::most_epochs(inputs_);
  }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<MixCursor>(order::open_all(inputs_), phases_, key_);
  }
  std::string describe() const override { return "mix(" + order::describe_all(inputs_) + ")"; }

 private:
  std::vector<OrderPtr> inputs_;
  Phases phases_;
  RandomKey key_;
};

void check_weights(const MixWeights& weights, std::size_t inputs) {
  if (weights.weights.size() != inputs)
    throw std::invalid_argument(
        fmt::format("mix: expected one weight for each of {} inputs, found {}", inputs,
                    weights.weights.size()));
  std::size_t positive = 0;
  for (std::size_t k = 0; k < inputs; ++k) {
    const double weight = weights.weights[k];
    if (!std::isfinite(weight) || weight < 0)
      throw std::invalid_argument(fmt::format(
          "mix: weight {} is {}: weights are finite and not negative; 0 leaves an input out", k,
          weight));
    positive += weight > 0 ? 1 : 0;
  }
  if (positive == 0)
    throw std::invalid_argument("mix: all weights are 0, so there is nothing to mix");
  if (positive > order::kMostMixBlock)
    throw std::invalid_argument(
        fmt::format("mix: {} inputs have a weight, and a block has {} places: concatenate some of "
                    "them first",
                    positive, order::kMostMixBlock));
  const double sum = std::accumulate(weights.weights.begin(), weights.weights.end(), 0.0);
  for (std::size_t k = 0; k < inputs; ++k)
    if (const double share = weights.weights[k] / sum;
        share > 0 && share * order::kMostMixBlock < 0.5)
      throw std::invalid_argument(fmt::format(
          "mix: weight {} is {}, a share of {:.2g}, and the smallest share is 1/{}: give it {:.3g} "
          "or more, or 0",
          k, weights.weights[k], share, order::kMostMixBlock, sum / order::kMostMixBlock));
  const std::vector<std::uint32_t> quotas = mix_quotas(weights.weights);
  if (const std::uint32_t block = std::accumulate(quotas.begin(), quotas.end(), 0U);
      block > order::kMostMixBlock)
    throw std::invalid_argument(
        fmt::format("mix: inputs whose share is less than 1/{0} get that, and all of them together "
                    "need a block "
                    "of {1} places, more than {0}: concatenate some of them first",
                    order::kMostMixBlock, block));
}

}  // namespace

OrderPtr mix(std::vector<OrderPtr> inputs, std::vector<MixWeights> weights, RandomKey key,
             MixUntil until) {
  if (inputs.empty()) throw std::invalid_argument("mix: expected at least one input, found none");
  if (weights.empty() || weights.front().position != 0 ||
      !std::ranges::is_sorted(weights, {}, &MixWeights::position))
    throw std::invalid_argument(
        "mix: weights come in the order of the positions from which they hold, the first at 0");
  for (const MixWeights& change : weights) check_weights(change, inputs.size());
  std::vector<std::optional<std::uint64_t>> sizes;
  for (const OrderPtr& input : inputs) {
    order::refuse_stream(*input, "mix");
    sizes.push_back(input->size());
  }
  auto phases = std::make_shared<const std::vector<order::MixPhase>>(
      order::mix_phases(sizes, weights, key, until));
  return std::make_shared<Mix>(std::move(inputs), std::move(phases), key);
}

}  // namespace penstock::order
