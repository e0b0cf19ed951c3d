#include <stdexcept>

#include <fmt/format.h>

#include <penstock/plan/options.hpp>

namespace penstock {

namespace {

// None where this process is not where it would be if the ranks were one after another, equally many on each machine. Where they
// are not, that is so of some process at the least.
std::vector<std::uint64_t> machines_of(const Launch& launch) {
  const std::uint32_t each = launch.local_world;
  if (launch.world == 1 || each == 0 || launch.world % each != 0) return {};
  if (launch.rank % each != launch.local_rank) return {};
  std::vector<std::uint64_t> machines(launch.world);
  for (std::uint32_t rank = 0; rank < launch.world; ++rank) machines[rank] = rank / each;
  return machines;
}

}  // namespace

InputContext InputContext::from(const Launch& launch) {
  return {.num_input_pipelines = launch.world,
          .input_pipeline_id = launch.rank,
          .num_replicas_in_sync = 0,
          .machines = machines_of(launch)};
}

std::uint64_t InputContext::per_replica_batch_size(std::uint64_t global_batch) const {
  const std::uint32_t replicas =
      num_replicas_in_sync == 0 ? num_input_pipelines : num_replicas_in_sync;
  if (replicas == 0 || global_batch % replicas != 0)
    throw std::invalid_argument(fmt::format("a global batch of {} does not divide over {} replicas",
                                            global_batch, replicas));
  return global_batch / replicas;
}

}  // namespace penstock
