#include <stdexcept>

#include <fmt/format.h>

#include <penstock/plan/options.hpp>

namespace penstock {

InputContext InputContext::from(const Launch& launch) {
  return {.num_input_pipelines = launch.world, .input_pipeline_id = launch.rank};
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
