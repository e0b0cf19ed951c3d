// loader/loader: the running input pipeline: its iterator and what that yields, its position, and where its time went.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/description.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/device.hpp>
#include <penstock/loader/remote_rows.hpp>
#include <penstock/plan/options.hpp>
#include <penstock/source/source.hpp>
#include <penstock/transform/decode_image.hpp>

/// DLPack's own structure (dlpack.h), which the libraries that take it define.
struct DLManagedTensor;

namespace PENSTOCK_EXPORT penstock {

// ---- the position of a loader, small enough to lie beside every checkpoint ----

/// A call of Loader::set_weights.
struct WeightChange {
  std::uint64_t step = 0;
  std::vector<double> weights;

  friend bool operator==(const WeightChange&, const WeightChange&) = default;
};

/// What Loader::state() returns and Loader::restore() takes. It counts what was delivered, not what
/// was prefetched. The position is the same in every process.
struct LoaderState {
  std::uint64_t step = 0;                         ///< the next step to be delivered
  std::uint64_t samples = 0;                      ///< delivered so far, over all processes
  std::uint64_t seed = 0;                         ///< the plan's seed, drawn or given
  std::uint32_t random_version = kRandomVersion;  ///< of the random numbers
  /// The operations that decide which bytes come out, with the fingerprints of the data: JSON, so
  /// that an error can say which of them differs.
  std::string plan = "[]";
  std::string world;  ///< how orders are divided among processes; empty for InputMode::one
  std::vector<WeightChange> weights;  ///< of a mix, in order of their steps
  /// That the last step was the last of a pass, whose loop had not ended yet: set and read by loaders
  /// of passes (penstock.torch, penstock.jax); Loader passes over it.
  bool in_last_step_of_pass = false;
  /// What decodes images beside the libraries that always do, where the plan decodes images.
  std::vector<ImageLibrary> image_libraries;
  // This process's own; those of all processes add up. A caller that restores a state of another
  // world gives the sum to one process, and zero to the others.
  std::uint64_t fault_count = 0;
  std::vector<Fault> faults;  ///< the first 100
  Digest digest;              ///< of everything delivered, where LoaderOptions::digest asked for it
  Digest transformed_digest;  ///< likewise, LoaderOptions::digest_transformed

  [[nodiscard]] std::string to_json() const;
  /// Numbers that are negative, fractional or too large, and unknown fields, are refused by name.
  ///
  /// Errors  Error  not such a string, or one of another format; says what to do
  [[nodiscard]] static LoaderState from_json(std::string_view text);
};

struct RestoreOptions {
  /// whether the plan that saved the state may have had other maps and device transforms, as in progressive resizing: another
  /// crop from some step on. Which samples each batch has, their order and their numbers are those of a run without the
  /// change, but for samples that are faults with one of them only; and each batch is what a run with this loader's plan from
  /// the beginning has at that step. digest() is that of what was delivered, by both
  bool other_maps = false;
};

// ---- where the time went, and which stage caused each stall ----

/// What a batch can be waiting for, in the order in which it goes through them.
enum class Stage : std::uint8_t {
  order,             ///< drawing the sample numbers; of a stream: waiting for its records
  slot,              ///< for a free slot: all are filling, copying or held by the consumer
  read,              ///< fetching encoded bytes
  decode,            ///< transforms
  remote,            ///< rows that are made elsewhere
  copy,              ///< queueing copies and handing over
  device_transform,  ///< transforming rows on host devices, queueing it for GPUs, digests of what comes of it
};
inline constexpr std::size_t kStages = 7;

[[nodiscard]] constexpr std::string_view name_of(Stage stage) noexcept {
  constexpr std::array<std::string_view, kStages> kNames{
      "order", "slot", "read", "decode", "remote", "copy", "device_transform"};
  return kNames[static_cast<std::size_t>(stage)];
}

/// How long a stage took.
///
/// Units  seconds of wall time; busy_s adds up over threads
struct StageTime {
  double wait_s = 0;  ///< how long the consumer waited for this stage
  double busy_s = 0;  ///< how long threads worked in it (for slot: how long the driver waited)
};

/// Rows that were made elsewhere, since this run began.
struct RemoteStats {
  std::uint64_t rows = 0;   ///< rows that were taken, also of steps that are not delivered yet
  std::uint64_t tasks = 0;  ///< tasks that they came in
  std::uint64_t bytes = 0;
  std::uint64_t cancelled = 0;  ///< tasks that others had to do
  double wait_s = 0;            ///< from taking a task to its rows, added up over the tasks
  double made_s = 0;            ///< of this time: making the rows; the rest is spent on the way
  double copy_s = 0;            ///< copying the rows to their slots
};

/// Where the time of a loader went, so far. consume_s and the stages' wait_s add up to `seconds`; with DeviceLoaders
/// they are means over the devices.
struct Stats {
  std::uint64_t samples = 0;     ///< delivered to this process's replicas
  std::uint64_t steps = 0;       ///< delivered in this run
  std::uint64_t bytes_read = 0;  ///< from storage, for the samples delivered
  double seconds = 0;    ///< from the first next() or start() to the end of the data or stop()
  double consume_s = 0;  ///< spent by the caller between calls of next()
  double first_batch_s = 0;
  std::array<StageTime, kStages> stages{};
  RemoteStats remote{};
  /// Share of the time since the first batch that the consumer waited.
  double stall_fraction = 0;
  std::uint64_t faults = 0;
  std::uint64_t retries = 0;     ///< reads that were repeated, in the steps delivered
  std::size_t memory_bytes = 0;  ///< held now, as counted against the budget
  std::size_t memory_peak_bytes = 0;
  std::size_t slots = 0;       ///< places for a batch that the ring has
  std::size_t held_slots = 0;  ///< slots of batches that the caller still holds
  int threads = 0;             ///< threads that decode
  int io_threads = 0;          ///< threads that read ahead
  /// The part (of Loader::devices()) whose consumer keeps the others waiting: it is behind them,
  /// and holds the slots that they need. None when no consumer waits for another.
  std::optional<std::size_t> waiting_for{};
  /// Of other languages, which sources and transforms call, since this run began. Calls of other
  /// loaders of the same plan count, too.
  std::vector<FunctionTime> functions{};
  /// Where the bytes of the data came from since this run began, in the order in which the places are asked. Reads of rows
  /// that are not delivered yet count, and those of other loaders of the same plan.
  std::vector<StorageTier> tiers{};

  [[nodiscard]] const StageTime& operator[](Stage stage) const noexcept {
    return stages[static_cast<std::size_t>(stage)];
  }
  [[nodiscard]] double wait_s() const noexcept {
    double total = 0;
    for (const StageTime& stage : stages) total += stage.wait_s;
    return total;
  }
  /// The stage that the consumer waited for longest, or "consumer" when it waited less than 2% of
  /// the time.
  [[nodiscard]] std::string_view bottleneck() const noexcept;
};

/// Its functions are called when a stage of a batch begins and ends, on the thread that does it.
///
/// Threads  called from all of the loader's threads at once; must not call the loader.
class StageObserver {
 public:
  virtual ~StageObserver() = default;
  /// read and decode come once per sample, with its row in this process's part of the batch, but
  /// read once for samples that are read together, with the first one's; the others once per batch,
  /// with row 0. device_transform comes both ways: for each sample that goes to a host device, and for the batch.
  virtual void begin(Stage stage, std::uint64_t step, std::uint64_t row) noexcept = 0;
  virtual void end(Stage stage, std::uint64_t step, std::uint64_t row) noexcept = 0;
  /// A GPU copied, decoded or transformed a batch from `begin_ns` to `end_ns` (as of now_ns()); called later,
  /// when its memory is used again. Timing costs a few events a batch.
  virtual void on_device(const Device& device, Stage stage, std::uint64_t step,
                         std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    (void)device, (void)stage, (void)step, (void)begin_ns, (void)end_ns;
  }
};

// ---- what the iterator yields: one global batch's share of this process, part by device ----

namespace batch {
class BatchLayout;
}
namespace device {
class DeviceSlice;
}

namespace loader {
struct StepInfo;
}

/// One replica's rows of a global batch, on its device.
///
/// Owns     its slot, for as long as any copy of it lives; it may outlive the loader.
/// Threads  a value; copies may be used on different threads.
class DeviceBatch {
 public:
  DeviceBatch(std::shared_ptr<const loader::StepInfo> info, std::size_t part,
              std::shared_ptr<device::DeviceSlice> slice);

  [[nodiscard]] const Device& device() const noexcept;
  /// The replica's number over all processes.
  [[nodiscard]] std::uint32_t replica() const noexcept;
  [[nodiscard]] std::uint64_t step() const noexcept;
  /// Rows, padding included; may be 0 at the end of the data.
  [[nodiscard]] std::uint64_t size() const noexcept;
  /// Sample IDs of the rows, in order; shorter than size() when the batch was padded.
  [[nodiscard]] std::span<const SampleId> samples() const noexcept;
  /// Which rows of the global batch these samples are, ascending: one after another, but with LoaderOptions::locality.
  [[nodiscard]] std::vector<std::uint64_t> row_numbers() const;
  /// The same as they were drawn: where another sample stands in a bad one's place (OnFault::replace), the bad one.
  [[nodiscard]] std::vector<SampleId> original_samples() const;
  /// What the records of samples() are called and where they are stored, computed now: nothing is read. A row that is masked
  /// has the name of its bad sample.
  [[nodiscard]] std::vector<RecordName> names() const;
  /// Those of original_samples().
  [[nodiscard]] std::vector<RecordName> original_names() const;
  /// The same batch for programs that need its memory only: it keeps no data set alive, as others do for names(), which throws
  /// std::logic_error in it. What to_dlpack() exports is such a one.
  [[nodiscard]] DeviceBatch without_names() const;

  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept;
  /// One field of all rows, in device memory (host memory on a host device).
  ///
  /// Shapes  [size(), …]
  /// Stream  on a CUDA device call wait_on(s) before reading on s
  /// Errors  std::invalid_argument  there is no such field; names those there are
  [[nodiscard]] TensorView operator[](std::string_view field) const;
  /// Payload over all fields; padding between them is left out.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Makes `stream` wait until this part has arrived; the host does not wait. The memory is reused only when all work that
  /// was queued on `stream` before this batch is destroyed has finished.
  ///
  /// Stream  must outlive this batch. Does nothing on a host device.
  /// Errors  CudaError
  void wait_on(StreamHandle stream) const;
  /// Queues a copy of a field to the caller's memory, for example the static inputs of a training
  /// step that was captured as a CUDA graph. Bytes after a short batch stay unchanged.
  ///
  /// Units   `bytes` of room at `destination`, on this device
  /// Stream  on `stream`, which waits as with wait_on; on a host device it is done on return
  /// Errors  std::invalid_argument  no such field, or too little room; CudaError
  void copy_to(std::string_view field, void* destination, std::size_t bytes,
               StreamHandle stream) const;
  /// Lets the host wait until this part has arrived.
  void synchronize() const;

 private:
  std::shared_ptr<const loader::StepInfo> info_;
  std::shared_ptr<const std::vector<SourcePtr>> sources_;  // for names
  std::size_t part_;
  std::shared_ptr<device::DeviceSlice> slice_;
};

/// One step of training: a DeviceBatch for every device of this process.
///
/// Owns  its parts.
class Step {
 public:
  Step(std::shared_ptr<const loader::StepInfo> info, std::vector<DeviceBatch> parts);

  /// Counted from 0 at the very start, also after a resume.
  [[nodiscard]] std::uint64_t number() const noexcept;
  /// The epoch of the global batch's first sample.
  [[nodiscard]] std::uint32_t epoch() const noexcept;
  /// Samples in the global batch, over all processes.
  [[nodiscard]] std::uint64_t global_samples() const noexcept;
  /// This process's samples, in the order of its parts and their rows.
  [[nodiscard]] std::span<const SampleId> samples() const noexcept;
  /// Which rows of the global batch these samples are, as in DeviceBatch.
  [[nodiscard]] std::vector<std::uint64_t> row_numbers() const;
  /// As in DeviceBatch, of all parts, in their order.
  [[nodiscard]] std::vector<SampleId> original_samples() const;
  [[nodiscard]] std::vector<RecordName> names() const;
  [[nodiscard]] std::vector<RecordName> original_names() const;
  /// Tolerated faults in this process's rows.
  [[nodiscard]] std::span<const Fault> faults() const noexcept;
  /// Of this process's rows; zero unless LoaderOptions::digest. Waits until CUDA devices have hashed theirs.
  ///
  /// Errors  CudaError  a device is lost
  [[nodiscard]] Digest digest() const;
  /// The same of what device transforms made; zero unless LoaderOptions::digest_transformed.
  ///
  /// Errors  CudaError  a device is lost
  [[nodiscard]] Digest transformed_digest() const;

  /// Number of parts: this process's devices.
  [[nodiscard]] std::size_t size() const noexcept { return parts_.size(); }
  /// Errors  std::out_of_range  there is no such part; says how many there are
  [[nodiscard]] const DeviceBatch& operator[](std::size_t part) const;
  [[nodiscard]] auto begin() const noexcept { return parts_.begin(); }
  [[nodiscard]] auto end() const noexcept { return parts_.end(); }

 private:
  std::shared_ptr<const loader::StepInfo> info_;
  std::shared_ptr<const std::vector<SourcePtr>> sources_;  // for names
  std::vector<DeviceBatch> parts_;
};

// ---- a batch's tensors for other libraries, without a copy ----

/// A field as DLPack's managed tensor, as torch's at::fromDLPack(), tvm and others take it.
///
/// Owns    the batch's slot until the caller calls its deleter, which may be on any thread
/// Stream  as operator[]: on a CUDA device call wait_on(s) before the tensor is read on s
/// Errors  std::invalid_argument  there is no such field
[[nodiscard]] DLManagedTensor* to_dlpack(const DeviceBatch& batch, std::string_view field);

/// What numpy's __array_interface__ and __cuda_array_interface__ (version 3) say of a tensor; with
/// it a binding can write that dictionary.
struct ArrayInterface {
  std::uintptr_t data = 0;
  std::vector<std::int64_t> shape;
  std::string typestr;  ///< "<f4", "|u1" and so on; bf16 has none, and is empty
  int version = 3;
};
/// Stream  as operator[]
/// Errors  std::invalid_argument  there is no such field
[[nodiscard]] ArrayInterface array_interface(const DeviceBatch& batch, std::string_view field);

// ---- one device's side of a Loader, for a consumer thread of its own ----

class Loader;
namespace loader {
class Run;
}

/// One device's side of a loader: delivers that device's part of every step, in order. A consumer
/// that falls behind holds the slots of what it has not taken, so the others can be ahead of it by
/// the depth of prefetch_to_devices and then wait; Stats::waiting_for names it. All devices
/// see the end, or an error, in the same step.
///
/// Threads  one thread per DeviceLoader; it may outlive the Loader, and then has no more data.
class DeviceLoader {
 public:
  class Iterator;

  /// This device's part of the next step, or none once the data has ended, and on every later call.
  ///
  /// Errors  as Loader::next()
  [[nodiscard]] std::optional<DeviceBatch> next();
  /// As Loader::wait_for().
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds timeout);
  [[nodiscard]] const Device& device() const noexcept;
  [[nodiscard]] std::size_t part() const noexcept { return part_; }

  [[nodiscard]] Iterator begin();
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  friend class Loader;
  DeviceLoader(std::shared_ptr<loader::Run> run, std::size_t part)
      : run_(std::move(run)), part_(part) {}

  std::shared_ptr<loader::Run> run_;
  std::size_t part_;
};

/// An input iterator; holds one batch until it is advanced.
class DeviceLoader::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = DeviceBatch;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(DeviceLoader& loader) : loader_(&loader) { ++*this; }
  [[nodiscard]] const DeviceBatch& operator*() const { return *batch_; }
  [[nodiscard]] const DeviceBatch* operator->() const { return &*batch_; }
  Iterator& operator++() {
    batch_.reset();
    batch_ = loader_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.batch_; }

 private:
  DeviceLoader* loader_;
  std::optional<DeviceBatch> batch_;
};

// ---- the running input pipeline ----

class Dataset;
class Epochs;
namespace loader {
class Run;
}

/// Delivers the steps of a Dataset, in order, decoded ahead by its own threads. Destroying it at
/// any moment joins them at once; batches that are still held stay valid. A loader that was moved
/// from can only be destroyed or assigned to.
///
/// Consumed either step by step, by next() and the iterators, or by one DeviceLoader per device.
///
/// Threads  one thread calls next(), restore(), set_weights() and the iterators; state(), stats(),
///          stop() and the rest may be called from any thread meanwhile.
class Loader {
 public:
  class Iterator;

  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  /// The next step, or none once the data has ended, and on every later call. Waits until it is
  /// ready.
  ///
  /// Errors  DataError   a fault that the policy does not tolerate, at the step it belongs to;
  ///                     and on every later call
  ///         CudaError   a copy could not be queued; and on every later call
  ///         Error       every slot is in a batch that the caller still holds, so none gets free
  ///                     (release batches that other threads use before the next call)
  ///         std::logic_error  DeviceLoaders have taken their parts of steps that others have not
  [[nodiscard]] std::optional<Step> next();
  /// Waits up to `timeout` until next() can return at once; says whether it can. Throws as next(). With
  /// LoaderOptions::exchange the first call waits for that, too, which has a time limit of its own.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds timeout);
  /// The batches of one device alone, for a consumer thread of its own; `part` counts devices().
  ///
  /// Errors  std::out_of_range  there is no such device
  [[nodiscard]] DeviceLoader device(std::size_t part);

  /// Starts reading ahead now rather than at the first next().
  void start();
  /// Ends the data here for every consumer: waiting consumers are woken, and their loops end. The
  /// threads are joined. restore() starts the loader again.
  void stop();

  /// Whether the end of the data was reached, or stop() was called.
  [[nodiscard]] bool has_ended() const;
  /// Loops over what is left. A second loop over a loader that has ended is an error, not silence.
  ///
  /// Errors  std::logic_error  the loader has ended; as for next() besides
  [[nodiscard]] Iterator begin();
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }
  /// for (auto epoch : loader.epochs()) for (const Step& step : epoch) …; a step belongs to the
  /// epoch of its first sample.
  [[nodiscard]] Epochs epochs();
  /// The epoch of the step that next() will return; none at the end. Waits until it is known, not
  /// until the step is ready.
  ///
  /// Errors  as for next(), where the step can't be known
  [[nodiscard]] std::optional<std::uint32_t> next_epoch();
  /// Waits up to `timeout` until next_epoch() can return at once; says whether it can.
  ///
  /// Errors  as for next_epoch()
  [[nodiscard]] bool wait_for_epoch(std::chrono::nanoseconds timeout);

  /// What was delivered so far: the steps that all devices have taken. The state of any process can
  /// be restored in any world. With digests it waits as digest() does.
  ///
  /// Errors  CudaError  a digest of what lies on a device was asked for, and the device is lost
  [[nodiscard]] LoaderState state() const;
  /// Resumes from `state`: the next step is the one that would have followed. Prefetched steps are
  /// discarded. Threads, depth, devices and processes may differ from those that saved it.
  ///
  /// Errors  Error  another dataset or plan; says what differs. The loader stays where it was.
  void restore(const LoaderState& state, const RestoreOptions& options = {});
  /// Restarts from step 0, on the same threads and memory: for a validation set that is read again
  /// and again. The position, faults and digests reset; stats() goes on.
  ///
  /// Errors  Error  the plan reads a stream
  void rewind();
  /// From `step` on, the datasets of the mix come in these proportions; changes that were set for later steps are dropped. What was prefetched is
  /// discarded; states that are saved from now on include the change. Every process must make
  /// the same call.
  ///
  /// Errors  std::logic_error       the plan is no mix followed by batch alone
  ///         std::invalid_argument  a step that was delivered already; weights that do not fit
  void set_weights(std::uint64_t step, std::vector<double> weights);
  /// Any past or future step of the plan, computed now; the loader's own position does not move.
  ///
  /// Errors  std::out_of_range  the plan has no such step; and as for any step
  [[nodiscard]] Step batch_at(std::uint64_t step) const;

  /// Claims at most `max_rows` rows of one device's slice that are not made yet, for a worker elsewhere; the loader's threads
  /// make the others. Waits until there are some; returns none when the time is over, so also after the end of the data. See
  /// penstock/loader/remote_rows.hpp.
  ///
  /// Threads  any number of threads, each at any time
  /// Errors   std::invalid_argument  max_rows is 0; the plan reads a stream
  [[nodiscard]] std::optional<RowTask> take_task(std::uint64_t max_rows,
                                                 std::chrono::nanoseconds timeout);
  /// What a RowMaker needs to know besides the plan: a line of JSON.
  ///
  /// Errors  Error  the plan reads a stream
  [[nodiscard]] std::string row_settings() const;
  /// Sets whether the loader's own threads make rows, too; by default they do.
  ///
  /// Threads  any
  void enable_local_rows(bool enabled);

  /// What must be the same in all processes of a run, for require_agreement(): the plan with the fingerprints of its data, the
  /// seed, the step that comes next, and the number of processes.
  [[nodiscard]] std::vector<Fact> facts() const;
  /// Steps from the very start to the end of the plan; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> size() const;
  /// The seed in use: the plan's, or the one that was drawn.
  [[nodiscard]] std::uint64_t seed() const noexcept;
  [[nodiscard]] std::span<const Device> devices() const noexcept;
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept;
  [[nodiscard]] Stats stats() const;
  /// Samples delivered to each of devices(), in their order.
  [[nodiscard]] std::vector<std::uint64_t> samples_per_device() const;
  /// The first 100 tolerated faults, in the order of delivery.
  [[nodiscard]] std::vector<Fault> faults() const;
  /// What a user should know of the data sets, such as files that were left out; see Source::notices().
  [[nodiscard]] std::vector<Notice> notices() const;
  /// Sum over everything delivered since the very start; zero unless LoaderOptions::digest. Waits until CUDA devices have
  /// hashed what was delivered on them, and so until it has been copied; next() never does.
  ///
  /// Errors  CudaError  a device is lost
  [[nodiscard]] Digest digest() const;
  /// The same of what device transforms made of it, as it lies on the devices; zero unless
  /// LoaderOptions::digest_transformed. With mixup or cutmix it depends on the split, as the bytes do.
  ///
  /// Errors  CudaError  a device is lost
  [[nodiscard]] Digest transformed_digest() const;

 private:
  friend class Dataset;
  explicit Loader(std::shared_ptr<loader::Run> run);

  std::shared_ptr<loader::Run> run_;
};

/// An input iterator; holds one step until it is advanced.
class Loader::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Step;
  using difference_type = std::ptrdiff_t;

  [[nodiscard]] const Step& operator*() const { return *step_; }
  [[nodiscard]] const Step* operator->() const { return &*step_; }
  Iterator& operator++() {
    advance();
    return *this;
  }
  void operator++(int) { advance(); }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.step_; }

 private:
  friend class Loader;
  friend class Epoch;
  Iterator(Loader& loader, std::optional<std::uint32_t> epoch) : loader_(&loader), epoch_(epoch) {
    advance();
  }
  void advance();

  Loader* loader_;
  std::optional<std::uint32_t> epoch_;  // stop before a step of another epoch
  std::optional<Step> step_;
};

/// The steps of one epoch that are left.
class Epoch {
 public:
  Epoch(Loader& loader, std::uint32_t number) : loader_(&loader), number_(number) {}
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] Loader::Iterator begin() const { return {*loader_, number_}; }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  Loader* loader_;
  std::uint32_t number_;
};

/// The epochs that are left. Advancing passes over the steps that are left of the current one: they are made, count as
/// delivered, and raise what is wrong in them. To end an epoch early without that, use Dataset::take behind batch.
class Epochs {
 public:
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Epoch;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Loader& loader) : loader_(&loader), number_(loader.next_epoch()) {}
    [[nodiscard]] Epoch operator*() const { return {*loader_, *number_}; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.number_; }

   private:
    Loader* loader_;
    std::optional<std::uint32_t> number_;
  };

  explicit Epochs(Loader& loader) : loader_(&loader) {}
  [[nodiscard]] Iterator begin() const { return Iterator(*loader_); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  Loader* loader_;
};

}  // namespace penstock
