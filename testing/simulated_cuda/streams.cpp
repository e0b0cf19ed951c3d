// Streams, events, host functions and waiting.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "machine.hpp"
#include "sanitizers.hpp"

namespace penstock::simulated_cuda {

Stream& stream_of(Machine& machine, cudaStream_t handle, const char* function, bool of_current) {
  const int current = this_thread().device();
  if (handle == nullptr || handle == cudaStreamLegacy) return *machine.use(current).legacy;
  if (handle == cudaStreamPerThread) {
    auto& own = machine.use(current).per_thread[std::this_thread::get_id()];
    if (!own) own.reset(machine.make_stream(current, true));
    this_thread().has_streams = true;
    return *own;
  }
  auto* const stream = reinterpret_cast<Stream*>(handle);
  if (!machine.streams.contains(stream))
    violation(fmt::format("{} was given a stream that was never made", function));
  if (stream->destroyed)
    violation(fmt::format("{} was given a stream that is destroyed", function));
  if (of_current && stream->device != current)
    violation(fmt::format("{} was given a stream of cuda:{}, and the current device is cuda:{}",
                          function, stream->device, current));
  return *stream;
}

Event& event_of(Machine& machine, cudaEvent_t handle, const char* function) {
  auto* const event = reinterpret_cast<Event*>(handle);
  if (!machine.events.contains(event))
    violation(fmt::format("{} was given an event that was never made", function));
  if (event->destroyed) violation(fmt::format("{} was given an event that is destroyed", function));
  return *event;
}

namespace {

constexpr int kGreatestPriority = -5;

cudaError_t lost(const Machine& machine, int device) {
  return machine.devices[static_cast<std::size_t>(device)].lost;
}

// Whether it went with its device; destroyed once more it is a mistake.
template <class T, class Handle>
bool is_remains(const std::unordered_set<T*>& all, Handle handle) {
  auto* const given = reinterpret_cast<T*>(handle);
  return all.contains(given) && std::exchange(given->went_with_device, false);
}

cudaError_t make_stream(cudaStream_t* handle, unsigned flags, const char* function) {
  return call(function, Needs::context, [&](Machine& machine) {
    Stream* const stream =
        machine.make_stream(this_thread().device(), (flags & cudaStreamNonBlocking) == 0);
    stream->users = true;
    ++machine.live_streams;
    *handle = reinterpret_cast<cudaStream_t>(stream);
    return cudaSuccess;
  });
}

// Whether waiting for it is refused: it is captured, and with that the capture ends.
cudaError_t refuse_wait(const Stream& stream) {
  if (stream.capture == nullptr) return cudaSuccess;
  stream.capture->invalidated = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t synchronize(Machine& machine, Stream& stream, const char* function) {
  if (const cudaError_t status = lost(machine, stream.device); status != cudaSuccess) return status;
  if (const cudaError_t refused = refuse_wait(stream); refused != cudaSuccess) return refused;
  return machine.wait(machine.mark(stream, function));
}

}  // namespace

bool enqueue_polled(cudaStream_t handle, std::string name, std::function<Polled()> step) {
  static constexpr std::int64_t kShortestNs = 20'000;
  static constexpr std::int64_t kLongestNs = 1'000'000;
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  Stream& stream = stream_of(machine, handle, name.c_str(), false);
  if (lost(machine, stream.device) != cudaSuccess || stream.capture != nullptr) return false;
  auto operation = std::make_shared<Operation>();
  operation->name = std::move(name);
  operation->stream = &stream;
  operation->opens = std::uint64_t{1} << stream.device;
  operation->step = [step = std::move(step), since = std::int64_t{0}]() mutable -> Progress {
    const Polled polled = step();
    if (polled == Polled::over) return {};
    const std::int64_t now = now_ns();
    if (polled == Polled::moved || since == 0) since = now;
    if (polled == Polled::moved) return {.done = false, .not_before = now};
    // The longer it has waited, the rarer it is asked.
    return {.done = false,
            .not_before = now + std::clamp((now - since) / 8, kShortestNs, kLongestNs)};
  };
  machine.enqueue(operation);
  return true;
}

void wait_for_room(cudaStream_t handle) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  machine.wait_for_room(stream_of(machine, handle, "wait_for_room", false));
}

void wait_for_device(int device) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  std::vector<OperationPtr> open;
  for (const Stream* stream : machine.devices[static_cast<std::size_t>(device)].streams)
    if (stream->last && !stream->last->done) open.push_back(stream->last);
  for (const OperationPtr& operation : open) (void)machine.wait(operation);
}

Manners manners() {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  return {machine.first_streams_made, machine.spins};
}

bool is_lost(int device) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  return lost(machine, device) != cudaSuccess;
}

}  // namespace penstock::simulated_cuda

using namespace penstock::simulated_cuda;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return make_stream(stream, 0, "cudaStreamCreate");
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return make_stream(stream, flags, "cudaStreamCreateWithFlags");
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (priority <= kGreatestPriority) {
    Machine& machine = Machine::get();
    const Guard guard(machine.lock);
    ++machine.first_streams_made;
  }
  return make_stream(stream, flags, "cudaStreamCreateWithPriority");
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", Needs::context, [&](Machine&) {
    *least = 0;
    *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}

// What it holds goes on.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return call("cudaStreamDestroy", Needs::context, [&](Machine& machine) {
    if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread)
      return cudaErrorInvalidResourceHandle;
    if (is_remains(machine.streams, handle)) return cudaErrorContextIsDestroyed;
    Stream& stream = stream_of(machine, handle, "cudaStreamDestroy", false);
    if (stream.capture != nullptr) stream.capture->invalidated = true;
    stream.destroyed = true;
    --machine.live_streams;
    machine.work.notify();
    return lost(machine, stream.device);
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call("cudaStreamSynchronize", Needs::context | Needs::no_capture, [&](Machine& machine) {
    return synchronize(machine, stream_of(machine, handle, "cudaStreamSynchronize", false),
                       "cudaStreamSynchronize");
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return call("cudaStreamGetDevice", Needs::nothing, [&](Machine& machine) {
    *device = stream_of(machine, handle, "cudaStreamGetDevice", false).device;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call("cudaStreamQuery", Needs::context | Needs::no_capture, [&](Machine& machine) {
    Stream& stream = stream_of(machine, handle, "cudaStreamQuery", false);
    if (const cudaError_t status = lost(machine, stream.device); status != cudaSuccess)
      return status;
    if (const cudaError_t refused = refuse_wait(stream); refused != cudaSuccess) return refused;
    if (!stream.queue.empty()) return cudaErrorNotReady;
    if (stream.last) acquire(stream.last.get());
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", Needs::context | Needs::no_capture, [&](Machine& machine) {
    const int current = this_thread().device();
    std::vector<OperationPtr> marks;
    for (Stream* stream : machine.devices[static_cast<std::size_t>(current)].streams) {
      if (const cudaError_t refused = refuse_wait(*stream); refused != cudaSuccess) return refused;
      marks.push_back(machine.mark(*stream, "cudaDeviceSynchronize"));
    }
    for (const OperationPtr& operation : marks)
      if (const cudaError_t status = machine.wait(operation); status != cudaSuccess) return status;
    acquire(&machine.devices[static_cast<std::size_t>(current)]);  // streams that are gone
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  return call("cudaEventCreateWithFlags", Needs::context, [&](Machine& machine) {
    auto* const event = new Event;
    event->device = this_thread().device();
    event->timing = (flags & cudaEventDisableTiming) == 0;
    event->blocking = (flags & cudaEventBlockingSync) != 0;
    machine.events.insert(event);
    ++machine.live_events;
    *handle = reinterpret_cast<cudaEvent_t>(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) { return cudaEventCreateWithFlags(handle, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return call("cudaEventDestroy", Needs::context, [&](Machine& machine) {
    if (is_remains(machine.events, handle)) return cudaErrorContextIsDestroyed;
    Event& event = event_of(machine, handle, "cudaEventDestroy");
    event.destroyed = true;
    --machine.live_events;
    event.recorded = nullptr;
    return lost(machine, event.device);
  });
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  return call("cudaEventRecord", Needs::context, [&](Machine& machine) {
    Event& event = event_of(machine, handle, "cudaEventRecord");
    Stream& stream = stream_of(machine, stream_handle, "cudaEventRecord", false);
    if (event.device != stream.device) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t status = lost(machine, stream.device); status != cudaSuccess)
      return status;
    if (const cudaError_t refused = refuse_implicit(machine, stream); refused != cudaSuccess)
      return refused;
    event.recorded_on = &stream;
    if (stream.capture != nullptr) {
      event.capture = stream.capture;
      event.capture_nodes = stream.capture_tail;
      return cudaSuccess;
    }
    event.capture = nullptr;
    event.recorded = machine.mark(stream, "cudaEventRecord");
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned) {
  return call("cudaStreamWaitEvent", Needs::context, [&](Machine& machine) {
    Event& event = event_of(machine, handle, "cudaStreamWaitEvent");
    Stream& stream = stream_of(machine, stream_handle, "cudaStreamWaitEvent", false);
    if (const cudaError_t status = lost(machine, stream.device); status != cudaSuccess)
      return status;
    if (const cudaError_t refused = refuse_implicit(machine, stream); refused != cudaSuccess)
      return refused;
    if (event.capture != nullptr) {
      // Joins the capture that the event belongs to.
      const bool ends = std::ranges::none_of(
          machine.captures, [&](const auto& own) { return own.get() == event.capture; });
      if (ends) return cudaErrorCapturedEvent;
      if (stream.capture != nullptr && stream.capture != event.capture) {
        stream.capture->invalidated = event.capture->invalidated = true;
        return cudaErrorStreamCaptureMerge;
      }
      if (stream.capture == nullptr) {
        if (stream.legacy) return cudaErrorStreamCaptureImplicit;
        stream.capture = event.capture;
        stream.capture->streams.push_back(&stream);
        stream.capture_tail.clear();
      }
      for (const std::size_t node : event.capture_nodes)
        if (std::ranges::find(stream.capture_tail, node) == stream.capture_tail.end())
          stream.capture_tail.push_back(node);
      return cudaSuccess;
    }
    if (stream.capture != nullptr) {
      if (!event.recorded) return cudaSuccess;
      stream.capture->invalidated = true;
      return cudaErrorStreamCaptureIsolation;
    }
    if (!event.recorded) return cudaSuccess;
    machine.wait_for_room(stream);
    auto operation = std::make_shared<Operation>();
    operation->name = "cudaStreamWaitEvent";
    operation->stream = &stream;
    operation->step = [] { return Progress{}; };
    operation->after.push_back(event.recorded);
    machine.enqueue(operation);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return call("cudaEventQuery", Needs::no_capture, [&](Machine& machine) {
    Event& event = event_of(machine, handle, "cudaEventQuery");
    if (const cudaError_t status = lost(machine, event.device); status != cudaSuccess)
      return status;
    if (event.capture != nullptr) {
      event.capture->invalidated = true;
      return cudaErrorCapturedEvent;
    }
    if (!event.recorded) return cudaSuccess;
    if (!event.recorded->done) return cudaErrorNotReady;
    acquire(event.recorded.get());
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call("cudaEventSynchronize", Needs::no_capture, [&](Machine& machine) {
    Event& event = event_of(machine, handle, "cudaEventSynchronize");
    if (const cudaError_t status = lost(machine, event.device); status != cudaSuccess)
      return status;
    if (event.capture != nullptr) {
      event.capture->invalidated = true;
      return cudaErrorCapturedEvent;
    }
    if (!event.recorded) return cudaSuccess;
    if (!event.blocking && !event.recorded->done) ++machine.spins;
    return machine.wait(event.recorded);
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  return call("cudaEventElapsedTime", Needs::nothing, [&](Machine& machine) {
    const Event& first = event_of(machine, from, "cudaEventElapsedTime");
    const Event& second = event_of(machine, to, "cudaEventElapsedTime");
    if (const cudaError_t status = lost(machine, first.device); status != cudaSuccess)
      return status;
    if (!first.timing || !second.timing || !first.recorded || !second.recorded ||
        first.device != second.device)
      return cudaErrorInvalidResourceHandle;
    if (!first.recorded->done || !second.recorded->done) return cudaErrorNotReady;
    *ms = static_cast<float>(
        static_cast<double>(second.recorded->done_ns - first.recorded->done_ns) / 1e6);
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return call("cudaLaunchHostFunc", Needs::context, [&](Machine& machine) {
    Stream& stream = stream_of(machine, handle, "cudaLaunchHostFunc", false);
    return submit(machine, stream,
                  {.name = "a host function",
                   .make =
                       [=, &stream] {
                         return on_own_stack(stream, [=] {
                           this_thread().in_host_function = true;
                           function(data);
                           this_thread().in_host_function = false;
                         });
                       },
                   .after = {},
                   .opens = 0});
  });
}

}  // extern "C"
