// Kernels: blocks one after another, threads as fibres. A thread that runs to its end costs a call; one that waits, at a
// barrier or asleep, keeps its fibre, and another runs the threads behind it.
#undef _FORTIFY_SOURCE  // it takes a jump to another stack for a mistake
#include <algorithm>
#include <csetjmp>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "kernel.hpp"
#include "machine.hpp"
#include "sanitizers.hpp"

namespace penstock::simulated_cuda {

KernelContext kernel_context;

namespace {

constexpr std::size_t kStack = 256 << 10;
constexpr unsigned kWarp = 32;
constexpr int kBlocksAtATime = 4;

struct Block;

struct Context {
  ucontext_t made{};
  std::jmp_buf left;
  bool was_left = false;
};

// Sanitizers know swapcontext. It asks the system for the signal mask, which takes most of a fibre's time.
void switch_context(Context& from, Context& to) {
  if (__sanitizer_start_switch_fiber != nullptr || __tsan_switch_to_fiber != nullptr) {
    ::swapcontext(&from.made, &to.made);
    return;
  }
  from.was_left = true;
  if (_setjmp(from.left) != 0) return;
  if (to.was_left) std::longjmp(to.left, 1);
  ::setcontext(&to.made);
}

struct Fiber {
  Fiber() : tsan(create_fiber("kernel threads")) {
    stack = static_cast<std::byte*>(::mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0));
  }
  ~Fiber() {
    destroy_fiber(tsan);
    ::munmap(stack, kStack);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  Context context;
  std::byte* stack = nullptr;
  void* tsan = nullptr;
  void* asan = nullptr;  // its fake stack while it does not run
  bool begun = false;
  Block* block = nullptr;
};

enum class Waits : std::uint8_t { no, barrier, warp, asleep };

struct Thread {
  Fiber* fiber = nullptr;  // set while it waits
  Waits waits = Waits::no;
  std::int64_t wake_ns = 0;
  bool finished = false;
};

// 32 threads that exchange values.
struct Warp {
  std::uint64_t given[kWarp] = {};
  std::uint64_t taken[kWarp] = {};
  unsigned arrived = 0;
  unsigned mask = 0;
};

struct Block {
  const std::function<void()>* body = nullptr;
  KernelContext context;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<std::byte> shared;
  unsigned fresh = 0;  // threads begun so far
  unsigned finished = 0;
  unsigned running = 0;  // which thread
  Stream* stream = nullptr;
  Fiber* fiber = nullptr;  // which fibre
  Context scheduler;
  void* scheduler_tsan = nullptr;
  const void* scheduler_stack = nullptr;
  std::size_t scheduler_stack_bytes = 0;
};

Block* running_block = nullptr;

void set_thread(Block& block, unsigned index) {
  block.running = index;
  kernel_context = block.context;
  const dim3& size = block.context.block;
  kernel_context.thread_index = {index % size.x, index / size.x % size.y,
                                 index / (size.x * size.y)};
}

// From a fibre to the scheduler; back when the scheduler resumes it.
void suspend(Block& block) {
  Fiber& fiber = *block.fiber;
  if (__sanitizer_start_switch_fiber != nullptr)
    __sanitizer_start_switch_fiber(&fiber.asan, block.scheduler_stack, block.scheduler_stack_bytes);
  switch_to_fiber(block.scheduler_tsan, true);
  switch_context(fiber.context, block.scheduler);
  if (__sanitizer_finish_switch_fiber != nullptr)
    __sanitizer_finish_switch_fiber(fiber.asan, &fiber.block->scheduler_stack,
                                    &fiber.block->scheduler_stack_bytes);
}

// Runs fresh threads, one after another.
void fiber_main(unsigned low, unsigned high) {
  auto& fiber = *reinterpret_cast<Fiber*>(std::uintptr_t{low} | std::uintptr_t{high} << 32);
  if (__sanitizer_finish_switch_fiber != nullptr)
    __sanitizer_finish_switch_fiber(nullptr, &fiber.block->scheduler_stack,
                                    &fiber.block->scheduler_stack_bytes);
  for (;;) {
    while (fiber.block->fresh < fiber.block->threads.size()) {
      Block& block = *fiber.block;
      const unsigned index = block.fresh++;
      set_thread(block, index);
      (*block.body)();
      block.threads[index].finished = true;
      ++block.finished;
    }
    Block& block = *fiber.block;
    fiber.block = nullptr;  // idle
    block.fiber = &fiber;
    Fiber& own = fiber;
    if (__sanitizer_start_switch_fiber != nullptr)
      __sanitizer_start_switch_fiber(&own.asan, block.scheduler_stack, block.scheduler_stack_bytes);
    switch_to_fiber(block.scheduler_tsan, true);
    switch_context(own.context, block.scheduler);
    if (__sanitizer_finish_switch_fiber != nullptr)
      __sanitizer_finish_switch_fiber(own.asan, &own.block->scheduler_stack,
                                      &own.block->scheduler_stack_bytes);
  }
}

void resume(Block& block, Fiber& fiber) {
  block.fiber = &fiber;
  fiber.block = &block;
  running_block = &block;
  block.scheduler_tsan = current_fiber();
  void* asan = nullptr;
  if (!fiber.begun) {
    fiber.begun = true;
    ::getcontext(&fiber.context.made);
    fiber.context.made.uc_stack = {.ss_sp = fiber.stack, .ss_flags = 0, .ss_size = kStack};
    fiber.context.made.uc_link = nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(&fiber);
    ::makecontext(&fiber.context.made, reinterpret_cast<void (*)()>(&fiber_main), 2,
                  static_cast<unsigned>(address), static_cast<unsigned>(address >> 32));
  }
  if (__sanitizer_start_switch_fiber != nullptr)
    __sanitizer_start_switch_fiber(&asan, fiber.stack, kStack);
  switch_to_fiber(fiber.tsan, true);
  switch_context(block.scheduler, fiber.context);
  if (__sanitizer_finish_switch_fiber != nullptr)
    __sanitizer_finish_switch_fiber(asan, nullptr, nullptr);
  running_block = nullptr;
}

Fiber& idle_fiber(Stream& stream) {
  for (const auto& own : stream.kernel_fibers)
    if (auto* const fiber = static_cast<Fiber*>(own.get()); fiber->block == nullptr) return *fiber;
  stream.kernel_fibers.push_back(std::make_shared<Fiber>());
  return *static_cast<Fiber*>(stream.kernel_fibers.back().get());
}

// Until all threads have finished (0), or those left are asleep (when the first wakes).
std::int64_t run_block(Block& block) {
  for (;;) {
    if (block.finished == block.threads.size()) return 0;
    const std::int64_t now = now_ns();
    Thread* ready = nullptr;
    std::int64_t wake = 0;
    bool at_barrier = false;
    for (Thread& thread : block.threads) {
      if (thread.finished || thread.fiber == nullptr) continue;
      if (thread.waits == Waits::barrier) at_barrier = true;
      if (thread.waits == Waits::asleep && thread.wake_ns > now) {
        if (wake == 0 || thread.wake_ns < wake) wake = thread.wake_ns;
      } else if (thread.waits == Waits::no || thread.waits == Waits::asleep) {
        ready = &thread;
        break;
      }
    }
    if (ready != nullptr) {
      set_thread(block, static_cast<unsigned>(ready - block.threads.data()));
      ready->waits = Waits::no;
      resume(block, *std::exchange(ready->fiber, nullptr));
    } else if (block.fresh < block.threads.size()) {
      resume(block, idle_fiber(*block.stream));
    } else if (wake != 0) {
      return wake;
    } else if (at_barrier) {
      for (Thread& thread : block.threads)
        if (thread.waits == Waits::barrier) thread.waits = Waits::no;
    } else {
      violation("threads of a warp wait for others that do not come: is the mask right?");
    }
  }
}

void wait_as(Waits waits, std::int64_t wake_ns) {
  Block& block = *running_block;
  Thread& thread = block.threads[block.running];
  thread.waits = waits;
  thread.wake_ns = wake_ns;
  thread.fiber = block.fiber;
  const unsigned own = block.running;
  suspend(block);
  set_thread(block, own);
}

struct Kernel {
  std::function<void()> body;
  dim3 grid;
  dim3 block_size;
  std::size_t shared_bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t next = 0;
  std::uint64_t first = 0;  // which block comes first
  std::unique_ptr<Block> block;
  Stream* stream = nullptr;

  Progress step() {
    for (int k = 0; k < kBlocksAtATime; ++k) {
      if (!block) {
        if (next == blocks) return {};
        begin((first + next++) % blocks);
      }
      if (const std::int64_t wake = run_block(*block); wake != 0)
        return {.done = false, .not_before = wake};
      block.reset();
    }
    return {.done = next == blocks};
  }

  void begin(std::uint64_t index) {
    block = std::make_unique<Block>();
    block->body = &body;
    block->stream = stream;
    block->shared.resize(shared_bytes);
    block->context = {
        .grid = grid,
        .block = block_size,
        .block_index = {static_cast<unsigned>(index % grid.x),
                        static_cast<unsigned>(index / grid.x % grid.y),
                        static_cast<unsigned>(index / (std::uint64_t{grid.x} * grid.y))},
        .thread_index = {},
        .dynamic_shared = block->shared.data()};
    const std::size_t threads = std::size_t{block_size.x} * block_size.y * block_size.z;
    block->threads.resize(threads);
    block->warps.resize((threads + kWarp - 1) / kWarp);
  }
};

cudaError_t submit_kernel(const char* name, cudaStream_t handle,
                          const std::function<std::function<Progress()>(Stream&)>& make) {
  return call(name, Needs::context, [&](Machine& machine) {
    const cudaError_t fault = machine.fault_of("kernel");
    if (fault == cudaErrorInvalidConfiguration || fault == cudaErrorLaunchOutOfResources)
      return fault;
    Stream& stream = stream_of(machine, handle, name, false);
    const int device = this_thread().device();
    if (stream.device != device) return cudaErrorInvalidResourceHandle;
    Node node{.name = name, .make = {}, .after = {}, .opens = std::uint64_t{1} << device};
    if (fault != cudaSuccess) {
      node.make = [&machine, device, fault] {
        return [&machine, device, fault] {
          const Guard guard(machine.lock);
          machine.lose(device, fault);
          return Progress{};
        };
      };
    } else {
      node.make = [make, &stream] { return make(stream); };
    }
    return submit(machine, stream, std::move(node));
  });
}

}  // namespace

void forget_fibers(Stream& stream) { stream.kernel_fibers.clear(); }

std::function<Progress()> on_own_stack(Stream& stream, std::function<void()> work) {
  auto kernel = std::make_shared<Kernel>();
  kernel->body = std::move(work);
  kernel->grid = kernel->block_size = dim3(1);
  kernel->blocks = 1;
  kernel->stream = &stream;
  return [kernel] { return kernel->step(); };
}

cudaError_t launch(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes,
                   cudaStream_t stream, std::function<void()> thread) {
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (blocks == 0 || threads == 0 || threads > 1024 || grid.y > 65535 || grid.z > 65535 ||
      shared_bytes > 48 << 10)
    return end_call(cudaErrorInvalidConfiguration);
  return submit_kernel(name, stream, [=, seed = Machine::get().seed](Stream& on) {
    auto kernel = std::make_shared<Kernel>();
    kernel->body = thread;
    kernel->grid = grid;
    kernel->block_size = block;
    kernel->shared_bytes = shared_bytes;
    kernel->blocks = blocks;
    kernel->first = (seed + on.issued) * 0x9E3779B97F4A7C15U % blocks;
    kernel->stream = &on;
    return std::function<Progress()>([kernel] { return kernel->step(); });
  });
}

cudaError_t enqueue(const char* name, cudaStream_t stream, std::function<void()> work) {
  return submit_kernel(name, stream, [=](Stream& on) { return on_own_stack(on, work); });
}

void synchronize_threads() { wait_as(Waits::barrier, 0); }

void sleep(unsigned nanoseconds) { wait_as(Waits::asleep, now_ns() + nanoseconds); }

unsigned lane() { return running_block->running % kWarp; }

const std::uint64_t* exchange_in_warp(unsigned mask, std::uint64_t value) {
  Block& block = *running_block;
  Warp& warp = block.warps[block.running / kWarp];
  const unsigned own = block.running % kWarp;
  if ((mask >> own & 1) == 0)
    violation("a thread exchanges values in its warp, and is not in its own mask");
  const std::size_t first = std::size_t{block.running / kWarp} * kWarp;
  const std::size_t lanes = std::min<std::size_t>(kWarp, block.threads.size() - first);
  const unsigned there = lanes == kWarp ? ~0U : (1U << lanes) - 1;
  if (warp.arrived == 0) warp.mask = mask;
  if (warp.mask != mask) violation("threads of a warp exchange values with different masks");
  warp.given[own] = value;
  warp.arrived |= 1U << own;
  if (warp.arrived == (mask & there)) {
    std::copy_n(warp.given, kWarp, warp.taken);
    warp.arrived = 0;
    for (std::size_t k = 0; k < lanes; ++k)
      if (block.threads[first + k].waits == Waits::warp) block.threads[first + k].waits = Waits::no;
  } else {
    wait_as(Waits::warp, 0);
  }
  return warp.taken;
}

}  // namespace penstock::simulated_cuda
