// sync/placement: where variables live: with one owner each, or on all replicas alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <penstock/sync/communicator.hpp>
#include <penstock/sync/gradient_sync.hpp>

namespace penstock {

/// The layout of a parameter server, done with collectives: each variable has an owner, which alone
/// updates it. Optimiser state need only exist there.
///
///   sharded.reduce();                         // the owners get the gradients
///   for (std::size_t i : sharded.owned()) …   // update variable i from gradient i
///   sharded.broadcast();                      // all replicas get the variables
///
/// Threads  one at a time.
/// Stream   on CUDA devices everything is queued on `stream`.
/// Source   tensorpack's parameter-server builders and TensorFlow's greedy placement
class ShardedVariables {
 public:
  /// A collective call; `variables` and `gradients` are the same lists on every replica. Their
  /// memory must stay where it is.
  ///
  /// Errors  std::invalid_argument  not one gradient for each variable, of its type and size
  ///         SyncError              another replica has other lists
  ShardedVariables(Communicator& communicator, std::vector<Gradient> variables,
                   std::vector<Gradient> gradients);
  ~ShardedVariables();

  /// The rank that owns each variable.
  [[nodiscard]] const std::vector<std::uint32_t>& owners() const noexcept;
  /// The variables of this rank, in order.
  [[nodiscard]] const std::vector<std::size_t>& owned() const noexcept;
  /// Gradients become their sum or mean over all replicas, on the owner alone.
  void reduce(ReduceOp op = ReduceOp::mean, StreamHandle stream = nullptr);
  /// Variables become the owner's, everywhere.
  void broadcast(StreamHandle stream = nullptr);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Copies state that is not trained, such as batch normalisation's moving averages, from replica 0
/// to all others. Use it also to start with equal variables.
void broadcast_state(Communicator& communicator, const std::vector<Gradient>& state,
                     StreamHandle stream = nullptr);

}  // namespace penstock
