// loader/options: options of a Dataset's operations and of its Loader.
//
// Options that change what is delivered come first; those that change only its speed say so.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <utility>
#include <vector>

#include <penstock/batch/slicing.hpp>
#include <penstock/core/agreement.hpp>
#include <penstock/core/enum_names.hpp>
#include <penstock/core/launcher.hpp>
#include <penstock/order/mix.hpp>

namespace penstock {

/// Give the same one to several loaders of a process (LoaderOptions::thread_budget) and no more
/// than `threads` of their threads work at a time, whichever of them have something to do: a
/// training and a validation loader both get all cores while the other's ring is full, and never
/// more. Without one, each loader works with its own threads.
///
///   const auto cores = std::make_shared<ThreadBudget>(8);
///   auto train = training.loader({.thread_budget = cores});
///   auto valid = validation.loader({.thread_budget = cores});
///
/// Threads  any number.
class ThreadBudget {
 public:
  /// Errors  std::invalid_argument  threads < 1
  explicit ThreadBudget(int threads) : free_(checked(threads)), threads_(threads) {}

  /// Waits for a core; held for one grain of samples, about 0.1 ms or one sample.
  void acquire() { free_.acquire(); }
  void release() { free_.release(); }
  [[nodiscard]] int threads() const noexcept { return threads_; }

 private:
  static int checked(int threads) {
    if (threads < 1) throw std::invalid_argument("a thread budget needs at least 1 thread");
    return threads;
  }

  std::counting_semaphore<> free_;
  int threads_;
};

class StageObserver;

/// For Dataset::shuffle.
struct ShuffleOptions {
  /// seed of the random numbers, by default the plan's (Dataset::seed); without that, the loader draws one
  std::optional<std::uint64_t> seed{};
  /// samples in tf.data's window; by default a uniform permutation of the whole epoch, in O(1) memory
  std::optional<std::uint64_t> buffer{};
  bool reshuffle_each_epoch = true;  ///< whether each epoch has random numbers of its own
};

template <class Visitor>
void visit_fields(Visitor& visit, ShuffleOptions& options) {
  visit("buffer", options.buffer);
  visit("seed", options.seed);
  visit("reshuffle_each_epoch", options.reshuffle_each_epoch);
}

/// For Dataset::sample.
struct SampleOptions {
  std::optional<std::uint64_t>
      count{};  ///< how many are drawn; by default as many as there are samples
  std::optional<std::uint64_t> seed{};  ///< as in ShuffleOptions, here and below
  bool reshuffle_each_epoch = true;
};

template <class Visitor>
void visit_fields(Visitor& visit, SampleOptions& options) {
  visit("count", options.count);
  visit("seed", options.seed);
  visit("reshuffle_each_epoch", options.reshuffle_each_epoch);
}

/// For mix.
struct MixOptions {
  std::vector<double>
      weights{};  ///< one for each data set, which need not add up to 1; by default all are equal
  /// seed of the random numbers, by default the plan's (Dataset::seed), or that of the first data set that has one; without
  /// that, the loader draws one
  std::optional<std::uint64_t> seed{};
  MixUntil until = MixUntil::first_exhausted;  ///< when the mix ends
};

template <class Visitor>
void visit_fields(Visitor& visit, MixOptions& options) {
  visit("weights", options.weights);
  visit("seed", options.seed);
  visit("until", options.until);
}

/// For Dataset::batch.
struct BatchOptions {
  Remainder remainder = Remainder::keep;  ///< what happens to a last batch that is not full
  /// whether the global batch need not divide over the replicas: some then get one more row, in turn
  bool uneven = false;
};

template <class Visitor>
void visit_fields(Visitor& visit, BatchOptions& options) {
  visit("remainder", options.remainder);
  visit("uneven", options.uneven);
}

/// For Dataset::prefetch_to_devices.
struct PrefetchOptions {
  int depth =
      2;  ///< global batches that are ready ahead, in a ring of depth + 1 slots; changes speed and memory only
  Split split = Split::scatter;  ///< how a global batch reaches the replicas
};

template <class Visitor>
void visit_fields(Visitor& visit, PrefetchOptions& options) {
  visit("split", options.split);
  visit.speed("depth", options.depth);
}

/// What happens when a sample is bad. Every other sample stays in the batch it belongs to.
enum class OnFault : std::uint8_t {
  raise,    ///< next() throws a DataError at the step that the sample belongs to
  replace,  ///< another sample of the same source takes the place, the same on every machine
  mask,     ///< the row is zero-filled; the field 'valid' tells
};
template <>
struct EnumNames<OnFault> {
  static constexpr std::pair<OnFault, const char*> kNames[] = {
      {OnFault::raise, "raise"}, {OnFault::replace, "replace"}, {OnFault::mask, "mask"}};
};

/// For LoaderOptions. Each process counts its own budgets: where one raises, the program must tell
/// the others.
struct FaultOptions {
  OnFault policy = OnFault::raise;
  /// More faults than this raise under every policy; counted at delivery.
  std::optional<std::uint64_t> max_count{};
  /// A larger share of the samples delivered so far raises under every policy, once 100 were
  /// delivered.
  std::optional<double> max_rate{};
};

/// For LoaderOptions: retries after transient faults (Fault::transient), such as those of a network
/// file system that is unreachable for a moment.
struct RetryOptions {
  int attempts = 5;                               ///< in all; 1: none is repeated
  std::chrono::milliseconds initial_backoff{50};  ///< before the second attempt; doubles each time
};

/// This process's place among those that read the same dataset; as tf.distribute.InputContext.
struct InputContext {
  std::uint32_t num_input_pipelines = 1;
  std::uint32_t input_pipeline_id = 0;
  /// Over all processes; 0 means num_input_pipelines times this process's devices.
  std::uint32_t num_replicas_in_sync = 0;

  /// As torchrun, mpirun or srun started this process; one pipeline where none of them did.
  ///
  /// Errors  Error  the launchers' variables contradict each other
  [[nodiscard]] static InputContext from(const Launch& launch = Launch::from_environment());

  /// The rows that each replica gets of a global batch.
  ///
  /// Errors  std::invalid_argument  global_batch is not divisible by num_replicas_in_sync
  [[nodiscard]] std::uint64_t per_replica_batch_size(std::uint64_t global_batch) const;
};

/// Which replicas share one order of the samples.
enum class InputMode : std::uint8_t {
  one,         ///< one order; every replica gets its slice of each global batch
  per_worker,  ///< each process has an order of its own, for its replicas
  per_replica  ///< each replica has an order of its own
};
template <>
struct EnumNames<InputMode> {
  static constexpr std::pair<InputMode, const char*> kNames[] = {
      {InputMode::one, "one"},
      {InputMode::per_worker, "per_worker"},
      {InputMode::per_replica, "per_replica"}};
};

/// Which samples a separate order (per_worker, per_replica) covers. Each has its own random
/// numbers.
enum class ShardPolicy : std::uint8_t {
  data,  ///< the samples i with i mod n == k, as Dataset::shard; with InputMode::one: slices of the
         ///< batch
  file,  ///< the samples in the files f with f mod n == k
  off    ///< all samples
};
template <>
struct EnumNames<ShardPolicy> {
  static constexpr std::pair<ShardPolicy, const char*> kNames[] = {
      {ShardPolicy::data, "data"}, {ShardPolicy::file, "file"}, {ShardPolicy::off, "off"}};
};

/// For Dataset::loader.
struct LoaderOptions {
  FaultOptions faults{};
  /// None: InputContext::from the environment.
  std::optional<InputContext> context{};
  /// In modes other than `one`, a state can be restored only with the same number of processes and
  /// devices.
  InputMode mode = InputMode::one;
  /// With one, the first step, and the first after restore() or rewind(), compares Loader::facts() of all processes, so that
  /// these cannot differ in plan, data, seed or position without an error. It is called on the consumer's thread, in every
  /// process once.
  Exchange exchange{};
  ShardPolicy shards = ShardPolicy::data;
  /// Sums a digest of all fields of the samples, before device transforms (Loader::digest). Costs a hash of every byte: on
  /// the CPU for host devices; on CUDA devices by a kernel behind the copy, of what has arrived there.
  bool digest = false;
  /// Sums another one, of what device transforms made (Loader::transformed_digest), where it lies. On CUDA devices
  /// transforms then run on the loader's own stream, also those with on_consumer_stream.
  bool digest_transformed = false;

  /// On CUDA devices, JPEGs whose decode_image knows from its index where to begin are decoded there: the CPU only finds the
  /// parts of a scan that the crop needs. Others, and those that need more room packed than their pixels, are decoded by the
  /// CPU, into the same batches. The pixels, faults and digests are the same. Takes at most 1 GiB of a GPU's memory. Speed only.
  bool decode_on_gpu = false;

  /// Decoding threads of this loader; 0: one per core, or as many as thread_budget has. Speed only.
  int threads = 0;
  /// Threads that read records ahead of decoding, in the order's own sequence; 0: decoding threads
  /// read for themselves. None: 4 where a source may wait for a disk, 32 where it reads
  /// objects (Source::max_concurrent_reads), else 0. Speed only.
  std::optional<int> io_threads{};
  RetryOptions retry{};
  /// Cores that it shares with other loaders; null: none. Speed only.
  std::shared_ptr<ThreadBudget> thread_budget{};
  /// The most bytes that the loader may hold (order, records in flight, slots, device buffers);
  /// 0: no limit. The ring shrinks to fit, down to two slots. Speed and memory only.
  std::size_t budget_bytes = 0;
  /// Told of every stage of every batch, for timelines; null for none. Must outlive the loader.
  StageObserver* observer = nullptr;
};

}  // namespace penstock
