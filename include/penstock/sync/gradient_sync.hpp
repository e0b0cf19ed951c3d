// sync/gradient_sync: all-reduces the gradients of all replicas during the backward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/sync/communicator.hpp>

namespace PENSTOCK_EXPORT penstock {

/// No bucket is larger, but for one that holds a single gradient which is.
struct BucketLimits {
  std::size_t bytes = std::size_t{25} << 20;
  std::size_t count = std::numeric_limits<std::size_t>::max();  ///< gradients
};

/// Gradients of one type that are reduced together.
struct GradientBucket {
  std::vector<std::size_t> gradients;  ///< their indices, highest first
  DType dtype = DType::f32;
  std::uint64_t elements = 0;

  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(elements) * size_of(dtype);
  }
};

/// One gradient, in the memory of the communicator's device.
struct Gradient {
  std::string name;
  TensorView data;
};

/// How the gradients g of R replicas and K micro-steps are combined.
enum class Combine : std::uint8_t {
  sum,        ///< Σ g
  mean,       ///< Σ g / (R · K)
  row_sums,   ///< each g is a sum over rows: Σ g / Σ rows
  row_means,  ///< each g is a mean over rows: Σ rows · g / Σ rows
};
template <>
struct EnumNames<Combine> {
  static constexpr std::pair<Combine, const char*> kNames[] = {{Combine::sum, "sum"},
                                                               {Combine::mean, "mean"},
                                                               {Combine::row_sums, "row_sums"},
                                                               {Combine::row_means, "row_means"}};
};

struct GradientSyncOptions {
  Combine combine = Combine::mean;
  /// Micro-steps whose gradients are added up before they are exchanged.
  std::uint32_t micro_steps = 1;
  /// f16 or bf16: wider floating gradients are sent as this type; sums are still in f32.
  std::optional<DType> wire{};

  /// Speed only.
  BucketLimits buckets{};
};

/// Takes gradients in as the backward pass produces them, packs them into buckets, reduces bucket
/// after bucket in the reverse order of the list, and puts the results back in place.
///
/// Every replica makes one with the same list; a difference is an error that names both replicas
/// and the gradient. A replica without rows still takes part: where `combine` counts
/// rows its gradients may hold anything, elsewhere it must write zeros.
///
/// Gradients that are contiguous in memory, as in one flat buffer, are reduced in place, without
/// packing; on host devices so is every gradient of 256 KiB or more, if it need not be converted or
/// added up, as part of its bucket's one call. A single replica copies nothing.
///
/// Threads  one at a time. On host devices with one of its own, which packs and reduces; on CUDA
///          devices everything is queued on a stream of its own.
/// Owns     a duplicate of the communicator, and the buckets' memory.
/// Errors   SyncError  as the communicator's; thrown by the call at hand and by all later ones
class GradientSync {
 public:
  /// A collective call. The gradients' memory must stay where it is while this lives.
  ///
  /// Errors  std::invalid_argument  no gradients, a limit of 0, or a wire type that is not 16-bit
  ///         SyncError              another replica has another list or other options
  GradientSync(Communicator& communicator, std::vector<Gradient> gradients,
               const GradientSyncOptions& options = {});
  ~GradientSync();

  /// The number of rows of this micro-step, before its first ready(); only where `combine` counts
  /// rows.
  ///
  /// Errors  std::logic_error  `combine` counts none, or a gradient is ready already
  void begin(std::uint64_t rows);
  /// Gradient `index` of the list is complete: on a CUDA device once `stream` has come here. It may
  /// not be touched until wait() has returned.
  ///
  /// Errors  std::out_of_range  no such gradient
  ///         std::logic_error   it was ready before in this micro-step, or begin() is missing
  void ready(std::size_t index, StreamHandle stream = nullptr);
  /// Ends the micro-step. True: it was the last of its round, and the gradients hold the result; on
  /// a CUDA device for what is queued on `stream` from now on.
  ///
  /// Errors  std::logic_error  gradients were not ready; names them
  bool wait(StreamHandle stream = nullptr);
  /// As Communicator::check(): on a CUDA device wait() does not wait for the exchange, and gradients, and what was made of
  /// them, are right only if this does not throw once the host has waited for the stream.
  void check();

  /// In the order in which they are reduced.
  [[nodiscard]] const std::vector<GradientBucket>& buckets() const noexcept;
  /// Bytes that are copied into and out of buckets in each round, so 0 where all lie in place.
  [[nodiscard]] std::size_t packed_bytes() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- where variables live: with one owner each, or on all replicas alike ----

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
