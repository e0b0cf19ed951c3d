#include "src/loader/topology.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "src/plan/buckets.hpp"

namespace penstock::loader {

namespace {

std::uint32_t devices_of(const plan::Plan& plan) {
  return static_cast<std::uint32_t>(plan.devices().size());
}

void check_machines(const InputContext& context) {
  const auto& machines = context.machines;
  if (machines.empty() || machines.size() == context.num_input_pipelines) return;
  throw std::invalid_argument(fmt::format(
      "machines has the machine of each process, in the order of their ranks: expected {} numbers, "
      "found {}",
      context.num_input_pipelines, machines.size()));
}

std::uint32_t count_replicas(const plan::Plan& plan, const InputContext& context) {
  if (context.num_input_pipelines == 0 || context.input_pipeline_id >= context.num_input_pipelines)
    throw std::invalid_argument(
        fmt::format("input_pipeline_id must be below num_input_pipelines, found {} of {}",
                    context.input_pipeline_id, context.num_input_pipelines));
  constexpr std::uint32_t kMostReplicas = 1 << 24;
  if (context.num_input_pipelines > kMostReplicas / devices_of(plan))
    throw std::invalid_argument(
        fmt::format("{} processes with {} devices each are more than {} replicas",
                    context.num_input_pipelines, devices_of(plan), kMostReplicas));
  check_machines(context);
  const std::uint32_t replicas = context.num_input_pipelines * devices_of(plan);
  if (context.num_replicas_in_sync != 0 && context.num_replicas_in_sync != replicas)
    throw std::invalid_argument(fmt::format(
        "{} processes with {} devices each are {} replicas, but num_replicas_in_sync is {}",
        context.num_input_pipelines, devices_of(plan), replicas, context.num_replicas_in_sync));
  return replicas;
}

std::uint32_t count_groups(const plan::Plan& plan, const InputContext& context, InputMode mode,
                           ShardPolicy shards, std::uint32_t replicas) {
  if (mode == InputMode::one && plan.prefetch().split == Split::shard_early)
    mode = InputMode::per_replica;
  if (mode == InputMode::one && shards != ShardPolicy::data)
    throw std::invalid_argument(
        fmt::format("the shard policy {} gives each process samples of its own, and so an order of "
                    "its own: choose "
                    "the mode per_worker or per_replica with it, or the shard policy data",
                    name_of(shards)));
  switch (mode) {
    case InputMode::one:
      return 1;
    case InputMode::per_worker:
      return context.num_input_pipelines;
    case InputMode::per_replica:
      return replicas;
  }
  return 1;
}

void refuse_sharding_twice(const plan::Plan& plan, const InputContext& context,
                           ShardPolicy shards) {
  if (context.num_input_pipelines == 1 || shards == ShardPolicy::off) return;
  const plan::Shard own{context.num_input_pipelines, context.input_pipeline_id};
  const auto is_own = [&](const plan::Shard& shard) {
    return shard.shards == own.shards && shard.index == own.index;
  };
  if (std::ranges::none_of(plan.shards(), is_own)) return;
  throw std::invalid_argument(fmt::format(
      "shard({0}, {1}) is this process's own share, and each of the {0} processes gets a share of "
      "its own already: leave shard out, or choose the mode per_worker with the shard policy off",
      own.shards, own.index));
}

// What counts positions of the whole data set would count them in each shard: take(6) would deliver 6 of each.
void refuse_positions(const plan::Plan& plan, ShardPolicy shards, std::uint32_t groups) {
  if (groups == 1 || shards == ShardPolicy::off) return;
  // The records of one source, such as a zip, are chosen before any order has them.
  if (!plan::makes_one_source(plan.input()))
    for (const plan::PlanPtr& part : plan.parts()) refuse_positions(*part, shards, groups);
  for (const plan::Operation& operation : plan.operations()) {
    if (std::holds_alternative<plan::Batch>(operation)) return;
    if (!plan::traits_of(operation).counts_all) continue;
    const auto* const select = std::get_if<plan::Select>(&operation);
    const bool is_where = select != nullptr && !select->condition.empty();
    throw std::invalid_argument(fmt::format(
        "{} goes by positions among all samples, and each of {} orders would have a shard of them: "
        "choose the mode one and another split than shard_early, or select what is read, by {} or "
        "by files",
        is_where ? "a second where" : plan::name_of(operation), groups,
        is_where ? "one where, with 'and' between its conditions," : "filter"));
  }
}

batch::Slicing slice_group(const plan::Plan& plan, std::uint32_t replicas, std::uint32_t groups) {
  const plan::Batch& batch = plan.batch();
  if (batch.global_batch % groups != 0)
    throw std::invalid_argument(fmt::format(
        "a global batch of {} does not divide over {} orders of their own: take a multiple of {}",
        batch.global_batch, groups, groups));
  return {batch.global_batch / groups, replicas / groups, batch.options.remainder,
          batch.options.uneven, plan.prefetch().split};
}

std::vector<batch::Slicing> slice_buckets(const plan::Plan& plan, std::uint32_t replicas,
                                          std::uint32_t groups) {
  const plan::Batch& batch = plan.batch();
  if (groups != 1)
    throw std::invalid_argument(fmt::format(
        "{} makes the batches of all replicas, so there is one order: choose the mode one, and "
        "another split than shard_early",
        call_of(batch)));
  if (plan.prefetch().split != Split::scatter)
    throw std::invalid_argument(fmt::format(
        "{}: the batches of a step would differ in size with the split round_robin: choose scatter",
        call_of(batch)));
  std::vector<batch::Slicing> slicings;
  for (std::size_t bucket = 0; bucket < buckets_of(batch); ++bucket) {
    const std::uint64_t rows = rows_of(batch, bucket);
    if (rows % replicas != 0 && !batch.options.uneven)
      throw std::invalid_argument(fmt::format(
          "{}: {} rows, of {}, do not divide over {} replicas: set multiple to {}, or "
          "allow uneven replicas",
          call_of(batch), rows, plan::describe_bucket(batch, bucket), replicas, replicas));
    slicings.emplace_back(rows, replicas, batch.options.remainder, batch.options.uneven);
  }
  return slicings;
}

std::vector<batch::Slicing> slice_batches(const plan::Plan& plan, std::uint32_t replicas,
                                          std::uint32_t groups) {
  if (plan.batch().has_buckets()) return slice_buckets(plan, replicas, groups);
  return {slice_group(plan, replicas, groups)};
}

// Null where all replicas are on one machine: all rows are at home, wherever they go.
std::shared_ptr<const batch::Locality> make_locality(const plan::Plan& plan,
                                                     const LoaderOptions& options) {
  if (!options.locality) return nullptr;
  const auto refuse = [](const char* option, const char* found, const char* needed) {
    throw std::invalid_argument(
        fmt::format("locality sends the rows of a global batch to the machines that are their "
                    "homes, which needs the {} {}, and here it is {}: choose {}, or leave locality "
                    "out",
                    option, needed, found, needed));
  };
  if (options.mode != InputMode::one)
    refuse("mode", name_of(options.mode), name_of(InputMode::one));
  if (const Split split = plan.prefetch().split; split != Split::scatter)
    refuse("split", name_of(split), name_of(Split::scatter));
  const InputContext& context = *options.context;
  if (context.num_input_pipelines == 1) return nullptr;
  if (context.machines.empty())
    throw std::invalid_argument(fmt::format(
        "locality: the launcher does not say which of the {} processes are on which machine: give "
        "the context with machines, a number for the machine of each process in the order of their "
        "ranks, such as [0, 0, 1, 1], the same list in all processes; or, with srun, "
        "--ntasks-per-node",
        context.num_input_pipelines));
  if (std::ranges::count(context.machines, context.machines.front()) ==
      static_cast<std::ptrdiff_t>(context.machines.size()))
    return nullptr;
  std::vector<std::uint64_t> of_replicas;
  for (const std::uint64_t machine : context.machines)
    of_replicas.insert(of_replicas.end(), devices_of(plan), machine);
  return std::make_shared<const batch::Locality>(of_replicas);
}

}  // namespace

Topology::Topology(const plan::Plan& plan, const LoaderOptions& options)
    : replicas(count_replicas(plan, *options.context)),
      groups(count_groups(plan, *options.context, options.mode, options.shards, replicas)),
      first_replica(options.context->input_pipeline_id * devices_of(plan)),
      own_replicas(devices_of(plan)),
      shards(options.shards),
      slicings(slice_batches(plan, replicas, groups)),
      locality(make_locality(plan, options)) {
  refuse_positions(plan, shards, groups);
  refuse_sharding_twice(plan, *options.context, shards);
}

std::string Topology::describe() const {
  if (groups == 1) return {};
  return fmt::format("{} orders for {} replicas, shards={}", groups, replicas, name_of(shards));
}

}  // namespace penstock::loader
