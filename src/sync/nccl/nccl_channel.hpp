// sync/nccl/nccl_channel: one NCCL communicator, and the thread that watches what it does.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <nccl.h>

#include <penstock/sync/rendezvous.hpp>

#include "src/device/cuda_owners.hpp"
#include "src/sync/collectives/links.hpp"

namespace penstock::sync {

/// Threads  enqueue() one at a time; the rest from any.
class NcclChannel {
 public:
  struct Place {
    std::uint32_t rank = 0;
    std::uint32_t size = 1;
    int device = 0;
    double timeout_s = 300;
    std::shared_ptr<Rendezvous> rendezvous;  // null: deaths are not reported
  };

  /// A new group; all ranks come at the same time.
  NcclChannel(Place place, const std::string& unique_id);
  NcclChannel(const NcclChannel&) = delete;
  NcclChannel& operator=(const NcclChannel&) = delete;
  ~NcclChannel();

  /// The same ranks once more; all ranks call it.
  [[nodiscard]] std::shared_ptr<NcclChannel> split();
  using Start = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  /// Runs `start`, which queues work on the stream that it is given, with the device current; then watches the work, which
  /// comes behind what `stream` has so far, and before what it is given later.
  void enqueue(const std::string& what, cudaStream_t stream, const Start& start);
  /// Throws what has broken the channel, if anything has.
  void check_health();
  /// Work in progress ends soon after, and later calls throw this. Waits for nothing: the thread that watches aborts NCCL's
  /// communicator, since that may wait for what else the device does, which may have to be aborted, too.
  void abort(const std::exception_ptr& cause) noexcept;
  /// Waits for `stream`, for kMostWait seconds at most, where the channel is broken; returns at once where it is not.
  void wait_until_ended(cudaStream_t stream) noexcept;
  static constexpr double kMostWait = 10;
  /// `tell` is called once, on another thread, with what breaks the channel from now on. When this returns, the one before is not
  /// running and will not be called.
  void on_broken(std::function<void(const std::exception_ptr&)> tell);

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] ncclComm_t get() const noexcept { return comm_; }

 private:
  struct Work {
    device::CudaEvent
        begun;  // the stream has come to it: what it was given before does not count as lateness
    device::CudaEvent done;
    std::string what;
    std::uint64_t number;
    std::optional<Deadline> deadline;  // once it has begun
  };
  using UniqueLock = std::unique_lock<std::mutex>;

  struct InCall;

  NcclChannel(Place place, ncclComm_t comm, std::string key);
  void begin(ncclResult_t status, const std::string& what);
  ncclResult_t call(const std::function<ncclResult_t(ncclComm_t)>& function);
  void finish(ncclResult_t status, const std::string& what);
  void break_locked(std::exception_ptr cause) noexcept;
  void watch(const std::stop_token& stop);
  void look_locked(UniqueLock& lock);
  void end_work(UniqueLock& lock) noexcept;
  void tell(const std::exception_ptr& cause);
  [[nodiscard]] std::optional<std::string> who_is_gone(Deadline deadline) const;
  [[nodiscard]] PendingCall pending(const std::string& what, std::uint64_t number) const;
  [[nodiscard]] std::vector<PendingCall> waits_for();
  [[nodiscard]] std::string late_text(const std::string& what, std::uint64_t sequence);

  Place place_;
  ncclComm_t comm_ = nullptr;
  // Of this channel's progress in the rendezvous: the same on all ranks, since it comes from NCCL's id and the number of the
  // split.
  std::string key_;
  std::uint32_t splits_ = 0;
  std::deque<ncclComm_t> copies_;  // one for each split
  std::mutex mutex_;               // not held where NCCL or CUDA may wait for a stream to take more
  std::condition_variable_any changed_;
  std::deque<Work> work_;
  std::uint64_t sequence_ = 0;
  std::optional<device::CudaStream> own_stream_;
  bool is_inside_ = false;  // a call, in NCCL
  std::optional<PendingCall> in_call_;
  std::exception_ptr broken_;
  std::mutex tell_mutex_;  // before mutex_
  std::function<void(const std::exception_ptr&)> tell_;
  std::shared_ptr<void> answers_;
  std::jthread watchdog_;
};

}  // namespace penstock::sync
