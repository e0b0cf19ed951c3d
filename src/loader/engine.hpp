// loader/engine: makes the batches of a run, one step after the other, ahead of the consumers.
//
// The driver draws the next step's numbers, leases a place on every device and a slot (here
// backpressure blocks) and opens the batch. Decoding threads claim samples, a few at a time, from
// the oldest batch that has any left; the thread that finishes a batch's last sample publishes it,
// which queues its copies: on GPUs in order, with those behind it that are complete. What becomes
// of published batches is Run's to decide.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "src/device/transfer.hpp"
#include "src/loader/engine_config.hpp"
#include "src/loader/in_flight.hpp"
#include "src/loader/open_samples.hpp"
#include "src/loader/row_threads.hpp"
#include "src/loader/stall_meter.hpp"
#include "src/loader/step_cursor.hpp"
#include "src/staging/ring.hpp"

namespace penstock::loader {

/// Threads  any, under lock(); but for what says otherwise.
class Engine final : public BatchOwner {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// Allocates slots and device memory; no thread runs yet. Steps [first, last) will be produced,
  /// or all from `first` on.
  ///
  /// Errors  Error      the budget does not hold two slots; says what would
  ///         CudaError  a device cannot be used
  Engine(EngineConfig config, std::uint64_t first, std::optional<std::uint64_t> last = {});
  /// Stops and joins, without the lock: at most one sample's work per thread is waited for.
  ~Engine();

  /// Locks the loader's one mutex. It guards the list of batches, and all that Run keeps.
  [[nodiscard]] Lock lock() const { return Lock(mutex_); }
  /// Waits until no Pause lives and `ready()`, which is called under the lock, is true; false when it is too late.
  template <class Ready>
  [[nodiscard]] bool wait(Lock& lock, Deadline deadline, Ready ready);
  /// Wakes the threads in wait(), which call their `ready()` again.
  void notify() noexcept { changed_.notify_all(); }

  /// Starts the threads where none run.
  ///
  /// Errors  Error  a thread can't be started; the next call tries again
  void start();
  [[nodiscard]] bool is_running() const noexcept { return driver_.joinable(); }
  [[nodiscard]] bool is_paused() const noexcept { return is_paused_; }
  /// The batch of `step`, from when its numbers are drawn and it has its place until it is dropped; else null.
  [[nodiscard]] InFlight* find(std::uint64_t step) const noexcept;
  /// Whether the batch of `step` is published or has failed, or there is none because the data ends before it.
  [[nodiscard]] bool is_settled(std::uint64_t step) const noexcept;
  /// Drops the oldest batch: the consumers have taken it.
  void drop_oldest();
  /// Waits until the devices have decoded what they were given.
  ///
  /// Errors  Error  something was wrong with it
  void check_devices();
  [[nodiscard]] StageNs charge_wait(std::int64_t from, std::int64_t to, std::uint64_t step) const;
  /// Steps in the run; none when endless.
  [[nodiscard]] std::optional<std::uint64_t> steps() const noexcept { return cursor_.steps(); }
  [[nodiscard]] const EngineConfig& config() const noexcept { return config_; }

  /// While it lives, other threads' wait() and Pause wait. It holds the lock, except while it joins threads.
  class Pause {
   public:
    explicit Pause(Engine& engine);
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();

    /// Joins the threads, and drops all batches.
    void stop();
    /// Joins them, drops all batches, and makes start() begin at `step`, with the seed and the weights of `config`
    /// and what follows from them; all else is as it was. What devices found wrong with batches until now is
    /// forgotten.
    ///
    /// Errors  Error  there is no such step; then nothing has changed
    void restart(EngineConfig config, std::uint64_t step);
    /// The same within a run: batches before `step` stay, and what devices found wrong, too.
    void change(EngineConfig config, std::uint64_t step);

   private:
    void join();

    Engine& engine_;
    Lock lock_;
  };

  // ---- without the lock, too ----

  [[nodiscard]] const plan::PlanPtr& plan() const noexcept { return config_.plan; }
  [[nodiscard]] const Topology& topology() const noexcept { return config_.topology; }
  [[nodiscard]] std::span<const Device> devices() const noexcept { return config_.devices; }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept { return config_.fields; }
  /// Whether the driver waits for a slot.
  [[nodiscard]] bool wants_slot() const noexcept { return wants_slot_; }
  [[nodiscard]] std::size_t slots() const noexcept { return ring_->slots(); }
  [[nodiscard]] RowThreads& rows() const noexcept { return *rows_; }
  /// Adds busy times and memory.
  void report(Stats& stats) const;

 private:
  /// What another seed or other weights need: made while threads still run, since that may fail.
  struct Prepared {
    EngineConfig config;
    std::stop_source stop_stream;
    StepCursor cursor;
    RowThreads::Prepared rows;
  };
  void join();
  [[nodiscard]] Prepared prepare(EngineConfig config);
  void use(Prepared prepared, std::uint64_t first) noexcept;
  void drive(const std::stop_token& stop);
  [[nodiscard]] bool open_step(std::uint64_t step, const std::stop_token& stop);
  [[nodiscard]] std::shared_ptr<InFlight> lay_out(std::uint64_t step, DrawnStep& drawn) const;
  [[nodiscard]] bool lease_places(InFlight& batch, const std::stop_token& stop);
  void complete(const std::shared_ptr<InFlight>& batch) override;
  void give_up(InFlight& batch, std::exception_ptr error) override;
  void publish_in_order(Lock& lock);
  void publish(const std::shared_ptr<InFlight>& batch);
  void zero_padding(const InFlight& batch) const;
  void end(std::exception_ptr error, std::uint64_t step);
  [[nodiscard]] std::optional<std::int64_t> last_local_ns(const InFlight& batch) const;

  EngineConfig config_;
  std::uint64_t first_;
  std::optional<std::uint64_t> last_;
  std::stop_source stop_stream_;
  StepCursor cursor_;
  std::size_t fixed_bytes_ = 0;
  int io_threads_ = 0;
  std::shared_ptr<staging::StagingRing> ring_;
  std::vector<std::unique_ptr<device::Transfer>>
      transfers_;  // one per part; destroyed before the ring

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // what wait() and Pause wait for
  std::list<std::shared_ptr<InFlight>>
      queue_;  // in order of steps, until all consumers have taken them
  std::list<std::shared_ptr<InFlight>>
      ending_;  // made beforehand, for the driver's error: there may be no memory then
  mutable std::deque<StepTimes>
      times_;           // from the oldest step of the queue on, what is known by now
  bool ended_ = false;  // the driver has: no step comes behind those of the queue
  bool is_paused_ = false;
  bool publishes_in_order_ = false;
  bool publishing_ = false;
  std::atomic<bool> wants_slot_ = false;

  std::array<std::atomic<std::int64_t>, kStages> busy_ns_{};

  std::unique_ptr<RowThreads> rows_;
  std::jthread driver_;
};

template <class Ready>
bool Engine::wait(Lock& lock, Deadline deadline, Ready ready) {
  const auto may_go_on = [&] { return !is_paused_ && ready(); };
  if (deadline != kNever) return changed_.wait_until(lock, deadline, may_go_on);
  changed_.wait(lock, may_go_on);
  return true;
}

}  // namespace penstock::loader
