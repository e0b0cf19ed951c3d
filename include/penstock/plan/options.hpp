// plan/options: options of a Dataset's operations and of its Loader.
//
// Options that change what is delivered come first; those that change only its speed say so.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <penstock/batch/slicing.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/process.hpp>
#include <penstock/order/mix.hpp>

namespace PENSTOCK_EXPORT penstock {

/// Cores that several loaders share. Give the same one to several loaders of a process (LoaderOptions::thread_budget) and no more
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

/// For Dataset::shuffle_chunks.
struct ShuffleChunksOptions {
  std::optional<std::uint64_t> seed{};  ///< as in ShuffleOptions, here and below
  bool reshuffle_each_epoch = true;
};

template <class Visitor>
void visit_fields(Visitor& visit, ShuffleChunksOptions& options) {
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

/// A value for each sample: `values`, in the order of the positions; or what the field called `field` has in it, as
/// Dataset::column() gives it. Made of a list or of a name.
template <class T>
struct PerSample {
  PerSample() = default;
  PerSample(std::vector<T> list)
      : values(std::move(list)) {}                            // NOLINT(google-explicit-constructor)
  PerSample(std::initializer_list<T> list) : values(list) {}  // NOLINT(google-explicit-constructor)
  PerSample(std::string name) : field(std::move(name)) {}     // NOLINT(google-explicit-constructor)
  PerSample(const char* name) : field(name) {}                // NOLINT(google-explicit-constructor)

  std::vector<T> values{};
  std::string field{};
};

/// What becomes of a sample that has no row in a table.
enum class MissingRows : std::uint8_t {
  error,  ///< an error that counts them and names some
  drop    ///< it is left out
};
template <>
struct EnumNames<MissingRows> {
  static constexpr std::pair<MissingRows, const char*> kNames[] = {{MissingRows::error, "error"},
                                                                   {MissingRows::drop, "drop"}};
};

/// For Dataset::join.
struct JoinOptions {
  std::string on;  ///< the field of the table by whose values rows are found; texts or integers
  MissingRows missing = MissingRows::error;  ///< what becomes of samples that have no row
};

template <class Visitor>
void visit_fields(Visitor& visit, JoinOptions& options) {
  visit.required("on", options.on);
  visit("missing", options.missing);
}

/// For Dataset::split.
struct SplitOptions {
  std::uint64_t seed = 0;  ///< which split it is; the same one for the same samples, on any machine
  /// a class for each sample, of which each part gets its fraction (stratified), or the name of a field of integers or texts;
  /// by default there is one class
  PerSample<std::int64_t> by{};
  /// a group for each sample, such as its patient, or the name of a field: all samples of a group go to one part. Not with `by`
  PerSample<std::int64_t> group{};
};

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
  raise,    ///< a DataError at the step that the sample belongs to
  replace,  ///< another sample of the same source takes the place, the same on every machine
  mask,     ///< the row is zero-filled; the field 'valid' tells
};
template <>
struct EnumNames<OnFault> {
  static constexpr std::pair<OnFault, const char*> kNames[] = {
      {OnFault::raise, "raise"}, {OnFault::replace, "replace"}, {OnFault::mask, "mask"}};
};

/// For LoaderOptions: retries after transient faults (Fault::transient), such as those of a network
/// file system that is unreachable for a moment.
struct RetryOptions {
  int attempts =
      5;  ///< how often a read is attempted that fails as networks do; 1: none is repeated
  /// wait before the second attempt, on average: each is random, up to twice as long; it doubles with each further one
  std::chrono::milliseconds initial_backoff{50};
};

template <class Visitor>
void visit_fields(Visitor& visit, RetryOptions& options) {
  visit.speed("attempts", options.attempts);
  visit.speed("initial_backoff", options.initial_backoff);
}

/// Which of the processes that read the same dataset this one is; as tf.distribute.InputContext.
struct InputContext {
  std::uint32_t num_input_pipelines = 1;  ///< processes that read the dataset
  std::uint32_t input_pipeline_id = 0;    ///< which of them this one is, from 0
  /// devices of all processes; 0: num_input_pipelines times this process's devices
  std::uint32_t num_replicas_in_sync = 0;
  /// for LoaderOptions::locality: the machine of each process, in the order of their ids, the same list in all of them. Any
  /// numbers do that stay with the machines when the program is started again, with other machines or fewer: a machine with
  /// another number has other rows than those that its cache keeps
  std::vector<std::uint64_t> machines{};

  /// As torchrun, mpirun or srun started this process; one pipeline where none of them did. The machines are known where all
  /// processes are on this one, by LOCAL_WORLD_SIZE and its kind; else there are none here, and locality asks for them.
  ///
  /// Errors  Error  the launchers' variables contradict each other
  [[nodiscard]] static InputContext from(const Launch& launch = Launch::from_environment());

  /// The rows that each replica gets of a global batch.
  ///
  /// Errors  std::invalid_argument  global_batch is not divisible by num_replicas_in_sync
  [[nodiscard]] std::uint64_t per_replica_batch_size(std::uint64_t global_batch) const;
};

template <class Visitor>
void visit_fields(Visitor& visit, InputContext& context) {
  visit("num_input_pipelines", context.num_input_pipelines);
  visit("input_pipeline_id", context.input_pipeline_id);
  visit("num_replicas_in_sync", context.num_replicas_in_sync);
  visit("machines", context.machines);
}

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
  data,  ///< the samples i with i mod n == k, as Dataset::shard; with mode `one`: slices of the batch
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
  /// what happens when a sample is bad
  OnFault on_fault = OnFault::raise;
  /// more faults than this raise under every policy; counted at delivery, by each process for itself: where one raises, the
  /// program must end the others
  std::optional<std::uint64_t> max_faults{};
  /// a larger fraction of the samples delivered so far raises under every policy, once 100 were delivered
  std::optional<double> max_fault_rate{};
  /// which of the processes this one is; by default as the launcher started it (InputContext::from)
  std::optional<InputContext> context{};
  /// which replicas share one order of the samples; with another mode than `one`, a state can be restored only with the same
  /// number of processes and devices
  InputMode mode = InputMode::one;
  /// gives every process the texts of all, in the order of their ranks (penstock::sync has one). With one, the first step, and the first after
  /// restore() or rewind(), compares Loader::facts() of all processes: where plan, data, seed or position differ, that is an
  /// Error in each that names both. It is called on the consumer's thread, once in every process
  Exchange exchange{};
  ShardPolicy shards = ShardPolicy::data;  ///< which samples a separate order covers
  /// whether rows of a global batch go to replicas on the machines that are the homes of their samples, as many as leave each
  /// replica its number of rows. So n machines whose caches of objects hold 1/n of the data each fetch little of it a second
  /// time. The batches, their row numbers, digests and states are those without it; only which replica gets which row differs.
  /// Needs the mode `one` and the split scatter, and with several processes InputContext::machines
  bool locality = false;
  /// whether a digest of all fields of the samples is summed, before device transforms (Loader::digest). It costs a hash of
  /// every byte: on the CPU for host devices; on CUDA devices by a kernel behind the copy, of what has arrived there
  bool digest = false;
  /// whether another digest is summed, of what device transforms made (Loader::transformed_digest), where it lies. On CUDA
  /// devices transforms then run on the loader's own stream, also those with on_consumer_stream
  bool digest_transformed = false;

  /// speed only: whether CUDA devices decode JPEGs whose decode_image knows from its index where to begin: the CPU only finds
  /// the parts of a scan that the crop needs. The CPU decodes others, and those that need more room packed than their pixels,
  /// into the same batches. The pixels, faults and digests are the same. Takes at most 1 GiB of a GPU's memory
  bool decode_on_gpu = false;

  /// speed only: threads that decode; 0: as many as thread_budget has, or one for each core that this process may use: by its
  /// affinity and its control group's CPU quota, shared with the other processes of the launcher on this machine
  int threads = 0;
  /// speed only: threads that read records ahead of decoding, in the order's own sequence; 0: decoding threads read for
  /// themselves. By default 4 where a source may wait for a disk, 32 where it reads objects (s3://, hf://, https://), else 0
  std::optional<int> io_threads{};
  RetryOptions retry{};
  /// speed only: cores that it shares with other loaders; by default none
  std::shared_ptr<ThreadBudget> thread_budget{};
  /// speed and memory only: the most bytes that the loader may hold (order, records in flight, slots, device buffers);
  /// 0: no limit. The ring shrinks to fit, down to two slots
  std::size_t budget_bytes = 0;
  /// is called at the beginning and end of each stage of each batch, for timelines; null for none. Must outlive the loader
  StageObserver* observer = nullptr;  // C++ only: it has no field below
};

template <class Visitor>
void visit_fields(Visitor& visit, LoaderOptions& options) {
  visit("on_fault", options.on_fault);
  visit("max_faults", options.max_faults);
  visit("max_fault_rate", options.max_fault_rate, {.min = 0, .max = 1});
  visit("context", options.context);
  visit("mode", options.mode);
  visit("shards", options.shards);
  visit("locality", options.locality);
  visit("digest", options.digest);
  visit("digest_transformed", options.digest_transformed);
  visit.speed("decode_on_gpu", options.decode_on_gpu);
  visit.speed("threads", options.threads);
  visit.speed("io_threads", options.io_threads);
  visit.object("retry", options.retry);
  visit.object("thread_budget", options.thread_budget);
  visit.speed("budget_bytes", options.budget_bytes);
  visit.object("exchange", options.exchange);
}

}  // namespace penstock
