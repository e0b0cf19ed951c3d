// loader/engine: the threads that fill batches ahead of the consumer, from one step on.
//
// The driver draws the next step's numbers, leases a place on every device and a slot (here
// backpressure blocks) and opens the batch. Workers take grains of samples from the oldest batch
// that has any left; who finishes a batch's last sample publishes it, which queues its copies: on
// GPUs in order, with those behind it that are complete. Batches are delivered in order.
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

/// Threads  wait(), wait_for_numbers() and pop() on one thread at a time; start(), interrupt() and
///          restart() on one, while another may wait; the rest from any.
class Engine {
 public:
  /// Allocates slots and device memory; no thread runs yet. Steps [first, last) will be produced,
  /// or all from `first` on.
  ///
  /// Errors  Error      the budget does not hold two slots; says what would
  ///         CudaError  a device cannot be used
  Engine(EngineConfig config, std::uint64_t first, std::optional<std::uint64_t> last = {});
  /// Stops and joins: at most one sample's work per thread is waited for.
  ~Engine();

  void start();
  /// Joins the threads and ends the data: waiting callers get null.
  void interrupt();
  /// Stops, discards what was read ahead, and will continue from `first`; the memory stays.
  /// `config` differs from the first one in nothing but the seed and what follows from it. `is_new_run`: what devices found wrong
  /// with batches until now is forgotten.
  void restart(EngineConfig config, std::uint64_t first, bool is_new_run);
  /// Waits for the oldest batch to be published; null at the end of the data. Leaves it in its
  /// place. None when it is not there by the deadline.
  [[nodiscard]] std::optional<std::shared_ptr<InFlight>> wait(Deadline deadline = kNever);
  /// Waits until the oldest batch's numbers are drawn and it has its place; else as wait().
  [[nodiscard]] std::optional<std::shared_ptr<InFlight>> wait_for_numbers(
      Deadline deadline = kNever);
  /// Takes the oldest batch out.
  void pop();
  /// Waits until the devices have decoded what they were given.
  ///
  /// Errors  Error  something was wrong with it
  void check_devices();

  /// Whether the driver waits for a slot.
  [[nodiscard]] bool wants_slot() const noexcept { return wants_slot_; }
  [[nodiscard]] std::size_t slots() const noexcept { return ring_->slots(); }
  [[nodiscard]] RowThreads& rows() const noexcept { return *rows_; }
  [[nodiscard]] StageNs charge_wait(std::int64_t from, std::int64_t to, std::uint64_t step) const;
  /// Adds busy times and memory.
  void report(Stats& stats) const;

 private:
  void stop();
  void drive(const std::stop_token& stop);
  [[nodiscard]] bool open_step(std::uint64_t step, const std::stop_token& stop);
  [[nodiscard]] std::shared_ptr<InFlight> lay_out(std::uint64_t step, DrawnStep& drawn) const;
  [[nodiscard]] bool lease_places(InFlight& batch, const std::stop_token& stop);
  void complete(const std::shared_ptr<InFlight>& batch);
  void publish_in_order(std::unique_lock<std::mutex>& lock);
  void publish(const std::shared_ptr<InFlight>& batch);
  void zero_padding(const InFlight& batch) const;
  void give_up(InFlight& batch, std::exception_ptr error);
  void end(std::exception_ptr error, std::uint64_t step);
  [[nodiscard]] std::optional<std::int64_t> last_local_ns(const InFlight& batch) const;
  template <class Ready>
  std::optional<std::shared_ptr<InFlight>> wait_until(Deadline deadline, Ready ready);

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
  std::condition_variable consumer_;
  std::list<std::shared_ptr<InFlight>> queue_;   // in order of steps, until delivered
  std::list<std::shared_ptr<InFlight>> ending_;  // one, for an error: there may be no memory then
  mutable std::deque<StepTimes> times_;          // of the oldest, what is known by now
  bool ended_ = false;
  bool publishes_in_order_ = false;
  bool publishing_ = false;
  std::atomic<bool> wants_slot_ = false;

  std::array<std::atomic<std::int64_t>, kStages> busy_ns_{};

  std::unique_ptr<RowThreads> rows_;
  std::jthread driver_;
};

}  // namespace penstock::loader
