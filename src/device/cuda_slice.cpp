#include "src/device/cuda_slice.hpp"

#include <algorithm>
#include <utility>

#include <penstock/core/error.hpp>

namespace penstock::device {

namespace {

// The transformed bytes of a place lie behind its slice, as well aligned.
constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t place_bytes(const TransferPlan& plan) {
  return aligned(plan.slice_bytes) + aligned(plan.transformed_bytes);
}

}  // namespace

CudaState::CudaState(int device, TransferPlan asked)
    : device_index(device),
      plan(std::move(asked)),
      memory(std::make_shared<DeviceMemory>(device, plan.slots * place_bytes(plan))),
      ring(staging::StagingRing::make(memory, {memory->data(), plan.slots * place_bytes(plan)},
                                      plan.slots, place_bytes(plan))),
      copies(device),
      transforms(device),
      releases(device) {
  for (std::size_t slot = 0; slot < plan.slots; ++slot) {
    places.emplace_back(device);
    if (plan.on_span) places.back().stamps.emplace(device);
  }
  if (plan.on_span) timing.emplace(device, copies.get());
}

void CudaState::transform(CudaPlace& place, std::byte* slice, std::uint64_t rows,
                          cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  check(cudaStreamWaitEvent(stream, place.arrived.get(), 0));
  if (place.stamps) check(cudaEventRecord(place.stamps->transform_begin.get(), stream));
  std::byte* transformed = slice + aligned(plan.slice_bytes);
  for (const PlacedDeviceTransform& placed : plan.transforms)
    placed.transform.enqueue(slice + placed.input,
                             reinterpret_cast<const DeviceTransformRow*>(slice + placed.rows), rows,
                             transformed + placed.output, stream);
  if (place.stamps) {
    check(cudaEventRecord(place.stamps->transform_end.get(), stream));
    place.stamps->transformed = true;
  }
  check(cudaEventRecord(place.ready.get(), stream));
}

CudaSlice::~CudaSlice() {
  // Behind whatever the readers have been given so far; the next copy into this place waits for it.
  CudaPlace& place = this->place();
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    const CudaReader& reader = readers_[i];
    try {
      const CurrentDevice current(state_->device_index);
      // Here that handle would name this thread's stream.
      const bool elsewhere =
          reader.stream == cudaStreamPerThread && reader.thread != std::this_thread::get_id();
      if (elsewhere || cudaEventRecord(place.readers[i].get(), reader.stream) != cudaSuccess) {
        (void)cudaGetLastError();
        // A stream that is gone, or another device's: only waiting tells when the place is free.
        if (!elsewhere && cudaStreamSynchronize(reader.stream) != cudaSuccess)
          (void)cudaGetLastError();
        (void)cudaDeviceSynchronize();
      }
    } catch (const CudaError&) {
      // The device is lost: nothing will be copied there any more.
    }
  }
}

std::byte* CudaSlice::transformed() const noexcept {
  return state_->plan.transforms.empty() ? nullptr : data() + aligned(state_->plan.slice_bytes);
}

void CudaSlice::transform_on(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  const CurrentDevice current(state_->device_index);
  finish_locked(stream);
}

void CudaSlice::finish_locked(cudaStream_t stream) {
  if (is_finished_ || !state_->transforms_anything()) return;
  state_->transform(place(), data(), rows_, stream);
  is_finished_ = true;
}

const CudaEvent& CudaSlice::ready() const noexcept {
  return state_->transforms_anything() ? place().ready : place().arrived;
}

void CudaSlice::wait_on(StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  const CurrentDevice current(state_->device_index);  // for the handles of default streams
  finish_locked(stream);                              // unless done already
  const auto same = [&](const CudaReader& reader) {
    return reader.stream == stream &&
           (stream != cudaStreamPerThread || reader.thread == std::this_thread::get_id());
  };
  if (std::ranges::none_of(readers_, same)) {
    readers_.push_back({stream, std::this_thread::get_id()});
    if (place().readers.size() < readers_.size())
      place().readers.emplace_back(state_->device_index);
  }
  check(cudaStreamWaitEvent(stream, ready().get(), 0));
}

void CudaSlice::copy_to(void* destination, std::span<const std::byte> from, StreamHandle stream) {
  wait_on(stream);
  const CurrentDevice current(state_->device_index);
  check(cudaMemcpyAsync(destination, from.data(), from.size(), cudaMemcpyDefault, stream));
}

void CudaSlice::synchronize() {
  transform_on(state_->transforms.get());
  check(cudaEventSynchronize(ready().get()));
}

}  // namespace penstock::device
