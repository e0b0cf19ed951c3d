#include "src/plan/plan.hpp"

#include <algorithm>
#include <stdexcept>

#include "src/plan/buckets.hpp"
#include "src/plan/check.hpp"
#include "src/plan/chunks.hpp"

namespace penstock::plan {

PlanPtr Plan::starting_with(Operation input) {
  auto plan = std::make_shared<Plan>();
  plan->operations_.push_back(std::move(input));
  check_input(*plan);
  return plan;
}

PlanPtr Plan::with(Operation operation) const {
  check_before(*this, operation);
  if (ShuffleChunks* const shuffle = std::get_if<ShuffleChunks>(&operation))
    shuffle->begins = std::make_shared<const std::vector<std::uint64_t>>(find_chunks(*this));
  if (Batch* const batch = std::get_if<Batch>(&operation)) sort_samples(*this, *batch);
  auto plan = std::make_shared<Plan>(*this);
  plan->operations_.push_back(std::move(operation));
  check_after(*plan);
  return plan;
}

std::span<const PlanPtr> Plan::parts() const noexcept {
  return std::visit(
      []<class Kind>(const Kind& kind) -> std::span<const PlanPtr> {
        if constexpr (requires { kind.datasets; }) return kind.datasets;
        return {};
      },
      input());
}

Stream* Plan::stream() const noexcept {
  const auto* read = std::get_if<ReadStream>(&input());
  return read != nullptr ? read->stream.get() : nullptr;
}

std::vector<Device> Plan::devices() const {
  const Prefetch* prefetch = find<Prefetch>();
  return prefetch != nullptr ? prefetch->devices : host_devices(1);
}

PrefetchOptions Plan::prefetch() const {
  const Prefetch* prefetch = find<Prefetch>();
  return prefetch != nullptr ? prefetch->options : PrefetchOptions{};
}

const Batch& Plan::batch() const {
  if (const Batch* batch = find<Batch>()) return *batch;
  throw std::invalid_argument(
      "a loader delivers batches: put .batch(g) into the plan, .batch(1) for single samples");
}

std::optional<std::uint64_t> Plan::given_seed() const {
  std::optional<std::uint64_t> seed;
  for (const Operation& operation : operations_)
    if (const Seed* given = std::get_if<Seed>(&operation)) seed = given->seed;
  return seed;
}

std::optional<std::uint64_t> Plan::seed() const {
  std::optional<std::uint64_t> seed;
  for (const PlanPtr& part : parts())
    if (!seed && !makes_one_source(input())) seed = part->seed();
  for (const Operation& operation : operations_)
    std::visit(Overloaded{[&](const Seed& given) { seed = given.seed; },
                          [&](const Mix& mix) {
                            if (mix.options.seed) seed = mix.options.seed;
                          },
                          [&](const Shuffle& shuffle) {
                            if (!seed) seed = shuffle.options.seed;
                          },
                          [&](const ShuffleChunks& shuffle) {
                            if (!seed) seed = shuffle.options.seed;
                          },
                          [&](const Sample& sample) {
                            if (!seed) seed = sample.options.seed;
                          },
                          [&](const Batch& batch) {
                            if (!seed) seed = seed_of(batch);
                          },
                          [](const auto&) {}},
               operation);
  return seed;
}

bool Plan::is_plain() const noexcept {
  const bool single = parts().empty() || makes_one_source(input());
  return single && find<Filter>() == nullptr && operations_on_positions() == 0;
}

std::uint32_t Plan::operations_on_positions() const noexcept {
  std::uint32_t count = 0;
  if (!makes_one_source(input()))
    for (const PlanPtr& part : parts()) count = std::max(count, part->operations_on_positions());
  if (std::holds_alternative<Mix>(input())) ++count;
  return count + static_cast<std::uint32_t>(std::ranges::count_if(operations_, is_on_positions));
}

std::vector<Shard> Plan::shards() const {
  std::vector<Shard> shards;
  for (const PlanPtr& part : parts()) {
    const std::vector<Shard> more = part->shards();
    shards.insert(shards.end(), more.begin(), more.end());
  }
  for (const Operation& operation : operations_)
    if (const Shard* shard = std::get_if<Shard>(&operation)) shards.push_back(*shard);
  return shards;
}

}  // namespace penstock::plan
