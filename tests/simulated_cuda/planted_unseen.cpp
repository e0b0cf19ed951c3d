// The cases that whoever writes the simulated runtime has not seen.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "testing/simulated_cuda/simulated_cuda.hpp"
#include "tests/simulated_cuda/planted.hpp"

namespace penstock::simulation_test {

namespace {

void place_overwritten_before_its_reader_is_done(bool planted) {
  const PinnedWords slots[] = {PinnedWords(7), PinnedWords(8)};
  const DeviceWords place;
  const WrongWords wrong;
  const Stream copies, consumer;
  const Event arrived, done;
  enqueue_copy(place, slots[0], copies);
  check(cudaEventRecord(arrived, copies));
  check(cudaStreamWaitEvent(consumer, arrived, 0));
  if (planted) check(cudaEventRecord(done, consumer));
  wrong.look(place, 7, consumer);
  if (!planted) check(cudaEventRecord(done, consumer));
  check(cudaStreamWaitEvent(copies, done, 0));
  enqueue_copy(place, slots[1], copies);
  wrong.require_none(consumer);
  require_words(place, 8);
}

void second_reader_forgotten(bool planted) {
  const PinnedWords slots[] = {PinnedWords(7), PinnedWords(8)};
  const DeviceWords place;
  const WrongWords wrong[2];
  const Stream copies, readers[2];
  const Event arrived, done[2];
  enqueue_copy(place, slots[0], copies);
  check(cudaEventRecord(arrived, copies));
  for (int reader = 0; reader < 2; ++reader) {
    check(cudaStreamWaitEvent(readers[reader], arrived, 0));
    wrong[reader].look(place, 7, readers[reader]);
    check(cudaEventRecord(done[reader], readers[reader]));
  }
  check(cudaStreamWaitEvent(copies, done[0], 0));
  if (!planted) check(cudaStreamWaitEvent(copies, done[1], 0));
  enqueue_copy(place, slots[1], copies);
  for (int reader = 0; reader < 2; ++reader) wrong[reader].require_none(readers[reader]);
  require_words(place, 8);
}

void event_recorded_on_the_wrong_stream(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords place;
  const WrongWords wrong;
  const Stream copies, transforms, consumer;
  const Event arrived;
  enqueue_copy(place, slot, copies);
  check(cudaEventRecord(arrived, planted ? transforms : copies));
  check(cudaStreamWaitEvent(consumer, arrived, 0));
  wrong.look(place, 7, consumer);
  wrong.require_none(consumer);
}

// An event that was never recorded holds nobody back.
void wait_queued_before_the_record(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords place;
  const WrongWords wrong;
  const Stream copies, consumer;
  const Event arrived;
  const auto wait = [&] { check(cudaStreamWaitEvent(consumer, arrived, 0)); };
  if (planted) wait();
  enqueue_copy(place, slot, copies);
  check(cudaEventRecord(arrived, copies));
  if (!planted) wait();
  wrong.look(place, 7, consumer);
  wrong.require_none(consumer);
}

// As the loader does it: a host function gives the slot back, on a stream of its own.
void slot_returned_before_its_copy_is_done(bool planted) {
  struct Slot {
    std::mutex mutex;
    std::condition_variable freed;
    bool is_free = false;
  };
  static Slot state;
  const PinnedWords slot(7);
  const DeviceWords places[2];
  const Stream copies, releases;
  const Event arrived;
  enqueue_copy(places[0], slot, copies);
  check(cudaEventRecord(arrived, copies));
  if (!planted) check(cudaStreamWaitEvent(releases, arrived, 0));
  check(cudaLaunchHostFunc(
      releases,
      [](void*) {
        const std::lock_guard lock(state.mutex);
        state.is_free = true;
        state.freed.notify_one();
      },
      nullptr));
  {
    std::unique_lock lock(state.mutex);
    require(state.freed.wait_for(lock, std::chrono::seconds(20), [] { return state.is_free; }),
            "the slot does not come back");
  }
  slot.fill(8);
  enqueue_copy(places[1], slot, copies);
  check(cudaDeviceSynchronize());
  require_words(places[0], 7);
  require_words(places[1], 8);
}

// The second record makes the event forget the first.
void one_event_for_two_slots(bool planted) {
  const PinnedWords slots[] = {PinnedWords(7), PinnedWords(8)};
  const DeviceWords places[2];
  const Stream copies[2];
  const Event arrived[2];
  enqueue_copy(places[0], slots[0], copies[0]);
  check(cudaEventRecord(arrived[0], copies[0]));
  enqueue_copy(places[1], slots[1], copies[1]);
  check(cudaEventRecord(arrived[planted ? 0 : 1], copies[1]));
  check(cudaEventSynchronize(arrived[0]));
  slots[0].fill(9);
  check(cudaDeviceSynchronize());
  require_words(places[0], 7);
  require_words(places[1], 8);
}

// Two places, and in the planted variant three events: a place waits for the reader before its last.
void double_buffering_off_by_one(bool planted) {
  constexpr std::size_t kSteps = 8;
  constexpr std::size_t kPlaces = 2;
  const std::size_t events = planted ? 3 : kPlaces;
  const PinnedWords slots(0, kSteps * kWords);
  for (std::size_t step = 0; step < kSteps; ++step)
    std::fill_n(slots.data() + step * kWords, kWords, static_cast<Word>(step + 1));
  const DeviceWords places[kPlaces];
  const WrongWords wrong;
  const Stream copies, consumer;
  const Event arrived[kPlaces], done[3];
  for (std::size_t step = 0; step < kSteps; ++step) {
    const std::size_t place = step % kPlaces;
    check(cudaStreamWaitEvent(copies, done[step % events], 0));
    check(cudaMemcpyAsync(places[place].data(), slots.data() + step * kWords, kBytes,
                          cudaMemcpyHostToDevice, copies));
    check(cudaEventRecord(arrived[place], copies));
    check(cudaStreamWaitEvent(consumer, arrived[place], 0));
    wrong.look(places[place], static_cast<Word>(step + 1), consumer);
    check(cudaEventRecord(done[step % events], consumer));
  }
  wrong.require_none(consumer);
}

// On every thread that handle names another stream, on which nothing reads the place here.
void released_on_another_threads_stream(bool planted) {
  const PinnedWords slots[] = {PinnedWords(7), PinnedWords(8)};
  const DeviceWords place;
  const WrongWords wrong;
  const Stream copies;
  const Event arrived, done;
  enqueue_copy(place, slots[0], copies);
  check(cudaEventRecord(arrived, copies));
  check(cudaStreamWaitEvent(cudaStreamPerThread, arrived, 0));
  wrong.look(place, 7, cudaStreamPerThread);
  const auto release = [&] { check(cudaEventRecord(done, cudaStreamPerThread)); };
  if (planted)
    on_another_thread(release);
  else
    release();
  check(cudaStreamWaitEvent(copies, done, 0));
  enqueue_copy(place, slots[1], copies);
  wrong.require_none(cudaStreamPerThread);
  require_words(place, 8);
}

// The null handle names the default stream of the device that is current.
void legacy_stream_of_another_device(bool planted) {
  const OnDevice on(1);
  const PinnedWords slot(7);
  const DeviceWords place;
  const WrongWords wrong;
  const Stream copies;
  const Event arrived;
  enqueue_copy(place, slot, copies);
  check(cudaEventRecord(arrived, copies));
  if (planted) check(cudaSetDevice(0));
  check(cudaStreamWaitEvent(nullptr, arrived, 0));
  check(cudaSetDevice(1));
  wrong.look(place, 7, nullptr);
  wrong.require_none(nullptr);
}

void synchronises_the_wrong_device(bool planted) {
  const PinnedWords result(0);
  const DeviceWords place;
  const Stream stream;
  place.fill(7);
  check(cudaMemcpyAsync(result.data(), place.data(), kBytes, cudaMemcpyDeviceToHost, stream));
  check(cudaSetDevice(planted ? 1 : 0));
  check(cudaDeviceSynchronize());
  const bool all = result.all(7);
  check(cudaSetDevice(0));
  check(cudaDeviceSynchronize());
  require(all, "the host read the result before it was there");
}

// Destroying a stream returns immediately; its work goes on.
void stream_destroy_taken_for_a_wait(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords place;
  cudaStream_t copies = nullptr;
  check(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
  enqueue_copy(place, slot, copies);
  check(cudaStreamDestroy(copies));
  if (!planted) check(cudaDeviceSynchronize());
  slot.fill(8);
  check(cudaDeviceSynchronize());
  require_words(place, 7);
}

void unregistered_while_a_copy_is_queued(bool planted) {
  PinnedWords slot(7);
  const DeviceWords place;
  const Stream copies;
  enqueue_copy(place, slot, copies);
  if (!planted) check(cudaStreamSynchronize(copies));
  check(slot.unregister());
  check(cudaStreamSynchronize(copies));
  require_words(place, 7);
}

// What happens where a host function drops the last owner of a staging ring.
void unregistered_in_a_host_function(bool planted) {
  struct Owner {
    PinnedWords* slot;
    std::atomic<cudaError_t> status{cudaSuccess};
  };
  static Owner owner;
  PinnedWords slot(7);
  const DeviceWords place;
  const Stream copies;
  enqueue_copy(place, slot, copies);
  owner.slot = planted ? &slot : nullptr;
  check(cudaLaunchHostFunc(
      copies,
      [](void*) {
        if (owner.slot != nullptr) owner.status = owner.slot->unregister();
      },
      nullptr));
  check(cudaStreamSynchronize(copies));
  check(owner.status);
  if (!planted) check(slot.unregister());
  require_words(place, 7);
}

void unregistered_twice(bool planted) {
  PinnedWords slot(7);
  const DeviceWords place;
  check(cudaMemcpy(place.data(), slot.data(), kBytes, cudaMemcpyHostToDevice));
  check(slot.unregister());
  if (planted) check(slot.unregister());
  require_words(place, 7);
}

// From pageable memory cudaMemcpy returns when the bytes are staged, and only the default stream's
// friends wait for the rest.
void pageable_copy_on_the_legacy_stream(bool planted) {
  const std::vector<Word> segments(kWords, 7);
  const DeviceWords place;
  const WrongWords wrong;
  const Stream stream;
  check(cudaMemcpy(place.data(), segments.data(), kBytes, cudaMemcpyHostToDevice));
  if (!planted) check(cudaStreamSynchronize(nullptr));
  wrong.look(place, 7, stream);
  wrong.require_none(stream);
}

void device_to_device_copy_taken_for_synchronous(bool planted) {
  const DeviceWords from, to;
  const WrongWords wrong;
  const Stream stream;
  from.fill(7);
  check(cudaMemcpy(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice));
  if (!planted) check(cudaDeviceSynchronize());
  wrong.look(to, 7, stream);
  wrong.require_none(stream);
}

void kernel_reads_another_devices_memory(bool planted) {
  check(cudaSetDevice(planted ? 0 : 1));
  const DeviceWords place;
  place.fill(7);
  check(cudaSetDevice(1));
  const WrongWords wrong;
  const Stream stream;
  wrong.look(place, 7, stream);
  wrong.require_none(stream);
}

void copy_between_devices_without_a_wait(bool planted) {
  const PinnedWords slot(7);
  const DeviceWords from;
  const Stream copies;
  const Event arrived;
  enqueue_copy(from, slot, copies);
  check(cudaEventRecord(arrived, copies));
  {
    const OnDevice on(1);
    const DeviceWords to;
    const WrongWords wrong;
    const Stream stream;
    if (!planted) check(cudaStreamWaitEvent(stream, arrived, 0));
    check(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDefault, stream));
    wrong.look(to, 7, stream);
    wrong.require_none(stream);
  }
  check(cudaDeviceSynchronize());
}

void kernel_reads_one_word_past(bool planted) {
  constexpr std::size_t kOdd = 1021;
  const DeviceWords data(kOdd);
  const WrongWords wrong;
  const Stream stream;
  data.fill(7);
  wrong.look(data.data(), planted ? kOdd + 1 : kOdd, 7, stream);
  wrong.require_none(stream);
}

void copy_reads_past_its_source(bool planted) {
  const PinnedWords result(0);
  const DeviceWords place;
  const Stream stream;
  place.fill(7);
  const Word* const from = place.data() + 1;
  const std::size_t count = planted ? kWords : kWords - 1;
  check(cudaMemcpyAsync(result.data(), from, count * sizeof(Word), cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  require(std::all_of(result.data(), result.data() + count, [](Word word) { return word == 7; }),
          "another word");
}

void host_writes_device_memory(bool planted) {
  const DeviceWords place;
  place.fill(7);
  if (planted)
    std::fill_n(static_cast<volatile Word*>(place.data()), kWords, Word{8});
  else
    place.fill(8);
  require_words(place, 8);
}

void overlapping_device_copy(bool planted) {
  const DeviceWords place;
  const Stream stream;
  place.fill(7);
  Word* const to = place.data() + (planted ? kWords / 4 : kWords / 2);
  check(cudaMemcpyAsync(to, place.data(), kBytes / 2, cudaMemcpyDeviceToDevice, stream));
  check(cudaStreamSynchronize(stream));
  require_words(place, 7);
}

void wrong_copy_direction(bool planted) {
  const DeviceWords from, to;
  const Stream stream;
  from.fill(7);
  check(cudaMemcpyAsync(to.data(), from.data(), kBytes,
                        planted ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice, stream));
  check(cudaStreamSynchronize(stream));
  require_words(to, 7);
}

void freed_by_a_pointer_into_it(bool planted) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, 2 * kBytes));
  check(cudaFree(static_cast<std::byte*>(memory) + (planted ? kBytes : 0)));
}

void time_of_an_event_that_is_not_over(bool planted) {
  const DeviceWords from, to;
  const Stream stream;
  const Event begin(cudaEventDefault), end(cudaEventDefault);
  from.fill(7);
  check(cudaEventRecord(begin, stream));
  add_kernel(to.data(), from.data(), kWords, 1, stream);
  check(cudaEventRecord(end, stream));
  if (!planted) check(cudaEventSynchronize(end));
  float ms = -1;
  const cudaError_t status = cudaEventElapsedTime(&ms, begin, end);
  check(cudaStreamSynchronize(stream));
  check(status);
  require(ms >= 0, "it ended before it began");
}

void event_recorded_before_the_host_function(bool planted) {
  static std::atomic<bool> ran{false};
  const Stream stream;
  const Event done;
  const DeviceWords place;
  check(cudaMemsetAsync(place.data(), 0, kBytes, stream));
  if (planted) check(cudaEventRecord(done, stream));
  check(cudaLaunchHostFunc(
      stream, [](void*) { ran = true; }, nullptr));
  if (!planted) check(cudaEventRecord(done, stream));
  check(cudaEventSynchronize(done));
  const bool has_run = ran;
  check(cudaStreamSynchronize(stream));
  require(has_run, "the host function had not run");
}

// Whatever thread asks for whatever event: a capture in global mode ends with it.
void query_during_a_global_capture(bool planted) {
  load_kernels();
  const PinnedWords slot(7);
  const DeviceWords from, to;
  const Stream copies, stream;
  const Event arrived;
  enqueue_copy(from, slot, copies);
  check(cudaEventRecord(arrived, copies));
  check(cudaStreamWaitEvent(stream, arrived, 0));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  on_another_thread([&] {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (!planted) check(cudaThreadExchangeStreamCaptureMode(&mode));
    const cudaError_t status = cudaEventQuery(arrived);
    if (!planted) check(cudaThreadExchangeStreamCaptureMode(&mode));
    if (status != cudaErrorNotReady) check(status);
  });
  add_kernel(to.data(), from.data(), kWords, 1, stream);
  const Graph graph(stream);
  graph.launch(stream);
  check(cudaStreamSynchronize(stream));
  require_words(to, 8);
}

void capture_waits_for_an_outside_event(bool planted) {
  load_kernels();
  const PinnedWords slot(7);
  const DeviceWords from, to;
  const Stream copies, stream;
  const Event arrived;
  enqueue_copy(from, slot, copies);
  check(cudaEventRecord(arrived, copies));
  if (!planted) check(cudaStreamWaitEvent(stream, arrived, 0));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  if (planted) check(cudaStreamWaitEvent(stream, arrived, 0));
  add_kernel(to.data(), from.data(), kWords, 1, stream);
  const Graph graph(stream);
  graph.launch(stream);
  check(cudaStreamSynchronize(stream));
  require_words(to, 8);
}

// The legacy stream would have to wait for a blocking stream that captures.
void legacy_stream_during_a_capture(bool planted) {
  load_kernels();
  const DeviceWords from, to, other;
  const Stream stream(planted ? cudaStreamDefault : cudaStreamNonBlocking);
  from.fill(7);
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  add_kernel(to.data(), from.data(), kWords, 1, stream);
  check(cudaMemsetAsync(other.data(), 0, kBytes, nullptr));
  const Graph graph(stream);
  graph.launch(stream);
  check(cudaDeviceSynchronize());
  require_words(to, 8);
  require_words(other, 0);
}

void capture_ended_by_another_thread(bool planted) {
  load_kernels();
  const DeviceWords from, to;
  const Stream stream;
  from.fill(7);
  check(cudaStreamBeginCapture(
      stream, planted ? cudaStreamCaptureModeThreadLocal : cudaStreamCaptureModeRelaxed));
  add_kernel(to.data(), from.data(), kWords, 1, stream);
  on_another_thread([&] {
    const Graph graph(stream);
    graph.launch(stream);
    check(cudaStreamSynchronize(stream));
  });
  require_words(to, 8);
}

// The copy in a graph reads its slot when it runs, not when it is captured or launched.
void graphs_slot_refilled_too_early(bool planted) {
  load_kernels();
  const PinnedWords slot(0);
  const DeviceWords place;
  const WrongWords wrong;
  const Stream stream;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  enqueue_copy(place, slot, stream);
  const Graph graph(stream);
  for (Word step = 1; step <= 4; ++step) {
    slot.fill(step);
    graph.launch(stream);
    wrong.look(place, step, stream);
    if (!planted) check(cudaStreamSynchronize(stream));
  }
  wrong.require_none(stream);
}

// A training step that was captured reads a fixed address, which the next batch is copied to.
void graphs_input_overwritten_too_early(bool planted) {
  load_kernels();
  const PinnedWords slots[] = {PinnedWords(7), PinnedWords(8)};
  const DeviceWords input, outputs[2];
  const Stream copies, stream;
  const Event arrived, done;
  const auto capture = [&](const DeviceWords& output) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    add_kernel(output.data(), input.data(), kWords, 1, stream);
  };
  capture(outputs[0]);
  const Graph first(stream);
  capture(outputs[1]);
  const Graph second(stream);
  for (int step = 0; step < 2; ++step) {
    if (!planted) check(cudaStreamWaitEvent(copies, done, 0));
    enqueue_copy(input, slots[step], copies);
    check(cudaEventRecord(arrived, copies));
    check(cudaStreamWaitEvent(stream, arrived, 0));
    (step == 0 ? first : second).launch(stream);
    check(cudaEventRecord(done, stream));
  }
  check(cudaDeviceSynchronize());
  require_words(outputs[0], 8);
  require_words(outputs[1], 9);
}

void leaks_an_event(bool planted) {
  const Stream stream;
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  check(cudaEventRecord(event, stream));
  check(cudaEventSynchronize(event));
  if (!planted) check(cudaEventDestroy(event));
}

void leaks_a_stream(bool planted) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaStreamSynchronize(stream));
  if (!planted) check(cudaStreamDestroy(stream));
}

void leaks_a_graph(bool planted) {
  load_kernels();
  const DeviceWords from, to;
  const Stream stream;
  from.fill(7);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t step = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add_kernel(to.data(), from.data(), kWords, 1, stream);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&step, graph, 0));
  check(cudaGraphDestroy(graph));
  check(cudaGraphLaunch(step, stream));
  check(cudaStreamSynchronize(stream));
  require_words(to, 8);
  if (!planted) check(cudaGraphExecDestroy(step));
}

void launch_error_swallowed(bool planted) {
  const DeviceWords from, to;
  const Stream stream;
  from.fill(7);
  to.fill(0);
  try {
    add_kernel(to.data(), from.data(), kWords, 1, stream, planted ? 2 * 1024 : kThreads);
  } catch (const std::exception&) {
    (void)cudaGetLastError();
  }
  check(cudaStreamSynchronize(stream));
  require_words(to, 8);
}

// Since CUDA 12 cudaSetDevice makes a context, on the device that a thread has by default too.
void context_on_a_device_nobody_asked_for(bool planted) {
  on_another_thread([&] {
    const int previous = current_device();
    check(cudaSetDevice(1));
    {
      const PinnedWords slot(7);
      const DeviceWords place;
      const Stream copies;
      enqueue_copy(place, slot, copies);
      check(cudaStreamSynchronize(copies));
    }
    if (planted) check(cudaSetDevice(previous));
  });
  require(simulated_cuda::has_context(1), "no context where one is used");
  require(!simulated_cuda::has_context(0), "a context on a device that nobody asked for");
}

constexpr std::array kUnseenCases{
    Planted{"PlaceOverwrittenBeforeItsReaderIsDone",
            "The event that frees a place is recorded before the kernel that reads it, not after.",
            place_overwritten_before_its_reader_is_done},
    Planted{"SecondReaderForgotten",
            "Two streams read a place, and the next copy into it waits for one of them.",
            second_reader_forgotten},
    Planted{"EventRecordedOnTheWrongStream",
            "The event that stands for a copy is recorded on another stream than the copy's.",
            event_recorded_on_the_wrong_stream},
    Planted{"WaitQueuedBeforeTheRecord",
            "A stream is told to wait for an event before it is recorded, which is no wait at all.",
            wait_queued_before_the_record},
    Planted{"SlotReturnedBeforeItsCopyIsDone",
            "The stream whose host function returns a slot does not wait for the copy from it.",
            slot_returned_before_its_copy_is_done},
    Planted{
        "OneEventForTwoSlots",
        "An event is recorded again for another stream's copy before the host has waited for it.",
        one_event_for_two_slots},
    Planted{"DoubleBufferingOffByOne",
            "The ring of events is one longer than the ring of places that they guard.",
            double_buffering_off_by_one},
    Planted{"ReleasedOnAnotherThreadsStream",
            "A reader's end is recorded on the per-thread stream of a thread that reads nothing.",
            released_on_another_threads_stream},
    Planted{"LegacyStreamOfAnotherDevice",
            "The default stream is told to wait while another device is current.",
            legacy_stream_of_another_device},
    Planted{"SynchronisesTheWrongDevice",
            "The host waits for cuda:1 and reads what cuda:0 is still copying.",
            synchronises_the_wrong_device},
    Planted{"StreamDestroyTakenForAWait",
            "A slot is refilled after its stream was destroyed, which does not wait for its copy.",
            stream_destroy_taken_for_a_wait},
    Planted{"UnregisteredWhileACopyIsQueued",
            "Host memory is unregistered while a copy from it is queued.",
            unregistered_while_a_copy_is_queued},
    Planted{"UnregisteredInAHostFunction",
            "A host function unregisters host memory, which is a call of CUDA.",
            unregistered_in_a_host_function},
    Planted{"UnregisteredTwice", "Host memory is unregistered a second time.", unregistered_twice},
    Planted{
        "PageableCopyOnTheLegacyStream",
        "A kernel on a non-blocking stream does not wait for a cudaMemcpy from pageable memory.",
        pageable_copy_on_the_legacy_stream},
    Planted{
        "DeviceToDeviceCopyTakenForSynchronous",
        "A cudaMemcpy within the device returns at once, and a non-blocking stream overtakes it.",
        device_to_device_copy_taken_for_synchronous},
    Planted{"KernelReadsAnotherDevicesMemory", "A kernel on cuda:1 reads memory of cuda:0.",
            kernel_reads_another_devices_memory},
    Planted{"CopyBetweenDevicesWithoutAWait",
            "A copy to cuda:1 does not wait for the one that brings its source to cuda:0.",
            copy_between_devices_without_a_wait},
    Planted{"KernelReadsOneWordPast", "A kernel reads one word past an allocation of odd size.",
            kernel_reads_one_word_past},
    Planted{"CopyReadsPastItsSource", "A copy to the host reads one word past an allocation.",
            copy_reads_past_its_source},
    Planted{"HostWritesDeviceMemory", "The host writes through a pointer to device memory.",
            host_writes_device_memory},
    Planted{"OverlappingDeviceCopy", "The source and the destination of a copy overlap.",
            overlapping_device_copy},
    Planted{"WrongCopyDirection", "A copy within the device is called one from the host.",
            wrong_copy_direction},
    Planted{"FreedByAPointerIntoIt", "Memory is freed by a pointer to its middle.",
            freed_by_a_pointer_into_it},
    Planted{"TimeOfAnEventThatIsNotOver", "The time up to an event is asked before it is over.",
            time_of_an_event_that_is_not_over},
    Planted{"EventRecordedBeforeTheHostFunction",
            "The host waits for an event before a host function, and takes that one for done.",
            event_recorded_before_the_host_function},
    Planted{
        "QueryDuringAGlobalCapture",
        "Another thread queries an event during a capture in global mode, without relaxed mode.",
        query_during_a_global_capture},
    Planted{
        "CaptureWaitsForAnOutsideEvent",
        "A capturing stream is told to wait for an event that was recorded outside the capture.",
        capture_waits_for_an_outside_event},
    Planted{"LegacyStreamDuringACapture",
            "The legacy stream is used while a blocking stream captures.",
            legacy_stream_during_a_capture},
    Planted{"CaptureEndedByAnotherThread",
            "Another thread ends a capture that is not in relaxed mode.",
            capture_ended_by_another_thread},
    Planted{"GraphsSlotRefilledTooEarly",
            "The host refills a slot while a launched graph has yet to copy from it.",
            graphs_slot_refilled_too_early},
    Planted{
        "GraphsInputOverwrittenTooEarly",
        "The next input is copied over the last one without a wait for the graph that reads it.",
        graphs_input_overwritten_too_early},
    Planted{"LeaksAnEvent", "An event is never destroyed.", leaks_an_event},
    Planted{"LeaksAStream", "A stream is never destroyed.", leaks_a_stream},
    Planted{"LeaksAGraph", "An instantiated graph is never destroyed.", leaks_a_graph},
    Planted{"LaunchErrorSwallowed",
            "A launch with too many threads a block fails, and nobody looks at its error.",
            launch_error_swallowed},
    Planted{"ContextOnADeviceNobodyAskedFor",
            "A thread goes back to cuda:0, which it never used, and leaves a context there.",
            context_on_a_device_nobody_asked_for},
};

}  // namespace

std::span<const Planted> planted_unseen() { return kUnseenCases; }

}  // namespace penstock::simulation_test
