// testing/simulated_cuda/machine: the simulated machine's state. One lock guards all of it; the executor runs
// operations without holding it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <cuda_runtime_api.h>

#include "lock.hpp"
#include "simulated_cuda.hpp"

namespace penstock::simulated_cuda {

struct Stream;
struct Capture;

/// What a step of an operation says.
struct Progress {
  bool done = true;
  std::int64_t not_before = 0;  // of the next step, on now_ns()
};

/// One entry of a stream.
struct Operation {
  std::string name;
  Stream* stream = nullptr;
  std::function<Progress()> step;
  std::vector<std::shared_ptr<Operation>> after;  // of other streams
  std::int64_t not_before = 0;
  std::uint64_t opens = 0;          // devices whose memory it may touch, a bit each
  const std::byte* host = nullptr;  // registered host memory that it touches
  std::size_t host_bytes = 0;
  bool started = false;
  bool wanted = false;   // somebody waits for it, or for what comes behind it
  bool awaited = false;  // somebody waits for it
  bool done = false;
  std::int64_t done_ns = 0;
};
using OperationPtr = std::shared_ptr<Operation>;

struct Stream {
  int device = 0;
  std::uint64_t number = 0;
  bool blocking = true;  // takes part in the legacy stream's order
  bool legacy = false;
  bool users = false;  // made by a call, neither legacy nor per thread
  bool destroyed = false;
  bool went_with_device = false;  // it was lost; destroying its remains is no mistake
  std::deque<OperationPtr> queue;
  OperationPtr last;
  std::uint64_t issued = 0;
  Capture* capture = nullptr;
  std::vector<std::size_t> capture_tail;  // what the next captured node comes behind
  void* fiber = nullptr;                  // ThreadSanitizer's
  std::vector<std::shared_ptr<void>> kernel_fibers;
};

struct Event {
  int device = 0;
  bool timing = false;
  bool blocking = false;  // who waits for it sleeps
  bool destroyed = false;
  bool went_with_device = false;  // it was lost; destroying its remains is no mistake
  OperationPtr recorded;          // none: never recorded
  Stream* recorded_on = nullptr;
  Capture* capture = nullptr;  // recorded in this one
  std::vector<std::size_t> capture_nodes;
};

/// A node of a graph: an operation to make when the graph is launched.
struct Node {
  std::string name;
  std::function<std::function<Progress()>()> make;
  std::vector<std::size_t> after;
  std::uint64_t opens = 0;
};

struct Capture {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  Stream* origin = nullptr;
  bool invalidated = false;
  std::vector<Node> nodes;
  std::vector<Stream*> streams;
};

struct Graph {
  std::vector<Node> nodes;
};

struct Allocation {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::size_t mapped = 0;
  bool open = false;
};

struct Device {
  bool has_context = false;
  cudaError_t lost = cudaSuccess;
  std::unique_ptr<Stream> legacy;
  std::map<std::thread::id, std::unique_ptr<Stream>> per_thread;
  std::vector<Stream*> streams;  // all of them, for as long as they may hold something
  std::map<const std::byte*, Allocation> allocations;
  std::set<const std::byte*> gone;  // with the device, when it was lost; freeing it is no mistake
  std::byte* region = nullptr;      // addresses; never used twice
  std::size_t region_used = 0;
  std::size_t allocated = 0;
};

class Machine {
 public:
  static Machine& get();

  Lock lock;
  Signal work;      // for the executor
  Signal progress;  // for those who wait for it

  int process = 0;
  std::uint64_t seed = 1;
  std::vector<Device> devices;
  std::unordered_set<Stream*> streams;  // all that were made, destroyed ones included
  std::unordered_set<Event*> events;
  std::unordered_set<Graph*> graphs;
  std::unordered_set<Graph*> graph_execs;
  std::vector<std::unique_ptr<Capture>> captures;  // in progress
  std::map<const std::byte*, std::size_t> registered;
  std::map<std::string, std::vector<std::pair<std::uint64_t, cudaError_t>>> faults;  // calls left
  std::map<std::string, cudaError_t> constant_faults;
  std::vector<std::pair<std::uint64_t, std::size_t>> corrupt_copies;  // copies left, and where
  std::uint64_t operations_done = 0;
  std::uint64_t streams_made = 0;
  std::uint64_t first_streams_made = 0;  // of the greatest priority
  std::uint64_t spins = 0;
  std::size_t live_streams = 0;  // users'
  std::size_t live_events = 0;

  /// Makes the device's context.
  Device& use(int device);
  [[nodiscard]] Stream* make_stream(int device, bool blocking);
  /// Waits, with the lock given back meanwhile, where the stream can take no more.
  void wait_for_room(const Stream& stream);
  void enqueue(const OperationPtr& operation);
  /// Waits until `operation` is done; holds the lock on entry and exit.
  cudaError_t wait(const OperationPtr& operation);
  /// An operation that does nothing, behind all that the stream holds.
  [[nodiscard]] OperationPtr mark(Stream& stream, const char* name);
  void lose(int device, cudaError_t error);
  /// Until nothing runs on the device: what ran there when it was lost goes on to its end. Not for the executor.
  void wait_for_running(int device);
  [[nodiscard]] cudaError_t fault_of(const std::string& function);
  /// Which bytes of the next copy to a device arrive wrong.
  [[nodiscard]] std::vector<std::size_t> corrupt_bytes(std::size_t bytes);

  /// The allocation that holds the address, and its device; nullptr and -1 for host memory.
  [[nodiscard]] std::pair<const Allocation*, int> find(const void* address) const;
  [[nodiscard]] bool is_registered(const void* address, std::size_t bytes) const;

  /// For the executor, when it runs an operation: opens the allocation that holds the address. False: there is none that
  /// the operation may touch. Takes the lock.
  [[nodiscard]] bool open_memory(const void* address);
  /// After an allocation came: open_memory() itself, which a signal calls, must not ask for memory.
  void expect_memory();
  /// Before an allocation goes.
  void forget_memory(const Allocation& allocation);
  /// At the end of the process.
  void stop();
  void check_leaks() const;

 private:
  Machine();
  ~Machine();
  void start();
  void execute();
  void run_one(const OperationPtr& operation);
  [[nodiscard]] bool is_runnable(const Operation& operation, std::int64_t now) const;
  void want(const OperationPtr& operation);
  void allow_memory(std::uint64_t of_devices);
  void open(Allocation& allocation, int device);
  std::uint64_t next_random();

  const Stream* running_ = nullptr;  // whose operation the executor is in
  int waits_for_running_ = 0;
  bool has_executor_ = false;
  bool opens_at_once_ = false;  // what an operation may touch, before it starts
  bool stop_ = false;
  std::uint64_t allowed_ = 0;                        // devices whose memory may be opened
  std::vector<std::pair<Allocation*, int>> opened_;  // and their devices
  std::uint64_t random_ = 0;
  void* fiber_ = nullptr;  // the executor's own
};

/// The calling thread's view of the machine.
struct ThreadState {
  ThreadState() = default;
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;
  ~ThreadState();  // its streams end with a thread

  /// The device that calls go to.
  [[nodiscard]] int device() const { return context >= 0 ? context : ordinal; }

  int ordinal = 0;   // as cudaSetDevice left it; a driver's call does not change it
  int context = -1;  // the device whose context is current, in the driver's eyes; -1: none is
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool in_host_function = false;
  bool is_executor = false;
  bool has_streams = false;
};
ThreadState& this_thread();

/// What an entry point does.
enum class Needs : unsigned {
  nothing = 0,
  context = 1,    // makes one on the current device, where none is current
  no_capture = 2  // is refused, and ends captures, where a capture forbids unsafe calls
};
constexpr Needs operator|(Needs a, Needs b) {
  return static_cast<Needs>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool has(Needs all, Needs one) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}
/// With the lock held. Anything but success is what the entry point returns.
cudaError_t begin_call(const char* function, Needs needs);
cudaError_t end_call(cudaError_t status);

template <class Body>
cudaError_t call(const char* function, Needs needs, const Body& body) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  cudaError_t status = begin_call(function, needs);
  if (status == cudaSuccess) status = body(machine);
  return end_call(status);
}

/// The stream that a handle names on the current device. A stream of another device than the current one is wrong
/// where `of_current`.
Stream& stream_of(Machine& machine, cudaStream_t handle, const char* function, bool of_current);
Event& event_of(Machine& machine, cudaEvent_t handle, const char* function);

/// Queues work on a stream, or takes it into the capture that the stream is in.
/// `make` gives the steps; it is called at once, or at every launch of the graph.
cudaError_t submit(Machine& machine, Stream& stream, Node node, const std::byte* host = nullptr,
                   std::size_t host_bytes = 0);
/// Whether what the calling thread is about to do is forbidden by a capture; ends these captures.
cudaError_t refuse_in_captures(Machine& machine, const char* function);
/// Work on the legacy stream while a blocking stream is captured.
cudaError_t refuse_implicit(Machine& machine, const Stream& stream);

/// What blocks of kernels ran on in this stream.
void forget_fibers(Stream& stream);
/// Steps that call what the program has given, not on the executor's stack: to ThreadSanitizer streams are different
/// threads, which would race there.
std::function<Progress()> on_own_stack(Stream& stream, std::function<void()> work);

}  // namespace penstock::simulated_cuda
