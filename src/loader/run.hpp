// loader/run: what a Loader holds: the plan made concrete, the engine, and the counters of what
// was delivered.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <penstock/core/process.hpp>
#include <penstock/loader/loader.hpp>

#include "src/loader/engine.hpp"
#include "src/loader/stall_meter.hpp"
#include "src/loader/topology.hpp"
#include "src/plan/plan.hpp"

namespace penstock::loader {

/// Threads  see Loader and DeviceLoader. Everything is guarded by one mutex, which is free while a
///          consumer waits for the engine.
class Run {
 public:
  Run(const plan::PlanPtr& plan, const LoaderOptions& options);
  ~Run();

  std::optional<Step> next();
  std::optional<DeviceBatch> next_part(std::size_t part);
  bool wait_for(std::chrono::nanoseconds timeout);
  bool wait_for_part(std::size_t part, std::chrono::nanoseconds timeout);
  bool wait_for_epoch(std::chrono::nanoseconds timeout);
  void start();
  void stop();
  std::optional<std::uint32_t> next_epoch();
  [[nodiscard]] std::vector<Fact> facts() const;
  LoaderState state() const;
  void restore(const LoaderState& state);
  void set_weights(std::uint64_t step, std::vector<double> weights);
  [[nodiscard]] std::string row_settings() const;
  /// The engine's, which stay the same ones.
  [[nodiscard]] RowThreads& rows() const noexcept { return engine_->rows(); }
  Step batch_at(std::uint64_t step) const;
  Stats stats() const;

  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] std::uint64_t seed() const noexcept { return config_->seed; }
  [[nodiscard]] std::optional<std::uint64_t> steps() const;
  [[nodiscard]] std::span<const Device> devices() const noexcept { return config_->devices; }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept { return config_->fields; }
  [[nodiscard]] std::vector<std::uint64_t> samples_per_device() const;
  [[nodiscard]] std::vector<Fault> faults() const;
  [[nodiscard]] device::SliceDigests digests() const;

 private:
  using Held = std::shared_ptr<std::atomic<std::size_t>>;
  using Lock = std::unique_lock<std::mutex>;
  enum class Until { numbers, published };
  enum class Fetched { step, end, late };

  /// What was delivered; what a state saves.
  struct Progress {
    std::uint64_t step = 0;
    std::uint64_t global_samples = 0;
    std::uint64_t fault_count = 0;
    std::vector<Fault> faults;
    device::SliceDigests digests;  // as far as they are known
    std::vector<std::shared_ptr<device::PendingDigests>> pending_digests;  // and the others
    // Of this run only.
    std::uint64_t steps = 0;
    std::uint64_t samples = 0;
    std::uint64_t bytes_read = 0;
    std::uint64_t retries = 0;
    std::vector<std::uint64_t> samples_per_device;
  };
  /// One device's consumer.
  struct Consumer {
    std::uint64_t step = 0;                                     // the next to be taken
    Held held = std::make_shared<std::atomic<std::size_t>>(0);  // steps it has parts of
    StallMeter meter;
  };

  void start_locked();
  [[nodiscard]] std::vector<Fact> facts_locked() const;
  void restart_for_waiters();
  void restart_from(std::uint64_t step, EngineConfig config, bool is_new_run = true);
  /// Makes sure that the next step of the first of these consumers, who wait, lies in pending_, unless the data ends before it
  /// or it is too late. A restore() in the meantime gives them another next step.
  [[nodiscard]] Fetched fetch(Lock& lock, std::span<Consumer> waiting, Deadline deadline = kNever);
  /// The batch that is to be taken next, filled or not; null at the end, none when it is too late.
  [[nodiscard]] std::optional<std::shared_ptr<InFlight>> look_ahead(Lock& lock, Deadline deadline);
  /// The batch, null at the end of the data; none when it is too late.
  [[nodiscard]] std::optional<std::shared_ptr<InFlight>> wait(Lock& lock, Until until,
                                                              std::span<Consumer> waiting,
                                                              Deadline deadline = kNever);
  /// Charges the consumers of these that wait for the time since they began to.
  void leave_meters(std::span<Consumer> consumers, bool delivered);
  static void end_meters(std::span<Consumer> consumers);
  void check_held_batches(const Consumer& consumer) const;
  void check_consumers_aligned() const;
  void refuse_untolerated_faults(const InFlight& batch) const;
  void count_delivered(const InFlight& batch);
  [[nodiscard]] DeviceBatch take(InFlight& batch, std::size_t part,
                                 const std::shared_ptr<const StepInfo>& info);
  void release_taken();
  [[nodiscard]] device::SliceDigests wait_for_digests(Lock lock) const;
  [[nodiscard]] const std::string& identity() const;

  LoaderOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable arrived_;
  std::optional<EngineConfig> config_;
  std::vector<FunctionTime> functions_before_;  // of earlier runs, which had the same transforms
  std::unique_ptr<Engine> engine_;
  std::vector<WeightChange> weights_;  // since the start, in order of their steps
  Held held_steps_ = std::make_shared<std::atomic<std::size_t>>(0);  // by the caller, as a whole
  std::vector<Consumer> consumers_;                                  // one per device
  std::deque<std::shared_ptr<InFlight>>
      pending_;                // from the engine, not yet taken by all consumers
  std::uint64_t fetched_ = 0;  // the next step to come from the engine
  bool fetching_ = false;      // a consumer waits for the engine
  bool agreed_ = false;        // with the other processes, or about to
  std::uint64_t restores_ = 0;
  std::uint64_t generation_ = 0;  // restarts of the engine
  std::exception_ptr error_;      // what next() threw and will throw again
  bool ended_ = false;
  bool stopped_ = false;
  Progress progress_;
  mutable std::string identity_;  // of the plan; empty until it is asked for
};

}  // namespace penstock::loader
