#include <stdexcept>

#include <fmt/format.h>

#include <penstock/plan/options.hpp>

namespace penstock {

namespace {

// Known where all processes are on this machine. How many are on others is not: 4, 2 and 2 look like 4 and 4 to some of them.
std::vector<std::uint64_t> machines_of(const Launch& launch) {
  if (launch.world == 1 || launch.local_world != launch.world) return {};
  return std::vector<std::uint64_t>(launch.world);
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
