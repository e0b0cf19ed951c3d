#include "src/device/cuda_slice.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <penstock/core/error.hpp>

#include "src/device/aligned.hpp"
#include "src/device/cuda_reaper.hpp"
#include "src/device/cuda_transfer.hpp"

namespace penstock::device {

namespace {

// The transformed bytes of a place lie behind its slice, as well aligned.
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
      scratch_free(device),
      copies(device),
      works(device, CudaStream::Priority::first),
      transforms(device, CudaStream::Priority::first),
      releases(device) {
  if (plan.scratch_bytes != 0) scratch.emplace(device, plan.scratch_bytes);
  // On their way are at most those of copies that still have a staging slot, and of what lies in the places.
  if (!plan.digests.empty())
    digests = std::make_shared<CudaDigests>(device, plan.digests, 2 * plan.slots);
  for (std::size_t slot = 0; slot < plan.slots; ++slot) {
    places.emplace_back(device);
    if (plan.on_span) places.back().stamps.emplace(device);
  }
  if (plan.work_bytes != 0) {
    work_memory.emplace(device, plan.work_bytes);
    work_flags = staging::HostMemory::make(plan.slots * plan.work_flags * sizeof(std::uint32_t));
    work_flags->keep(pin_host_memory(work_flags->bytes(), device));
    auto* const flags = reinterpret_cast<std::uint32_t*>(work_flags->bytes().data());
    for (std::size_t slot = 0; slot < plan.slots; ++slot)
      places[slot].flags = {flags + slot * plan.work_flags, plan.work_flags};
  }
  if (plan.on_span) timing.emplace(device, copies.get());
}

std::shared_ptr<CudaState> CudaState::make(int device, TransferPlan plan) {
  return {new CudaState(device, std::move(plan)), [](CudaState* state) {
            free_when_over([state] { return state->is_over(); }, [state] { delete state; });
          }};
}

bool CudaState::is_over() noexcept {
  try {
    const CurrentDevice current(device_index);
    const auto is_free = [](CudaReaderDone& done) {
      const CurrentDevice of_reader(done.device);
      return done.record_after_capture() && done.event.is_over();
    };
    return work_is_over() && releases.is_over() && (!digests || digests->is_over()) &&
           std::ranges::all_of(places, [&](CudaPlace& place) {
             return std::ranges::all_of(place.readers, is_free);
           });
  } catch (const CudaError&) {
    return true;
  }
}

bool CudaState::work_is_over() noexcept {
  try {
    return copies.is_over() && works.is_over() && transforms.is_over();
  } catch (const CudaError&) {
    return true;
  }
}

bool CudaState::no_slot_is_in_flight() noexcept {
  try {
    return copies.is_over() && releases.is_over();
  } catch (const CudaError&) {
    return true;
  }
}

CudaState::~CudaState() {
  if (digests) digests->finish();
  try {
    const CurrentDevice current(device_index);
    check(cudaStreamSynchronize(copies.get()));
    check(cudaStreamSynchronize(works.get()));
    check(cudaStreamSynchronize(transforms.get()));
    check(cudaStreamSynchronize(releases.get()));
    for (CudaPlace& place : places) {
      for (CudaReaderDone& done : place.readers) {
        const CurrentDevice of_reader(done.device);
        while (!done.record_after_capture())
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        check(cudaEventSynchronize(done.event.get()));
      }
    }
  } catch (const CudaError&) {
    // The device is lost: nothing reads there any more.
  }
}

bool CudaReaderDone::record_after_capture() {
  if (captured == nullptr) return true;
  if (is_capturing(captured)) return false;
  check(cudaEventRecord(event.get(), std::exchange(captured, nullptr)));
  return true;
}

CudaState::SlotInFlight& CudaState::hold(std::shared_ptr<staging::StagingLease> lease) {
  const std::lock_guard lock(in_flight_mutex);
  if (!staging) staging = lease->ring();
  const auto place = in_flight.insert(in_flight.end(), {this, std::move(lease), {}});
  place->self = place;
  return *place;
}

void CudaState::work(CudaPlace& place, std::byte* slice, std::shared_ptr<const SliceWork> work) {
  const cudaStream_t stream = works.get();
  check(cudaStreamWaitEvent(stream, place.copied.get(), 0));
  if (place.stamps) check(cudaEventRecord(place.stamps->decode_begin.get(), stream));
  try {
    work->enqueue(slice, work_memory->data(), stream);
    check(cudaMemcpyAsync(place.flags.data(), work_memory->data(),
                          work->flags() * sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream));
  } catch (...) {
    (void)cudaStreamSynchronize(stream);  // which may still work there
    throw;
  }
  if (place.stamps) {
    check(cudaEventRecord(place.stamps->decode_end.get(), stream));
    place.stamps->decoded = true;
  }
  check(cudaEventRecord(place.arrived.get(), stream));
  place.work = std::move(work);
  place.run = run;
}

void CudaState::check_work(CudaPlace& place) {
  const std::lock_guard lock(mutex);
  const auto work = std::exchange(place.work, nullptr);
  if (work && place.run == run) work->check(place.flags.first(work->flags()));
}

bool CudaState::has_work(const CudaPlace& place) {
  const std::lock_guard lock(mutex);
  return place.work != nullptr;
}

void CudaState::transform(CudaPlace& place, std::byte* slice, std::uint64_t rows, std::size_t form,
                          const PassGroups& groups, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  check(cudaStreamWaitEvent(stream, place.arrived.get(), 0));
  if (scratch) check(cudaStreamWaitEvent(stream, scratch_free.get(), 0));
  if (place.stamps) check(cudaEventRecord(place.stamps->transform_begin.get(), stream));
  try {
    std::byte* transformed = slice + aligned(plan.slice_bytes);
    for (std::size_t k = 0; k < plan.transforms[form].size(); ++k) {
      const PlacedDeviceTransform& placed = plan.transforms[form][k];
      const std::byte* images = slice + placed.input;
      if (placed.augmentation)
        images = placed.augmentation->enqueue(images, groups[k], slice + placed.programs,
                                              slice + placed.passes, rows,
                                              scratch->data() + placed.scratch, stream);
      placed.transform.enqueue(
          images, reinterpret_cast<const DeviceTransformRow*>(slice + placed.rows),
          rows * placed.transform.views(), transformed + placed.output, stream);
    }
  } catch (...) {
    (void)cudaStreamSynchronize(stream);  // which may still work there
    throw;
  }
  if (scratch) check(cudaEventRecord(scratch_free.get(), stream));
  if (place.stamps) {
    check(cudaEventRecord(place.stamps->transform_end.get(), stream));
    place.stamps->transformed = true;
  }
  check(cudaEventRecord(place.ready.get(), stream));
}

CudaSlice::~CudaSlice() {
  // Behind whatever the readers have been given so far; the next copy into this place waits for it.
  for (const CudaReader& reader : readers_) {
    CudaReaderDone& done = place().readers[reader.done];
    try {
      const CurrentDevice current(done.device);
      // Here that handle would name this thread's stream: only waiting tells when the place is free.
      if (reader.stream == cudaStreamPerThread && reader.thread != std::this_thread::get_id())
        check(cudaDeviceSynchronize());
      else if (is_capturing(reader.stream))
        done.captured = reader.stream;
      else
        check(cudaEventRecord(done.event.get(), reader.stream));
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
  state_->transform(place(), data(), rows_, form_, groups_, stream);
  is_finished_ = true;
}

std::shared_ptr<PendingDigests> CudaSlice::digest() {
  if (!state_->digests) return nullptr;
  const CurrentDevice current(state_->device_index);
  const CudaEvent& there = state_->digests->hashes_transformed() ? place().ready : place().arrived;
  return state_->digests->enqueue(data(), transformed(), samples_, form_, there, place().hashed);
}

const CudaEvent& CudaSlice::ready() const noexcept {
  return state_->transforms_anything() ? place().ready : place().arrived;
}

// An event of the place that tells of a stream of that device, and of none of this slice's other readers.
std::size_t CudaSlice::reader_done_on(int device) {
  std::vector<CudaReaderDone>& all = place().readers;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].device == device &&
        std::ranges::find(readers_, k, &CudaReader::done) == readers_.end())
      return k;
  all.emplace_back(device);
  return all.size() - 1;
}

// Default streams are those of this slice's device, which is current.
int CudaSlice::device_of(cudaStream_t stream) const {
  const bool is_default =
      stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  return is_default ? state_->device_index : device_of_stream(stream);
}

void CudaSlice::wait_on(StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  const CurrentDevice current(state_->device_index);  // for the handles of default streams
  if (is_capturing(stream))
    throw CudaError(cudaErrorStreamCaptureUnsupported,
                    "a batch cannot be read in a capture: a graph reads the same addresses at "
                    "every launch, and every "
                    "batch has others; copy_to() the graph's input before each launch");
  finish_locked(stream);  // unless done already
  const auto same = [&](const CudaReader& reader) {
    return reader.stream == stream &&
           (stream != cudaStreamPerThread || reader.thread == std::this_thread::get_id());
  };
  if (std::ranges::none_of(readers_, same))
    readers_.push_back({stream, std::this_thread::get_id(), reader_done_on(device_of(stream))});
  check(cudaStreamWaitEvent(stream, ready().get(), 0));
  // A stream that reads a batch may write into it.
  if (state_->digests) check(cudaStreamWaitEvent(stream, place().hashed.get(), 0));
}

void CudaSlice::copy_to(void* destination, std::span<const std::byte> from, StreamHandle stream) {
  wait_on(stream);
  const CurrentDevice current(state_->device_index);
  check(cudaMemcpyAsync(destination, from.data(), from.size(), cudaMemcpyDefault, stream));
}

void CudaSlice::synchronize() {
  transform_on(state_->transforms.get());
  const CurrentDevice current(state_->device_index);
  check(cudaEventSynchronize(ready().get()));
  const std::lock_guard lock(mutex_);
  state_->check_work(place());
  if (state_->digests) check(cudaEventSynchronize(place().hashed.get()));
}

}  // namespace penstock::device
