#include "src/device/cuda_transfer.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/device/cuda_owners.hpp"

namespace penstock {

int gpu_count() noexcept {
  int count = 0;  // stays as it is when there is no driver
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    (void)cudaGetLastError();
    return 0;
  }
  return count;
}

namespace detail {

namespace {

void require_device(int index) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice || count == 0) {
    (void)cudaGetLastError();
    throw CudaError(
        status == cudaSuccess ? cudaErrorNoDevice : status,
        fmt::format("cuda:{} cannot be used: {}; use host devices here", index,
                    status == cudaErrorInsufficientDriver
                        ? "there is no NVIDIA driver, or it is older than this CUDA needs"
                        : "the driver finds no GPU (is CUDA_VISIBLE_DEVICES empty?)"));
  }
  check(status);
  if (index >= count)
    throw CudaError(cudaErrorInvalidDevice,
                    fmt::format("cuda:{} cannot be used: this machine has {} GPU{}, cuda:0{}",
                                index, count, count == 1 ? "" : "s",
                                count == 1 ? "" : fmt::format(" to cuda:{}", count - 1)));
}

/// A stream that read a place, and the event that tells when it had done so.
struct Reader {
  cudaStream_t stream;
  CudaEvent done;
};

/// What belongs to one place on the device for as long as the transfer lives.
struct Place {
  explicit Place(int device) : arrived(device) {}
  CudaEvent arrived;
  std::vector<Reader>
      readers;  // of the last slice that lay here; grows to the number of streams in use
};

/// Everything on the device; slices that outlive the transfer keep it.
class CudaState {
 public:
  CudaState(int device, std::size_t slots, std::size_t slice_bytes)
      : device_index(device),
        bytes(slots * slice_bytes),
        memory(std::make_shared<DeviceMemory>(device, bytes)),
        ring(StagingRing::make(memory, {memory->data(), bytes}, slots, slice_bytes)),
        copies(device),
        releases(device) {
    for (std::size_t slot = 0; slot < slots; ++slot) places.emplace_back(device);
  }

  int device_index;
  std::size_t bytes;
  std::shared_ptr<DeviceMemory> memory;
  std::shared_ptr<StagingRing> ring;
  CudaStream copies;
  // Staging slots are returned from a stream of their own, so that the host function never delays a
  // copy.
  CudaStream releases;
  std::vector<Place> places;
  std::mutex mutex;  // one enqueue at a time
};

class CudaSlice final : public DeviceSlice {
 public:
  CudaSlice(std::shared_ptr<CudaState> state, StagingLease lease)
      : state_(std::move(state)), lease_(std::move(lease)) {}

  ~CudaSlice() override {
    // Behind whatever the readers have been given so far; the next copy into this place waits for
    // it.
    Place& place = state_->places[lease_.index()];
    try {
      const CurrentDevice current(state_->device_index);
      for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (i == place.readers.size())
          place.readers.push_back({streams_[i], CudaEvent(state_->device_index)});
        place.readers[i].stream = streams_[i];
        check(cudaEventRecord(place.readers[i].done.get(), streams_[i]));
      }
    } catch (const CudaError&) {
      // A reader's stream is gone or broken: only the whole device tells when the place is free.
      (void)cudaDeviceSynchronize();
    }
  }

  [[nodiscard]] std::byte* data() const noexcept override { return lease_.bytes().data(); }

  void wait_on(StreamHandle stream) override {
    const std::lock_guard lock(mutex_);
    check(cudaStreamWaitEvent(stream, place().arrived.get(), 0));
    if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
  }
  [[nodiscard]] bool arrived() const override {
    const cudaError_t status = cudaEventQuery(place().arrived.get());
    if (status == cudaErrorNotReady) return false;
    check(status);
    return true;
  }
  void synchronize() const override { check(cudaEventSynchronize(place().arrived.get())); }

  [[nodiscard]] Place& place() const noexcept { return state_->places[lease_.index()]; }

 private:
  std::shared_ptr<CudaState> state_;
  StagingLease lease_;
  std::mutex mutex_;
  std::vector<cudaStream_t> streams_;
};

using SharedLease = std::shared_ptr<StagingLease>;

class CudaTransfer final : public Transfer {
 public:
  CudaTransfer(int device, std::size_t slots, std::size_t slice_bytes)
      : state_(std::make_shared<CudaState>(device, slots, slice_bytes)) {}
  ~CudaTransfer() override {
    // The host functions that return staging slots must have run while the loader still holds the
    // ring: a host function must not be the one that unpins it.
    (void)cudaStreamSynchronize(state_->copies.get());
    (void)cudaStreamSynchronize(state_->releases.get());
  }

  [[nodiscard]] std::shared_ptr<DeviceSlice> reserve(std::stop_token stop) override {
    StagingLease lease = state_->ring->acquire(std::move(stop));
    if (!lease) return nullptr;
    return std::make_shared<CudaSlice>(state_, std::move(lease));
  }

  void enqueue(DeviceSlice& slice, SharedLease slot, std::span<std::byte> filled) override {
    Place& place = static_cast<CudaSlice&>(slice).place();
    const std::lock_guard lock(state_->mutex);
    const CurrentDevice current(state_->device_index);
    for (const Reader& reader : place.readers)
      check(cudaStreamWaitEvent(state_->copies.get(), reader.done.get(), 0));
    check(cudaMemcpyAsync(slice.data(), filled.data(), filled.size(), cudaMemcpyHostToDevice,
                          state_->copies.get()));
    check(cudaEventRecord(place.arrived.get(), state_->copies.get()));
    check(cudaStreamWaitEvent(state_->releases.get(), place.arrived.get(), 0));
    auto owner = std::make_unique<SharedLease>(std::move(slot));
    check(cudaLaunchHostFunc(
        state_->releases.get(), [](void* lease) { delete static_cast<SharedLease*>(lease); },
        owner.get()));
    (void)owner.release();  // the host function owns it now
  }

  [[nodiscard]] std::size_t memory_bytes() const noexcept override { return state_->bytes; }

 private:
  std::shared_ptr<CudaState> state_;
};

}  // namespace

std::unique_ptr<Transfer> open_cuda_transfer(int index, std::size_t slots,
                                             std::size_t slice_bytes) {
  require_device(index);
  return std::make_unique<CudaTransfer>(index, slots, slice_bytes);
}

std::shared_ptr<void> pin_host_memory(std::span<std::byte> bytes) {
  check(cudaHostRegister(bytes.data(), bytes.size(), cudaHostRegisterPortable));
  return {bytes.data(), [](void* data) { (void)cudaHostUnregister(data); }};
}

}  // namespace detail
}  // namespace penstock
