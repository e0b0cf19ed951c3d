#include "src/device/cuda_transfer.hpp"

#include <algorithm>
#include <chrono>
#include <list>
#include <thread>
#include <utility>

#include <penstock/core/error.hpp>

#include "src/device/cuda_slice.hpp"

namespace penstock::device {

namespace {

// The host function behind a copy.
void give_back(void* data) noexcept {
  auto& slot = *static_cast<CudaState::SlotInFlight*>(data);
  std::shared_ptr<staging::StagingLease> lease;  // returned behind the lock
  CudaState& state = *slot.state;
  const std::lock_guard lock(state.in_flight_mutex);
  lease = std::move(slot.lease);
  state.in_flight.erase(slot.self);
}

class CudaTransfer final : public Transfer {
 public:
  CudaTransfer(int device, TransferPlan plan) : state_(CudaState::make(device, std::move(plan))) {}
  /// Does not wait for the device: what that still reads stays with the state. For spans it waits a second at most.
  ~CudaTransfer() override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (state_->timing && !state_->work_is_over() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(state_->mutex);
    try {
      const CurrentDevice current(state_->device_index);
      if (state_->timing)
        for (CudaPlace& place : state_->places)
          state_->timing->tell(*place.stamps, state_->plan.on_span);
    } catch (const CudaError&) {
      // The device is lost, with the last spans.
    }
    state_->timing.reset();
    state_->plan.on_span = nullptr;
    const bool is_lost = is_lost_now();
    if (state_->digests && is_lost) state_->digests->finish();
    {
      const std::lock_guard in_flight(state_->in_flight_mutex);
      if (is_lost) state_->in_flight.clear();  // no host function comes for them
    }
    if (is_lost || state_->no_slot_is_in_flight()) state_->staging.reset();
  }

  void check_health() override {
    const CurrentDevice current(state_->device_index);
    (void)state_->places.front().arrived.is_over();
  }

  void check_work() override {
    const CurrentDevice current(state_->device_index);
    for (CudaPlace& place : state_->places) {
      if (!state_->has_work(place)) continue;
      check(cudaEventSynchronize(place.arrived.get()));
      state_->check_work(place);
    }
  }
  void forget_work() override {
    const std::lock_guard lock(state_->mutex);
    ++state_->run;
  }

  [[nodiscard]] std::shared_ptr<DeviceSlice> reserve(std::stop_token stop) override {
    staging::StagingLease lease = state_->ring->acquire(stop, [this] { check_health(); });
    if (!lease) return nullptr;
    CudaPlace& place = state_->places[lease.index()];
    if (!wait_for_captures(place, stop) || !wait_for_work(place, stop)) return nullptr;
    return std::make_shared<CudaSlice>(state_, std::move(lease));
  }

  void enqueue(DeviceSlice& slice, FilledSlice filled) override {
    auto& own = static_cast<CudaSlice&>(slice);
    CudaPlace& place = own.place();
    const cudaStream_t copies = state_->copies.get();
    const cudaStream_t releases = state_->releases.get();
    CudaState::SlotInFlight& in_flight = state_->hold(std::move(filled.slot));
    const std::lock_guard lock(state_->mutex);
    const CurrentDevice current(state_->device_index);
    for (const CudaReaderDone& done : place.readers)
      check(cudaStreamWaitEvent(copies, done.event.get(), 0));
    // Device transforms that no consumer has waited for may still be reading what lies here.
    if (state_->transforms_anything()) check(cudaStreamWaitEvent(copies, place.ready.get(), 0));
    if (state_->digests) check(cudaStreamWaitEvent(copies, place.hashed.get(), 0));
    if (place.stamps) begin_stamps(*place.stamps, filled.step);
    check(cudaMemcpyAsync(own.data(), filled.bytes.data(), filled.bytes.size(),
                          cudaMemcpyHostToDevice, copies));
    try {
      if (place.stamps) check(cudaEventRecord(place.stamps->copy_end.get(), copies));
      const CudaEvent& copied = filled.work ? place.copied : place.arrived;
      check(cudaEventRecord(copied.get(), copies));
      check(cudaStreamWaitEvent(releases, copied.get(), 0));
      check(cudaLaunchHostFunc(releases, &give_back, &in_flight));
      if (filled.work) state_->work(place, own.data(), std::move(filled.work));
    } catch (...) {
      (void)cudaStreamSynchronize(copies);  // which may still read the slot
      throw;
    }
    own.copied(filled.rows, filled.samples, filled.form, std::move(filled.groups));
  }

  void transform(DeviceSlice& slice) override {
    const auto waits_for_consumer = [](const PlacedDeviceTransform& placed) {
      return placed.transform.options().on_consumer_stream;
    };
    // A caller that asks for the digest of what comes of it need not have waited for the batch.
    const bool hashed = state_->digests && state_->digests->hashes_transformed();
    const bool waits = state_->transforms_anything() &&
                       std::ranges::any_of(state_->plan.transforms.front(), waits_for_consumer);
    if (!hashed && waits) return;
    static_cast<CudaSlice&>(slice).transform_on(state_->transforms.get());
  }

  [[nodiscard]] std::shared_ptr<PendingDigests> digest(DeviceSlice& slice) override {
    return static_cast<CudaSlice&>(slice).digest();
  }

 private:
  [[nodiscard]] bool is_lost_now() noexcept {
    try {
      check_health();
      return false;
    } catch (const CudaError&) {
      return true;
    }
  }

  // A reader's stream was in a capture when its batch was released; what it was given before that is over only behind
  // what can be recorded when the capture has ended. False when stopped.
  [[nodiscard]] bool wait_for_captures(CudaPlace& place, const std::stop_token& stop) const {
    constexpr std::chrono::milliseconds kPoll(1);
    for (CudaReaderDone& done : place.readers) {
      for (;;) {
        {
          const CurrentDevice current(done.device);
          if (done.record_after_capture()) break;
        }
        if (stop.stop_requested()) return false;
        std::this_thread::sleep_for(kPoll);
      }
    }
    return true;
  }

  // Its copy went before that of a slot which has come back meanwhile: mostly it has run. False when stopped.
  [[nodiscard]] bool wait_for_work(CudaPlace& place, const std::stop_token& stop) const {
    constexpr std::chrono::milliseconds kPoll(1);
    if (!state_->has_work(place)) return true;
    {
      const CurrentDevice current(state_->device_index);
      while (!place.arrived.is_over()) {
        if (stop.stop_requested()) return false;
        std::this_thread::sleep_for(kPoll);
      }
    }
    state_->check_work(place);
    return true;
  }

  void begin_stamps(CudaStamps& stamps, std::uint64_t step) {
    state_->timing->tell(stamps, state_->plan.on_span);  // of the batch that lay here before
    stamps.step = step;
    check(cudaEventRecord(stamps.copy_begin.get(), state_->copies.get()));
    stamps.copied = true;
  }

  std::shared_ptr<CudaState> state_;
};

}  // namespace

std::unique_ptr<Transfer> open_cuda_transfer(int index, TransferPlan plan) {
  require_device(index);
  return std::make_unique<CudaTransfer>(index, std::move(plan));
}

}  // namespace penstock::device
