// The cases that whoever writes the simulated runtime may look at.
#include <array>
#include <atomic>

#include "testing/simulated_cuda/simulated_cuda.hpp"
#include "tests/simulated_cuda/planted.hpp"

namespace penstock::simulation_test {

namespace {

void consumer_does_not_wait_for_the_copy(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords place;
  const WrongWords wrong;
  const Stream copies, consumer;
  const Event arrived;
  enqueue_copy(place, slot, copies);
  check(cudaEventRecord(arrived, copies));
  if (!planted) check(cudaStreamWaitEvent(consumer, arrived, 0));
  wrong.look(place, 7, consumer);
  wrong.require_none(consumer);
}

void wait_queued_behind_the_kernel(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords place;
  const WrongWords wrong;
  const Stream copies, consumer;
  const Event arrived;
  enqueue_copy(place, slot, copies);
  check(cudaEventRecord(arrived, copies));
  if (planted) wrong.look(place, 7, consumer);
  check(cudaStreamWaitEvent(consumer, arrived, 0));
  if (!planted) wrong.look(place, 7, consumer);
  wrong.require_none(consumer);
}

void wait_for_another_places_event(bool planted) {
  const PinnedWords slots[] = {PinnedWords(7), PinnedWords(8)};
  const DeviceWords places[2];
  const WrongWords wrong;
  const Stream copies, consumer;
  const Event arrived[2];
  for (int place = 0; place < 2; ++place) {
    enqueue_copy(places[place], slots[place], copies);
    check(cudaEventRecord(arrived[place], copies));
  }
  check(cudaStreamWaitEvent(consumer, arrived[planted ? 0 : 1], 0));
  wrong.look(places[1], 8, consumer);
  wrong.require_none(consumer);
}

void slot_refilled_before_its_copy_is_done(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords places[2];
  const Stream copies;
  const Event arrived;
  enqueue_copy(places[0], slot, copies);
  check(cudaEventRecord(arrived, copies));
  if (!planted) check(cudaEventSynchronize(arrived));
  slot.fill(8);
  enqueue_copy(places[1], slot, copies);
  check(cudaStreamSynchronize(copies));
  require_words(places[0], 7);
  require_words(places[1], 8);
}

void host_waits_for_an_event_recorded_too_early(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords place;
  const Stream copies;
  const Event arrived;
  if (planted) check(cudaEventRecord(arrived, copies));
  enqueue_copy(place, slot, copies);
  if (!planted) check(cudaEventRecord(arrived, copies));
  check(cudaEventSynchronize(arrived));
  slot.fill(8);
  check(cudaStreamSynchronize(copies));
  require_words(place, 7);
}

void host_reads_the_pinned_result_too_early(bool planted) {
  const PinnedWords result(0);
  const DeviceWords place;
  const Stream stream;
  place.fill(7);
  check(cudaMemcpyAsync(result.data(), place.data(), kBytes, cudaMemcpyDeviceToHost, stream));
  if (!planted) check(cudaStreamSynchronize(stream));
  const bool all = result.all(7);
  check(cudaDeviceSynchronize());
  require(all, "the host read the result before it was there");
}

void pageable_source_changed_right_after_the_call(bool planted) {
  std::vector<Word> source(kWords, 7);
  const DeviceWords place;
  const Stream stream;
  check(cudaMemcpyAsync(place.data(), source.data(), kBytes, cudaMemcpyHostToDevice, stream));
  if (!planted) check(cudaStreamSynchronize(stream));
  std::ranges::fill(source, 8);
  check(cudaStreamSynchronize(stream));
  require_words(place, 7);
}

// Between streams that the default stream waits for, and that wait for it, nothing is missing.
void legacy_memset_before_a_non_blocking_stream(bool planted) {
  const DeviceWords place;
  const WrongWords wrong;
  const Stream consumer(planted ? cudaStreamNonBlocking : cudaStreamDefault);
  check(cudaMemset(place.data(), 0, kBytes));
  wrong.look(place, 0, consumer);
  wrong.require_none(consumer);
}

// On every thread that handle names another stream.
void per_thread_stream_of_another_thread(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords place;
  const WrongWords wrong;
  const Stream copies;
  const Event arrived;
  enqueue_copy(place, slot, copies);
  check(cudaEventRecord(arrived, copies));
  const auto wait = [&] { check(cudaStreamWaitEvent(cudaStreamPerThread, arrived, 0)); };
  if (planted)
    on_another_thread(wait);
  else
    wait();
  wrong.look(place, 7, cudaStreamPerThread);
  wrong.require_none(cudaStreamPerThread);
}

void memory_freed_while_a_kernel_reads_it(bool planted) {
  DeviceWords from;
  const DeviceWords to;
  const Stream stream;
  from.fill(7);
  add_kernel(to.data(), from.data(), kWords, 1, stream);
  if (!planted) check(cudaStreamSynchronize(stream));
  from.free();  // 'may perform implicit synchronization', and may not
  check(cudaStreamSynchronize(stream));
  require_words(to, 8);
}

void kernel_reads_freed_memory(bool planted) {
  DeviceWords from;
  const DeviceWords to;
  const Stream stream;
  from.fill(7);
  const Word* const at = from.data();
  if (planted) from.free();
  add_kernel(to.data(), at, kWords, 1, stream);
  check(cudaStreamSynchronize(stream));
  if (!planted) from.free();
  require_words(to, 8);
}

void host_reads_device_memory(bool planted) {
  const DeviceWords place;
  place.fill(7);
  Word first = 0;
  if (planted)
    first = *const_cast<const volatile Word*>(place.data());
  else
    check(cudaMemcpy(&first, place.data(), sizeof first, cudaMemcpyDeviceToHost));
  require(first == 7, "another word");
}

void kernel_reads_past_its_allocation(bool planted) {
  const DeviceWords from;
  const DeviceWords to(2 * kWords);
  const Stream stream;
  from.fill(7);
  add_kernel(to.data(), from.data(), planted ? 2 * kWords : kWords, 1, stream);
  check(cudaStreamSynchronize(stream));
}

void copy_larger_than_its_allocation(bool planted) {
  const PinnedWords slot(7, 2 * kWords);
  const DeviceWords place;
  const Stream stream;
  check(cudaMemcpyAsync(place.data(), slot.data(), planted ? 2 * kBytes : kBytes,
                        cudaMemcpyHostToDevice, stream));
  check(cudaStreamSynchronize(stream));
  require_words(place, 7);
}

void reads_uninitialised_memory(bool planted) {
  const DeviceWords data;
  const DeviceWords sum(sizeof(Count) / sizeof(Word));
  const Stream stream;
  data.fill(7);
  if (!planted) check(cudaMemsetAsync(sum.data(), 0, sizeof(Count), stream));
  count_wrong_kernel(data.data(), kWords, 7, reinterpret_cast<Count*>(sum.data()), stream);
  Count count = 0;
  check(cudaMemcpyAsync(&count, sum.data(), sizeof count, cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  require(count == 0, "a sum that began with what lay there");
}

// An event that is destroyed before it is over still holds back who waits for it already.
void destroyed_event_is_waited_for(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords place;
  const WrongWords wrong;
  const Stream copies, consumer;
  cudaEvent_t arrived = nullptr;
  check(cudaEventCreateWithFlags(&arrived, cudaEventDisableTiming));
  enqueue_copy(place, slot, copies);
  check(cudaEventRecord(arrived, copies));
  if (planted) check(cudaEventDestroy(arrived));
  check(cudaStreamWaitEvent(consumer, arrived, 0));
  if (!planted) check(cudaEventDestroy(arrived));
  wrong.look(place, 7, consumer);
  wrong.require_none(consumer);
}

// A stream that is destroyed ends its work, and its events outlive it.
void destroyed_stream_is_used(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords place;
  const WrongWords wrong;
  const Stream consumer;
  const Event arrived;
  cudaStream_t copies = nullptr;
  check(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
  enqueue_copy(place, slot, copies);
  if (planted) check(cudaStreamDestroy(copies));
  check(cudaEventRecord(arrived, copies));
  if (!planted) check(cudaStreamDestroy(copies));
  check(cudaStreamWaitEvent(consumer, arrived, 0));
  wrong.look(place, 7, consumer);
  wrong.require_none(consumer);
}

void launch_on_another_devices_stream(bool planted) {
  check(cudaSetDevice(1));
  const DeviceWords from, to;
  const Stream stream;
  from.fill(7);
  if (planted) check(cudaSetDevice(0));
  add_kernel(to.data(), from.data(), kWords, 1, stream);
  check(cudaSetDevice(1));
  check(cudaStreamSynchronize(stream));
  require_words(to, 8);
}

// It may be waited for on any device, but recorded on its own alone.
void event_recorded_on_another_devices_stream(bool planted) {
  const Stream consumer;
  const PinnedWords slot(7);
  const OnDevice on(1);
  const DeviceWords place;
  const Stream copies;
  check(cudaSetDevice(planted ? 0 : 1));
  const Event arrived;
  check(cudaSetDevice(1));
  enqueue_copy(place, slot, copies);
  check(cudaEventRecord(arrived, copies));
  check(cudaSetDevice(0));
  check(cudaStreamWaitEvent(consumer, arrived, 0));
  check(cudaStreamSynchronize(consumer));
  check(cudaSetDevice(1));
  require_words(place, 7);
}

void current_device_left_changed(bool planted) {
  const auto make_and_drop_an_event = [&](int device) {
    const int previous = current_device();
    check(cudaSetDevice(device));
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    check(cudaEventDestroy(event));
    if (!planted) check(cudaSetDevice(previous));
  };
  check(cudaSetDevice(2));
  make_and_drop_an_event(3);
  require(current_device() == 2, "the caller's device is another one now");
}

void pins_before_the_device_is_chosen(bool planted) {
  alignas(kPage) static Word slot[kWords];
  if (planted) check(cudaHostRegister(slot, kBytes, cudaHostRegisterPortable));
  check(cudaSetDevice(1));
  if (!planted) check(cudaHostRegister(slot, kBytes, cudaHostRegisterPortable));
  std::ranges::fill(slot, 7);
  {
    const DeviceWords place;
    const Stream stream;
    check(cudaMemcpyAsync(place.data(), slot, kBytes, cudaMemcpyHostToDevice, stream));
    check(cudaStreamSynchronize(stream));
    require_words(place, 7);
  }
  check(cudaHostUnregister(slot));
  require(simulated_cuda::has_context(1), "no context where one is used");
  require(!simulated_cuda::has_context(0), "a context on a device that nobody asked for");
}

void cuda_call_in_a_host_function(bool planted) {
  struct Told {
    cudaEvent_t arrived;
    bool asks;
    std::atomic<cudaError_t> status{cudaSuccess};
    std::atomic<bool> is_over{false};
  };
  static Told told;
  const PinnedWords slot(7);
  const DeviceWords place;
  const Stream copies;
  const Event arrived;
  told.arrived = arrived;
  told.asks = planted;
  enqueue_copy(place, slot, copies);
  check(cudaEventRecord(arrived, copies));
  check(cudaLaunchHostFunc(
      copies,
      [](void*) {
        if (told.asks) told.status = cudaEventQuery(told.arrived);
        told.is_over = true;
      },
      nullptr));
  check(cudaStreamSynchronize(copies));
  require(told.is_over, "the host function did not run");
  check(told.status);
  require_words(place, 7);
}

void registered_twice(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords place;
  if (planted) check(cudaHostRegister(slot.data(), slot.bytes(), cudaHostRegisterPortable));
  check(cudaMemcpy(place.data(), slot.data(), kBytes, cudaMemcpyHostToDevice));
  require_words(place, 7);
}

void leaks_device_memory(bool planted) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, kBytes));
  check(cudaMemset(memory, 0, kBytes));
  check(cudaDeviceSynchronize());
  if (!planted) check(cudaFree(memory));
}

void leaks_a_registration(bool planted) {
  alignas(kPage) static Word slot[kWords];
  std::ranges::fill(slot, 7);
  check(cudaHostRegister(slot, kBytes, cudaHostRegisterPortable));
  const DeviceWords place;
  check(cudaMemcpy(place.data(), slot, kBytes, cudaMemcpyHostToDevice));
  require_words(place, 7);
  if (!planted) check(cudaHostUnregister(slot));
}

void pending_error_blamed_on_a_later_call(bool planted) {
  constexpr std::size_t kTooMuch = std::size_t{1} << 50;
  const DeviceWords place;
  const Stream stream;
  void* memory = nullptr;
  require(cudaMalloc(&memory, kTooMuch) == cudaErrorMemoryAllocation, "memory without end");
  if (!planted) (void)cudaGetLastError();
  check(cudaMemsetAsync(place.data(), 0, kBytes, stream));
  check(cudaGetLastError());
  check(cudaStreamSynchronize(stream));
  require_words(place, 0);
}

void capturing_stream_is_synchronised(bool planted) {
  load_kernels();
  const DeviceWords from, to;
  const Stream stream;
  from.fill(7);
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add_kernel(to.data(), from.data(), kWords, 1, stream);
  if (planted) check(cudaStreamSynchronize(stream));
  const Graph graph(stream);
  graph.launch(stream);
  check(cudaStreamSynchronize(stream));
  require_words(to, 8);
}

void allocates_during_a_capture(bool planted) {
  load_kernels();
  const DeviceWords from, to;
  const Stream stream;
  from.fill(7);
  void* scratch = nullptr;
  if (!planted) check(cudaMalloc(&scratch, kBytes));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  if (planted) check(cudaMalloc(&scratch, kBytes));
  auto* const words = static_cast<Word*>(scratch);
  add_kernel(words, from.data(), kWords, 1, stream);
  add_kernel(to.data(), words, kWords, 1, stream);
  {
    const Graph graph(stream);
    graph.launch(stream);
    check(cudaStreamSynchronize(stream));
  }
  check(cudaFree(scratch));
  require_words(to, 9);
}

void fork_not_joined_at_the_end_of_a_capture(bool planted) {
  load_kernels();
  const DeviceWords from, left, right;
  const Stream stream, side;
  const Event forked, joined;
  from.fill(7);
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  check(cudaEventRecord(forked, stream));
  check(cudaStreamWaitEvent(side, forked, 0));
  add_kernel(left.data(), from.data(), kWords, 1, stream);
  add_kernel(right.data(), from.data(), kWords, 2, side);
  check(cudaEventRecord(joined, side));
  if (!planted) check(cudaStreamWaitEvent(stream, joined, 0));
  const Graph graph(stream);
  graph.launch(stream);
  check(cudaStreamSynchronize(stream));
  require_words(left, 8);
  require_words(right, 9);
}

void captured_work_taken_for_done(bool planted) {
  load_kernels();
  const DeviceWords from, to;
  const Stream stream;
  from.fill(7);
  to.fill(0);
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  add_kernel(to.data(), from.data(), kWords, 1, stream);
  const Graph graph(stream);
  if (!planted) graph.launch(stream);
  check(cudaStreamSynchronize(stream));
  require_words(to, 8);
}

constexpr std::array kSeenCases{
    Planted{"ConsumerDoesNotWaitForTheCopy",
            "The consumer's stream reads a place without a wait for the copy into it.",
            consumer_does_not_wait_for_the_copy},
    Planted{"WaitQueuedBehindTheKernel",
            "The consumer's stream waits for the copy, but after the kernel that reads it.",
            wait_queued_behind_the_kernel},
    Planted{
        "WaitForAnotherPlacesEvent",
        "The consumer of the second place waits for the copy into the first, which comes before.",
        wait_for_another_places_event},
    Planted{"SlotRefilledBeforeItsCopyIsDone",
            "The host refills a pinned slot while the copy from it is still queued.",
            slot_refilled_before_its_copy_is_done},
    Planted{"HostWaitsForAnEventRecordedTooEarly",
            "The host waits for an event that was recorded before the copy, and refills the slot.",
            host_waits_for_an_event_recorded_too_early},
    Planted{"HostReadsThePinnedResultTooEarly",
            "The host reads pinned memory while the copy to it is still queued.",
            host_reads_the_pinned_result_too_early},
    Planted{"PageableSourceChangedRightAfterTheCall",
            "An asynchronous copy from pageable memory might be synchronous, and need not be.",
            pageable_source_changed_right_after_the_call},
    Planted{"LegacyMemsetBeforeANonBlockingStream",
            "A non-blocking stream does not wait for a memset on the legacy stream.",
            legacy_memset_before_a_non_blocking_stream},
    Planted{"PerThreadStreamOfAnotherThread",
            "The wait is queued on another thread, whose per-thread stream is another one.",
            per_thread_stream_of_another_thread},
    Planted{
        "MemoryFreedWhileAKernelReadsIt",
        "Memory is freed while a kernel that reads it is queued; cudaFree need not wait for it.",
        memory_freed_while_a_kernel_reads_it},
    Planted{"KernelReadsFreedMemory", "A kernel is given memory that has been freed.",
            kernel_reads_freed_memory},
    Planted{"HostReadsDeviceMemory", "The host dereferences a pointer to device memory.",
            host_reads_device_memory},
    Planted{"KernelReadsPastItsAllocation", "A kernel reads twice as much as was allocated.",
            kernel_reads_past_its_allocation},
    Planted{"CopyLargerThanItsAllocation", "A copy writes twice as much as was allocated.",
            copy_larger_than_its_allocation},
    Planted{"ReadsUninitialisedMemory", "A sum in fresh device memory is not set to zero at first.",
            reads_uninitialised_memory},
    Planted{"DestroyedEventIsWaitedFor", "A stream is told to wait for an event that is destroyed.",
            destroyed_event_is_waited_for},
    Planted{"DestroyedStreamIsUsed", "An event is recorded on a stream that is destroyed.",
            destroyed_stream_is_used},
    Planted{"LaunchOnAnotherDevicesStream",
            "A kernel is launched on a stream of cuda:1 while cuda:0 is current.",
            launch_on_another_devices_stream},
    Planted{"EventRecordedOnAnotherDevicesStream",
            "An event of cuda:0 is recorded on a stream of cuda:1.",
            event_recorded_on_another_devices_stream},
    Planted{"CurrentDeviceLeftChanged", "A function returns with another device current.",
            current_device_left_changed},
    Planted{"PinsBeforeTheDeviceIsChosen",
            "Memory is pinned before cuda:1 is chosen, which makes a context on cuda:0.",
            pins_before_the_device_is_chosen},
    Planted{"CudaCallInAHostFunction", "A host function calls CUDA.", cuda_call_in_a_host_function},
    Planted{"RegisteredTwice", "Host memory is registered that is registered already.",
            registered_twice},
    Planted{"LeaksDeviceMemory", "Device memory is never freed.", leaks_device_memory},
    Planted{"LeaksARegistration", "Host memory is never unregistered.", leaks_a_registration},
    Planted{
        "PendingErrorBlamedOnALaterCall",
        "The error of a failed allocation is left behind, and a later call seems to have failed.",
        pending_error_blamed_on_a_later_call},
    Planted{"CapturingStreamIsSynchronised", "A stream is synchronised while it captures.",
            capturing_stream_is_synchronised},
    Planted{"AllocatesDuringACapture", "Memory is allocated within a capture in global mode.",
            allocates_during_a_capture},
    Planted{"ForkNotJoinedAtTheEndOfACapture",
            "A capture ends while a stream that it has forked is not joined.",
            fork_not_joined_at_the_end_of_a_capture},
    Planted{"CapturedWorkTakenForDone", "A graph is captured and never launched.",
            captured_work_taken_for_done},
};

}  // namespace

std::span<const Planted> planted_seen() { return kSeenCases; }

}  // namespace penstock::simulation_test
