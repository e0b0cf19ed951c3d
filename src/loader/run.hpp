// loader/run: what a Loader holds: hands an engine's batches to the consumers, and counts what
// they took.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
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

/// Threads  see Loader and DeviceLoader. Everything is guarded by the engine's mutex.
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
  void restore(const LoaderState& state, const RestoreOptions& options);
  void set_weights(std::uint64_t step, std::vector<double> weights);
  [[nodiscard]] std::string row_settings() const;
  /// The engine's, which stay the same ones.
  [[nodiscard]] RowThreads& rows() const noexcept { return engine_->rows(); }
  Step batch_at(std::uint64_t step) const;
  Stats stats() const;

  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] std::uint64_t seed() const noexcept;
  [[nodiscard]] std::optional<std::uint64_t> steps() const;
  [[nodiscard]] std::span<const Device> devices() const noexcept { return engine_->devices(); }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept { return engine_->fields(); }
  [[nodiscard]] std::vector<std::uint64_t> samples_per_device() const;
  [[nodiscard]] std::vector<Fault> faults() const;
  [[nodiscard]] std::vector<Notice> notices() const;
  [[nodiscard]] device::SliceDigests digests() const;

 private:
  using Held = std::shared_ptr<std::atomic<std::size_t>>;
  using Lock = Engine::Lock;
  /// What a consumer waits for: a step's numbers, or its batch.
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
    std::optional<Deadline> all_held_since;
    Deadline held_seen;
  };

  /// Charges consumers that wait for the time that it lives. Under the lock, at both ends.
  class Waiting {
   public:
    Waiting(Run& run, std::span<Consumer> consumers);
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting();

   private:
    Run& run_;
    std::span<Consumer> consumers_;
  };

  void start_locked();
  void count_stats(Stats& stats) const;
  [[nodiscard]] std::vector<Fact> facts_locked() const;
  /// Waits for the next step of these consumers, which are at the same one; a restore() in the meantime gives them
  /// another. The engine has its batch then, unless the data ends before it, or it is too late.
  ///
  /// Errors  why the step can't be delivered; then neither can later ones
  [[nodiscard]] Fetched fetch(Lock& lock, std::span<Consumer> waiting, Until until,
                              Deadline deadline);
  /// False when it is too late.
  [[nodiscard]] bool wait(Lock& lock, std::span<Consumer> waiting, Until until, Deadline deadline);
  [[nodiscard]] bool has_failed(std::uint64_t step) const noexcept {
    return error_ && step >= failed_step_;
  }
  void fail(std::uint64_t step, std::exception_ptr error);
  /// Compares facts() with those of the other processes, on the thread of the consumer that comes first; the lock is
  /// free meanwhile.
  void compare_facts(Lock& lock);
  [[nodiscard]] Fetched look_ahead(Lock& lock, Deadline deadline);
  static void end_meters(std::span<Consumer> consumers);
  [[nodiscard]] bool wait_for_slot(Lock& lock, Consumer& consumer, Deadline deadline);
  [[noreturn]] void throw_all_held() const;
  void check_consumers_aligned() const;
  void require_deliverable(const InFlight& batch) const;
  void count_delivered(const InFlight& batch);
  [[nodiscard]] DeviceBatch take(InFlight& batch, std::size_t part,
                                 const std::shared_ptr<const StepInfo>& info);
  void release_taken();
  [[nodiscard]] device::SliceDigests wait_for_digests(Lock lock) const;
  [[nodiscard]] const std::string& identity() const;

  LoaderOptions options_;
  std::unique_ptr<Engine> engine_;
  std::vector<StorageTier> tiers_before_;       // of earlier runs, which had the same sources
  std::vector<FunctionTime> functions_before_;  // of earlier runs, which had the same transforms
  std::vector<Notice> notices_of_state_;        // of the one that was restored
  std::vector<WeightChange> weights_;           // since the start, in order of their steps
  Held held_steps_ = std::make_shared<std::atomic<std::size_t>>(0);  // by the caller, as a whole
  std::vector<Consumer> consumers_;                                  // one per device
  bool has_compared_ = false;      // its facts with the other processes, or does so
  bool is_comparing_ = false;      // a consumer's thread waits for them
  std::exception_ptr error_;       // what a consumer got, and all will get
  std::uint64_t failed_step_ = 0;  // from this step on
  bool ended_ = false;             // a consumer has seen the end of the data
  bool stopped_ = false;
  Progress progress_;
  mutable std::once_flag identified_;
  mutable std::string identity_;  // of the plan
};

}  // namespace penstock::loader
