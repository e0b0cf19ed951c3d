// loader/stats: where the time went, and which stage caused each stall.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <penstock/core/function_time.hpp>
#include <penstock/device/device.hpp>

namespace penstock {

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
  std::uint64_t given_back = 0;  ///< tasks that others had to do
  double wait_s = 0;             ///< from taking a task to its rows, added up over the tasks
  double made_s = 0;             ///< of this time: making the rows; the rest is spent on the way
  double copy_s = 0;             ///< copying the rows to their slots
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

/// Told when a stage of a batch begins and ends, on the thread that does it.
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
  /// A GPU copied, decoded or transformed a batch from `begin_ns` to `end_ns` (as of now_ns()); told later,
  /// when its memory is used again. Timing costs a few events a batch.
  virtual void on_device(const Device& device, Stage stage, std::uint64_t step,
                         std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    (void)device, (void)stage, (void)step, (void)begin_ns, (void)end_ns;
  }
};

}  // namespace penstock
