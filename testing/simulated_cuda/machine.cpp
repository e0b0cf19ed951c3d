#include "machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "memory.hpp"
#include "sanitizers.hpp"

namespace penstock::simulated_cuda {

namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == 0 ? otherwise : std::strtoull(text, nullptr, 10);
}

// splitmix64's finaliser.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

std::uint64_t temper_of(std::uint64_t seed, std::uint64_t stream) {
  return mixed(seed ^ mixed(stream)) % 100;
}

// A lazy stream does nothing before somebody waits for it, or this long has passed.
constexpr std::int64_t kLazyNs = 2'000'000;
bool is_lazy(std::uint64_t seed, std::uint64_t stream) { return temper_of(seed, stream) >= 88; }

// How long an operation waits though nothing orders it. Most streams are prompt, some are slow now and then, some are
// slow at every operation.
std::int64_t delay_of(std::uint64_t seed, std::uint64_t stream, std::uint64_t number) {
  const std::uint64_t temper = temper_of(seed, stream);
  const std::uint64_t draw = mixed(seed ^ mixed(stream * 0x10001 + mixed(number)));
  const auto up_to = [&](std::int64_t us) {
    return static_cast<std::int64_t>((draw >> 16) % static_cast<std::uint64_t>(us * 1000));
  };
  if (temper < 35) return 0;
  if (temper < 55) return draw % 4 == 0 ? up_to(60) : 0;
  if (temper < 75) return draw % 16 == 0 ? up_to(1000) : 0;
  return temper < 88 ? up_to(120) : kLazyNs;
}

// A shorter wait than this is not worth a system call.
constexpr std::int64_t kSpinNs = 5'000;

Machine* the_machine = nullptr;
std::atomic<std::uint32_t> executor_ended{0};

}  // namespace

void violation(const std::string& what) {
  const std::uint64_t seed = the_machine != nullptr ? the_machine->seed : 0;
  const std::string text = fmt::format(
      "\nsimulated CUDA: {}\n                (seed {}: PENSTOCK_SIMULATED_SEED)\n", what, seed);
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

ThreadState::~ThreadState() {
  if (!has_streams) return;
  Machine& machine = Machine::get();
  if (machine.process != ::getpid()) return;
  const Guard guard(machine.lock);
  for (Device& one : machine.devices) {
    const auto own = one.per_thread.find(std::this_thread::get_id());
    if (own == one.per_thread.end()) continue;
    own->second.release()->destroyed = true;  // Machine::streams keeps it
    one.per_thread.erase(own);
  }
  machine.work.notify();
}

ThreadState& this_thread() {
  thread_local ThreadState state;
  return state;
}

Machine& Machine::get() {
  static Machine* const machine = new Machine;  // ends with the process: see end_of_process()
  return *machine;
}

Machine::Machine() : process(::getpid()), seed(from_environment("PENSTOCK_SIMULATED_SEED", 1)) {
  devices.resize(from_environment("PENSTOCK_SIMULATED_GPUS", 0));
  the_machine = this;
  random_ = mixed(seed);
}

Machine::~Machine() = default;

std::uint64_t Machine::next_random() { return random_ = mixed(random_ + seed); }

void Machine::start() {
  if (has_executor_ || stop_) return;
  has_executor_ = true;
  opens_at_once_ = !catch_bad_accesses();
  std::thread([this] { execute(); }).detach();
}

Device& Machine::use(int index) {
  Device& device = devices[static_cast<std::size_t>(index)];
  if (device.has_context) return device;
  device.has_context = true;
  device.legacy = std::make_unique<Stream>();
  device.legacy->device = index;
  device.legacy->number = ++streams_made;
  device.legacy->legacy = true;
  device.legacy->fiber = create_fiber("legacy stream");
  device.streams.push_back(device.legacy.get());
  streams.insert(device.legacy.get());
  start();
  return device;
}

Stream* Machine::make_stream(int index, bool blocking) {
  Device& device = use(index);
  auto* const stream = new Stream;
  stream->device = index;
  stream->number = ++streams_made;
  stream->blocking = blocking;
  stream->fiber = create_fiber("stream");
  device.streams.push_back(stream);
  streams.insert(stream);
  return stream;
}

void Machine::wait_for_room(const Stream& stream) {
  constexpr std::size_t kDepth = 1024;
  const Device& device = devices[static_cast<std::size_t>(stream.device)];
  while (stream.queue.size() >= kDepth && device.lost == cudaSuccess) {
    const OperationPtr first = stream.queue.front();
    want(first);
    first->awaited = true;
    progress.wait(lock);
  }
}

void Machine::enqueue(const OperationPtr& operation) {
  Stream& stream = *operation->stream;
  Device& device = devices[static_cast<std::size_t>(stream.device)];
  if (stream.legacy) {
    for (const Stream* other : device.streams)
      if (other->blocking && !other->legacy && other->last) operation->after.push_back(other->last);
  } else if (stream.blocking && device.legacy->last) {
    operation->after.push_back(device.legacy->last);
  }
  operation->not_before =
      std::max(operation->not_before, now_ns() + delay_of(seed, stream.number, ++stream.issued));
  stream.queue.push_back(operation);
  stream.last = operation;
  release(operation.get());
  work.notify();
}

// Somebody waits for it, and so for all that it waits for.
void Machine::want(const OperationPtr& operation) {
  std::vector<OperationPtr> open{operation};
  while (!open.empty()) {
    const OperationPtr wanted = open.back();
    open.pop_back();
    for (const OperationPtr& own : wanted->stream->queue) {
      if (!own->wanted) {
        own->wanted = true;
        if (is_lazy(seed, own->stream->number) && !own->started) own->not_before = 0;
        for (const OperationPtr& other : own->after)
          if (!other->done && !other->wanted) open.push_back(other);
      }
      if (own == wanted) break;
    }
  }
  work.notify();
}

OperationPtr Machine::mark(Stream& stream, const char* name) {
  wait_for_room(stream);
  auto operation = std::make_shared<Operation>();
  operation->name = name;
  operation->stream = &stream;
  operation->step = [] { return Progress{}; };
  enqueue(operation);
  return operation;
}

cudaError_t Machine::wait(const OperationPtr& operation) {
  const Device& device = devices[static_cast<std::size_t>(operation->stream->device)];
  want(operation);
  operation->awaited = true;
  while (!operation->done && device.lost == cudaSuccess) progress.wait(lock);
  if (device.lost != cudaSuccess) return device.lost;
  acquire(operation.get());
  return cudaSuccess;
}

void Machine::lose(int index, cudaError_t error) {
  Device& device = devices[static_cast<std::size_t>(index)];
  if (device.lost != cudaSuccess) return;
  device.lost = error;
  for (Stream* stream : device.streams) {
    for (const OperationPtr& operation : stream->queue) {
      operation->done = true;
      operation->after.clear();
    }
    stream->queue.clear();
  }
  progress.notify();
  work.notify();
}

void Machine::wait_for_running(int index) {
  ++waits_for_running_;
  while (running_ != nullptr && running_->device == index) progress.wait(lock);
  --waits_for_running_;
}

cudaError_t Machine::fault_of(const std::string& function) {
  if (const auto constant = constant_faults.find(function); constant != constant_faults.end())
    return constant->second;
  const auto found = faults.find(function);
  if (found == faults.end()) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  for (auto& [left, code] : found->second)
    if (left > 0 && --left == 0) error = code;
  std::erase_if(found->second, [](const auto& fault) { return fault.first == 0; });
  return error;
}

std::vector<std::size_t> Machine::corrupt_bytes(std::size_t bytes) {
  std::vector<std::size_t> wrong;
  for (auto& [left, offset] : corrupt_copies)
    if (offset < bytes && --left == 0) wrong.push_back(offset);
  std::erase_if(corrupt_copies, [](const auto& one) { return one.first == 0; });
  return wrong;
}

bool Machine::is_runnable(const Operation& operation, std::int64_t now) const {
  return operation.not_before <= now &&
         std::ranges::all_of(operation.after,
                             [](const OperationPtr& other) { return other->done; });
}

void Machine::allow_memory(std::uint64_t of_devices) {
  allowed_ = of_devices;
  std::erase_if(opened_, [&](const auto& opened) {
    const auto& [allocation, device] = opened;
    if ((allowed_ >> device & 1) != 0) return false;
    set_open(*allocation, false);
    return true;
  });
  if (!opens_at_once_) return;
  for (std::size_t index = 0; index < devices.size(); ++index) {
    if ((allowed_ >> index & 1) == 0) continue;
    for (auto& [begin, allocation] : devices[index].allocations)
      open(allocation, static_cast<int>(index));
  }
}

void Machine::open(Allocation& allocation, int device) {
  if (allocation.open) return;
  opened_.emplace_back(&allocation, device);
  set_open(allocation, true);
}

bool Machine::open_memory(const void* address) {
  const auto* const place = static_cast<const std::byte*>(address);
  const Guard guard(lock);
  for (std::size_t index = 0; index < devices.size(); ++index) {
    auto& allocations = devices[index].allocations;
    const auto after = allocations.upper_bound(place);
    if (after == allocations.begin() || (allowed_ >> index & 1) == 0) continue;
    Allocation& found = std::prev(after)->second;
    if (place >= found.begin + found.mapped) continue;
    open(found, static_cast<int>(index));
    return true;
  }
  return false;
}

void Machine::expect_memory() {
  std::size_t allocations = 0;
  for (const Device& device : devices) allocations += device.allocations.size();
  if (opened_.capacity() < allocations) opened_.reserve(2 * allocations);
}

void Machine::forget_memory(const Allocation& allocation) {
  std::erase_if(opened_, [&](const auto& opened) { return opened.first == &allocation; });
}

void Machine::run_one(const OperationPtr& operation) {
  Stream& stream = *operation->stream;
  operation->started = true;
  // Now and then it is closed between two operations, so that a host that looks there is seen.
  if (next_random() % 64 == 0) allow_memory(0);
  allow_memory(operation->opens);
  set_current(operation->name, stream.device, stream.number);
  const std::vector<OperationPtr> after = operation->after;
  running_ = &stream;
  lock.unlock();
  switch_to_fiber(stream.fiber);
  acquire(operation.get());
  for (const OperationPtr& other : after) acquire(other.get());
  const Progress progressed = operation->step();
  release(operation.get());
  switch_to_fiber(fiber_);
  lock.lock();
  running_ = nullptr;
  set_current("", -1, 0);
  if (!progressed.done) {
    operation->not_before = progressed.not_before;
    progress.notify();
    return;
  }
  operation->done = true;
  operation->done_ns = now_ns();
  operation->after.clear();
  operation->step = nullptr;
  ++operations_done;
  if (!stream.queue.empty() && stream.queue.front() == operation) stream.queue.pop_front();
  if (operation->awaited || waits_for_running_ > 0) progress.notify();
}

void Machine::execute() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGSEGV);
  ::sigdelset(&all, SIGABRT);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  this_thread().is_executor = true;
  ::prctl(PR_SET_TIMERSLACK, 1);
  lock.lock();
  fiber_ = current_fiber();
  const Unseen unseen;  // on this fibre; operations run on their streams'
  std::vector<OperationPtr> runnable;
  while (!stop_) {
    const std::int64_t now = now_ns();
    std::int64_t wake = -1;
    runnable.clear();
    for (Device& device : devices) {
      for (std::size_t k = 0; k < device.streams.size();) {
        Stream* const stream = device.streams[k];
        if (stream->queue.empty()) {
          if (!stream->destroyed) {
            ++k;
            continue;
          }
          switch_to_fiber(stream->fiber);
          release(&device);  // who waits for the device waits for it
          switch_to_fiber(fiber_);
          destroy_fiber(std::exchange(stream->fiber, nullptr));
          forget_fibers(*stream);
          stream->last = nullptr;
          device.streams.erase(device.streams.begin() + static_cast<std::ptrdiff_t>(k));
          continue;
        }
        const OperationPtr& front = stream->queue.front();
        if (is_runnable(*front, now))
          runnable.push_back(front);
        else if (front->not_before > now && (wake < 0 || front->not_before < wake))
          wake = front->not_before;
        ++k;
      }
    }
    if (!runnable.empty()) {
      run_one(runnable[next_random() % runnable.size()]);
      continue;
    }
    const std::int64_t left = wake < 0 ? -1 : wake - now_ns();
    if (wake >= 0 && left < kSpinNs) {
      lock.unlock();
      while (now_ns() < wake) {
      }
      lock.lock();
      continue;
    }
    allow_memory(0);
    work.wait(lock, left);
  }
  lock.unlock();
  executor_ended = 1;
  futex_wake(executor_ended, 1);
}

void Machine::check_leaks() const {
  if (from_environment("PENSTOCK_SIMULATED_LEAKS", 1) == 0) return;
  for (const Device& device : devices)
    if (device.lost != cudaSuccess) return;  // nothing can be released there
  // What work that is not over uses cannot be freed without waiting for it, which nobody has to do.
  for (const Device& device : devices)
    for (const Stream* stream : device.streams)
      if (!stream->queue.empty()) return;
  std::string left;
  const auto add = [&](std::size_t count, const char* what) {
    if (count > 0) left += fmt::format("{}{} {}", left.empty() ? "" : ", ", count, what);
  };
  std::size_t allocations = 0;
  for (const Device& device : devices) allocations += device.allocations.size();
  add(allocations, "allocations of device memory");
  add(live_streams, "streams");
  add(live_events, "events");
  add(registered.size(), "registrations of host memory");
  add(graphs.size() + graph_execs.size(), "graphs");
  if (!left.empty()) violation("left at the end of the process: " + left);
}

std::pair<const Allocation*, int> Machine::find(const void* address) const {
  const auto* const place = static_cast<const std::byte*>(address);
  for (std::size_t index = 0; index < devices.size(); ++index) {
    const auto& allocations = devices[index].allocations;
    auto after = allocations.upper_bound(place);
    if (after == allocations.begin()) continue;
    const Allocation& found = std::prev(after)->second;
    if (place < found.begin + found.bytes || (place == found.begin && found.bytes == 0))
      return {&found, static_cast<int>(index)};
  }
  return {nullptr, -1};
}

bool Machine::is_registered(const void* address, std::size_t bytes) const {
  const auto* const place = static_cast<const std::byte*>(address);
  const auto after = registered.upper_bound(place);
  if (after == registered.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return place + bytes <= begin + size;
}

void Machine::stop() {
  lock.lock();
  const bool runs = has_executor_;
  stop_ = true;
  work.notify();
  lock.unlock();
  while (runs && executor_ended == 0) futex_wait(executor_ended, 0, 100'000'000);
}

namespace {

// Behind the static objects of the program, which may own CUDA objects.
__attribute__((destructor)) void end_of_process() {
  if (the_machine == nullptr || the_machine->process != ::getpid()) return;
  the_machine->stop();
  the_machine->check_leaks();
}

}  // namespace

cudaError_t begin_call(const char* function, Needs needs) {
  ThreadState& thread = this_thread();
  if (thread.in_host_function)
    violation(fmt::format("{} was called in a host function, which may not call CUDA", function));
  Machine& machine = Machine::get();
  if (machine.process != ::getpid())
    return cudaErrorInitializationError;  // a child of fork() has no context
  if (const cudaError_t fault = machine.fault_of(function); fault != cudaSuccess) return fault;
  if (has(needs, Needs::context)) {
    if (machine.devices.empty()) return cudaErrorNoDevice;
    thread.context = thread.device();
    const Device& device = machine.use(thread.context);
    if (device.lost != cudaSuccess) return device.lost;
  }
  if (has(needs, Needs::no_capture))
    if (const cudaError_t refused = refuse_in_captures(machine, function); refused != cudaSuccess)
      return refused;
  return cudaSuccess;
}

cudaError_t end_call(cudaError_t status) {
  if (status != cudaSuccess) this_thread().last_error = status;
  return status;
}

// ---- what tests ask for ----

void set_seed(std::uint64_t value) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  machine.seed = value;
}

std::uint64_t seed() {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  return machine.seed;
}

void fail_call(const std::string& function, std::uint64_t n, cudaError_t error) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  machine.faults[function].push_back({n, error});
}

void fail_every_call(const std::string& function, cudaError_t error) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  if (error == cudaSuccess)
    machine.constant_faults.erase(function);
  else
    machine.constant_faults[function] = error;
}

void corrupt_copy(std::uint64_t n, std::size_t offset) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  machine.corrupt_copies.emplace_back(n, offset);
}

void lose_device(int device, cudaError_t error) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  machine.lose(device, error);
  machine.wait_for_running(device);
}

void repair() {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  machine.faults.clear();
  machine.constant_faults.clear();
  machine.corrupt_copies.clear();
  for (std::size_t index = 0; index < machine.devices.size(); ++index) {
    Device& device = machine.devices[index];
    if (std::exchange(device.lost, cudaSuccess) == cudaSuccess) continue;
    for (Stream* stream : machine.streams)
      if (stream->device == static_cast<int>(index) && stream->users &&
          !std::exchange(stream->destroyed, true)) {
        stream->went_with_device = true;
        --machine.live_streams;
      }
    for (Event* event : machine.events)
      if (event->device == static_cast<int>(index) && !std::exchange(event->destroyed, true)) {
        event->went_with_device = true;
        --machine.live_events;
      }
    for (auto& [begin, allocation] : device.allocations) {
      set_open(allocation, false);
      machine.forget_memory(allocation);
      device.gone.insert(begin);
    }
    device.allocations.clear();
    device.allocated = 0;
    machine.registered.clear();
  }
}

bool has_context(int device) {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  return machine.devices.at(static_cast<std::size_t>(device)).has_context;
}

Usage usage() {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  Usage usage;
  for (const Device& device : machine.devices) {
    usage.device_bytes += device.allocated;
    usage.allocations += device.allocations.size();
  }
  usage.streams = machine.live_streams;
  usage.events = machine.live_events;
  usage.registrations = machine.registered.size();
  return usage;
}

std::uint64_t operations_done() {
  Machine& machine = Machine::get();
  const Guard guard(machine.lock);
  return machine.operations_done;
}

}  // namespace penstock::simulated_cuda
