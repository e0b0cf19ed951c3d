// loader/topology: which processes and replicas share an order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <penstock/plan/options.hpp>

#include "src/batch/locality.hpp"
#include "src/batch/slicing.hpp"
#include "src/plan/plan.hpp"

namespace penstock::loader {

/// A group is an order and the replicas it serves, equally many in a row. There is one group for all
/// replicas, one for each process, or one for each replica; each gets its share of every global
/// batch from its own order.
struct Topology {
  std::uint32_t replicas = 1;  // over all processes
  std::uint32_t groups = 1;
  std::uint32_t first_replica = 0;  // of this process
  std::uint32_t own_replicas = 1;
  ShardPolicy shards = ShardPolicy::data;
  // Of a group's share over the replicas of the group; one for each bucket.
  std::vector<batch::Slicing> slicings;
  // Where rows go to their homes, which are on several machines; there is one group then.
  std::shared_ptr<const batch::Locality> locality;

  /// `options.context` is set.
  ///
  /// Errors  std::invalid_argument  the options contradict each other, the plan, or the batch
  Topology(const plan::Plan& plan, const LoaderOptions& options);

  [[nodiscard]] std::uint32_t replicas_per_group() const noexcept { return replicas / groups; }
  [[nodiscard]] std::uint32_t group_of(std::uint32_t replica) const noexcept {
    return replica / replicas_per_group();
  }
  /// Empty where one order serves all; else what a state is bound to.
  [[nodiscard]] std::string describe() const;
};

}  // namespace penstock::loader
