#include "src/device/cuda_slice.hpp"

#include <algorithm>
#include <utility>

#include <penstock/core/error.hpp>

namespace penstock::detail {

namespace {

// The finished bytes of a place lie behind its slice, as well aligned.
constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t place_bytes(const TransferPlan& plan) {
  return aligned(plan.slice_bytes) + aligned(plan.finished_bytes);
}

}  // namespace

CudaState::CudaState(int device, TransferPlan asked)
    : device_index(device),
      plan(std::move(asked)),
      memory(std::make_shared<DeviceMemory>(device, plan.slots * place_bytes(plan))),
      ring(StagingRing::make(memory, {memory->data(), plan.slots * place_bytes(plan)}, plan.slots,
                             place_bytes(plan))),
      copies(device),
      finishes(device),
      releases(device) {
  for (std::size_t slot = 0; slot < plan.slots; ++slot) {
    places.emplace_back(device);
    if (plan.on_span) places.back().stamps.emplace(device);
  }
  if (plan.on_span) timing.emplace(device, copies.get());
}

void CudaState::finish(CudaPlace& place, std::byte* slice, std::uint64_t rows,
                       cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  check(cudaStreamWaitEvent(stream, place.arrived.get(), 0));
  if (place.stamps) check(cudaEventRecord(place.stamps->finish_begin.get(), stream));
  std::byte* finished = slice + aligned(plan.slice_bytes);
  for (const PlacedFinish& placed : plan.finishes)
    placed.finish.enqueue(slice + placed.input,
                          reinterpret_cast<const FinishRow*>(slice + placed.rows), rows,
                          finished + placed.output, stream);
  if (place.stamps) {
    check(cudaEventRecord(place.stamps->finish_end.get(), stream));
    place.stamps->finished = true;
  }
  check(cudaEventRecord(place.ready.get(), stream));
}

CudaSlice::~CudaSlice() {
  // Behind whatever the readers have been given so far; the next copy into this place waits for it.
  CudaPlace& place = this->place();
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

std::byte* CudaSlice::finished() const noexcept {
  return state_->plan.finishes.empty() ? nullptr : data() + aligned(state_->plan.slice_bytes);
}

void CudaSlice::finish_on(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_finished_, true)) return;
  const CurrentDevice current(state_->device_index);
  state_->finish(place(), data(), rows_, stream);
}

void CudaSlice::wait_on(StreamHandle stream) {
  finish_on(stream);  // where nobody has yet
  const std::lock_guard lock(mutex_);
  check(cudaStreamWaitEvent(stream, place().ready.get(), 0));
  if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
}

void CudaSlice::copy_to(void* destination, std::span<const std::byte> from, StreamHandle stream) {
  wait_on(stream);
  const CurrentDevice current(state_->device_index);
  check(cudaMemcpyAsync(destination, from.data(), from.size(), cudaMemcpyDefault, stream));
}

bool CudaSlice::arrived() {
  finish_on(state_->finishes.get());
  const cudaError_t status = cudaEventQuery(place().ready.get());
  if (status == cudaErrorNotReady) return false;
  check(status);
  return true;
}

void CudaSlice::synchronize() {
  finish_on(state_->finishes.get());
  check(cudaEventSynchronize(place().ready.get()));
}

}  // namespace penstock::detail
