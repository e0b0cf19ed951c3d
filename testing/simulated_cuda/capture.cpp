// Stream capture and graphs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "machine.hpp"

namespace penstock::simulated_cuda {

cudaError_t refuse_in_captures(Machine& machine, const char* function) {
  const ThreadState& thread = this_thread();
  if (thread.mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  bool refused = false;
  for (const auto& capture : machine.captures) {
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    const bool own = capture->thread == std::this_thread::get_id();
    const bool global =
        capture->mode == cudaStreamCaptureModeGlobal && thread.mode == cudaStreamCaptureModeGlobal;
    if (!own && !global) continue;
    capture->invalidated = true;
    refused = true;
    if (std::getenv("PENSTOCK_SIMULATED_VERBOSE") != nullptr)
      std::fprintf(stderr, "simulated CUDA: %s ends a capture\n", function);
  }
  return refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t refuse_implicit(Machine& machine, const Stream& stream) {
  if (!stream.legacy) return cudaSuccess;
  bool refused = false;
  for (const auto& capture : machine.captures)
    for (const Stream* captured : capture->streams)
      if (captured->device == stream.device && captured->blocking) {
        capture->invalidated = true;
        refused = true;
      }
  return refused ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

cudaError_t submit(Machine& machine, Stream& stream, Node node, const std::byte* host,
                   std::size_t host_bytes) {
  const Device& device = machine.devices[static_cast<std::size_t>(stream.device)];
  if (device.lost != cudaSuccess) return device.lost;
  if (const cudaError_t refused = refuse_implicit(machine, stream); refused != cudaSuccess)
    return refused;
  if (Capture* capture = stream.capture; capture != nullptr) {
    if (capture->invalidated) return cudaErrorStreamCaptureInvalidated;
    node.after = stream.capture_tail;
    capture->nodes.push_back(std::move(node));
    stream.capture_tail = {capture->nodes.size() - 1};
    return cudaSuccess;
  }
  machine.wait_for_room(stream);
  auto operation = std::make_shared<Operation>();
  operation->name = std::move(node.name);
  operation->stream = &stream;
  operation->step = node.make();
  operation->opens = node.opens;
  operation->host = host;
  operation->host_bytes = host_bytes;
  machine.enqueue(operation);
  return cudaSuccess;
}

namespace {

// The graph's nodes, one after another in an order that their edges allow.
std::function<Progress()> steps_of(const std::vector<Node>& nodes, std::uint64_t seed) {
  struct State {
    std::vector<Node> nodes;
    std::vector<bool> done;
    std::size_t left = 0;
    std::size_t current = 0;
    std::function<Progress()> step;
    std::uint64_t random = 0;
  };
  auto state = std::make_shared<State>();
  state->nodes = nodes;
  state->done.resize(nodes.size());
  state->left = nodes.size();
  state->random = seed;
  return [state]() -> Progress {
    if (state->left == 0) return {};
    if (!state->step) {
      std::vector<std::size_t> ready;
      for (std::size_t k = 0; k < state->nodes.size(); ++k)
        if (!state->done[k] && std::ranges::all_of(state->nodes[k].after,
                                                   [&](std::size_t at) { return state->done[at]; }))
          ready.push_back(k);
      state->random = state->random * 6364136223846793005U + 1442695040888963407U;
      state->current = ready[(state->random >> 33) % ready.size()];
      state->step = state->nodes[state->current].make();
    }
    Progress progress = state->step();
    if (!progress.done) return progress;
    state->step = nullptr;
    state->done[state->current] = true;
    return {.done = --state->left == 0};
  };
}

Graph& graph_of(std::unordered_set<Graph*>& graphs, void* handle, const char* function) {
  auto* const graph = static_cast<Graph*>(handle);
  if (!graphs.contains(graph))
    violation(fmt::format("{} was given a graph that was never made, or is destroyed", function));
  return *graph;
}

}  // namespace

}  // namespace penstock::simulated_cuda

using namespace penstock::simulated_cuda;

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", Needs::context, [&](Machine&) {
    std::swap(*mode, this_thread().mode);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", Needs::context, [&](Machine& machine) {
    Stream& stream = stream_of(machine, handle, "cudaStreamBeginCapture", false);
    if (stream.legacy) return cudaErrorStreamCaptureUnsupported;
    if (stream.capture != nullptr) return cudaErrorIllegalState;
    auto capture = std::make_unique<Capture>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = &stream;
    capture->streams.push_back(&stream);
    stream.capture = capture.get();
    stream.capture_tail.clear();
    machine.captures.push_back(std::move(capture));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* result) {
  return call("cudaStreamEndCapture", Needs::context, [&](Machine& machine) {
    *result = nullptr;
    Stream& stream = stream_of(machine, handle, "cudaStreamEndCapture", false);
    Capture* const capture = stream.capture;
    if (capture == nullptr) return cudaErrorIllegalState;
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        capture->thread != std::this_thread::get_id())
      return cudaErrorStreamCaptureWrongThread;
    if (capture->origin != &stream) {
      capture->invalidated = true;
      return cudaErrorStreamCaptureUnmatched;
    }
    // Whatever other streams hold must lie before the last of the origin's nodes.
    std::vector<bool> joined(capture->nodes.size());
    std::vector<std::size_t> open = stream.capture_tail;
    while (!open.empty()) {
      const std::size_t node = open.back();
      open.pop_back();
      if (joined[node]) continue;
      joined[node] = true;
      open.insert(open.end(), capture->nodes[node].after.begin(), capture->nodes[node].after.end());
    }
    const bool all_joined = std::ranges::all_of(capture->streams, [&](const Stream* other) {
      return std::ranges::all_of(other->capture_tail,
                                 [&](std::size_t node) { return joined[node]; });
    });
    const bool invalidated = capture->invalidated;
    auto graph = std::make_unique<Graph>(Graph{std::move(capture->nodes)});
    for (Stream* other : capture->streams) {
      other->capture = nullptr;
      other->capture_tail.clear();
    }
    std::erase_if(machine.captures, [&](const auto& own) { return own.get() == capture; });
    if (invalidated) return cudaErrorStreamCaptureInvalidated;
    if (!all_joined) return cudaErrorStreamCaptureUnjoined;
    machine.graphs.insert(graph.get());
    *result = reinterpret_cast<cudaGraph_t>(graph.release());
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", Needs::context, [&](Machine& machine) {
    Stream& stream = stream_of(machine, handle, "cudaStreamIsCapturing", false);
    if (const cudaError_t refused = refuse_implicit(machine, stream); refused != cudaSuccess)
      return refused;
    *status = stream.capture == nullptr     ? cudaStreamCaptureStatusNone
              : stream.capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                            : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* result, cudaGraph_t handle, unsigned long long) {
  return call("cudaGraphInstantiate", Needs::context, [&](Machine& machine) {
    auto* const copy = new Graph(graph_of(machine.graphs, handle, "cudaGraphInstantiate"));
    machine.graph_execs.insert(copy);
    *result = reinterpret_cast<cudaGraphExec_t>(copy);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  return call("cudaGraphLaunch", Needs::context, [&](Machine& machine) {
    const Graph& graph = graph_of(machine.graph_execs, handle, "cudaGraphLaunch");
    Stream& stream = stream_of(machine, stream_handle, "cudaGraphLaunch", true);
    Node node{.name = "a graph", .make = {}, .after = {}, .opens = 0};
    for (const Node& own : graph.nodes) node.opens |= own.opens;
    node.make = [nodes = graph.nodes, seed = machine.seed + stream.issued] {
      return steps_of(nodes, seed);
    };
    return submit(machine, stream, std::move(node));
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  return call("cudaGraphDestroy", Needs::context, [&](Machine& machine) {
    Graph& graph = graph_of(machine.graphs, handle, "cudaGraphDestroy");
    machine.graphs.erase(&graph);
    delete &graph;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  return call("cudaGraphExecDestroy", Needs::context, [&](Machine& machine) {
    Graph& graph = graph_of(machine.graph_execs, handle, "cudaGraphExecDestroy");
    machine.graph_execs.erase(&graph);
    delete &graph;
    return cudaSuccess;
  });
}

}  // extern "C"
