#include "src/device/cuda_transfer.hpp"

#include <algorithm>
#include <utility>

#include <penstock/core/error.hpp>

#include "src/device/cuda_slice.hpp"

namespace penstock::device {

namespace {

using SharedLease = std::shared_ptr<staging::StagingLease>;

class CudaTransfer final : public Transfer {
 public:
  CudaTransfer(int device, TransferPlan plan)
      : state_(std::make_shared<CudaState>(device, std::move(plan))) {}
  ~CudaTransfer() override {
    // The host functions that return staging slots must have run while the loader still holds the
    // ring: a host function must not be the one that unpins it.
    (void)cudaStreamSynchronize(state_->copies.get());
    (void)cudaStreamSynchronize(state_->releases.get());
    if (state_->timing) (void)cudaStreamSynchronize(state_->transforms.get());
    const std::lock_guard lock(state_->mutex);
    try {
      for (CudaPlace& place : state_->places)
        if (state_->timing) state_->timing->tell(*place.stamps, state_->plan.on_span);
    } catch (const CudaError&) {
      // The last spans are lost, and nothing else.
    }
    state_->timing.reset();
  }

  [[nodiscard]] std::shared_ptr<DeviceSlice> reserve(std::stop_token stop) override {
    staging::StagingLease lease = state_->ring->acquire(std::move(stop));
    if (!lease) return nullptr;
    return std::make_shared<CudaSlice>(state_, std::move(lease));
  }

  void enqueue(DeviceSlice& slice, FilledSlice filled) override {
    auto& own = static_cast<CudaSlice&>(slice);
    CudaPlace& place = own.place();
    const cudaStream_t copies = state_->copies.get();
    const cudaStream_t releases = state_->releases.get();
    const std::lock_guard lock(state_->mutex);
    const CurrentDevice current(state_->device_index);
    for (const CudaEvent& done : place.readers) check(cudaStreamWaitEvent(copies, done.get(), 0));
    // Finishes that no consumer asked to see may still be reading what lies here.
    if (state_->transforms_anything()) check(cudaStreamWaitEvent(copies, place.ready.get(), 0));
    if (place.stamps) begin_stamps(*place.stamps, filled.step);
    check(cudaMemcpyAsync(own.data(), filled.bytes.data(), filled.bytes.size(),
                          cudaMemcpyHostToDevice, copies));
    auto owner = std::make_unique<SharedLease>(std::move(filled.slot));
    try {
      if (place.stamps) check(cudaEventRecord(place.stamps->copy_end.get(), copies));
      check(cudaEventRecord(place.arrived.get(), copies));
      check(cudaStreamWaitEvent(releases, place.arrived.get(), 0));
      check(cudaLaunchHostFunc(
          releases, [](void* lease) { delete static_cast<SharedLease*>(lease); }, owner.get()));
    } catch (...) {
      (void)cudaStreamSynchronize(copies);  // which may still read the slot
      throw;
    }
    (void)owner.release();  // the host function owns it now
    own.copied(filled.rows);
  }

  void transform(DeviceSlice& slice) override {
    const auto waits_for_consumer = [](const PlacedDeviceTransform& placed) {
      return placed.transform.options().on_consumer_stream;
    };
    if (std::ranges::any_of(state_->plan.transforms, waits_for_consumer)) return;
    static_cast<CudaSlice&>(slice).transform_on(state_->transforms.get());
  }

 private:
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
