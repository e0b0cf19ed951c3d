// testing/simulated_cuda/kernel: a kernel that is running, as its code sees it, and how one is started.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <cuda_runtime_api.h>

namespace penstock::simulated_cuda {

/// Of the thread whose code is running. There is one executor, and so one of these.
struct KernelContext {
  dim3 grid;
  dim3 block;
  uint3 block_index;
  uint3 thread_index;
  std::byte* dynamic_shared = nullptr;  // of the block
};
extern KernelContext kernel_context;

/// Queues a kernel: `thread` is called once for each thread of each block, with kernel_context set. Blocks come in any
/// order; those of kernels in other streams may come in between. A block's threads are fibres: they wait for each other
/// at barriers.
///
/// `__shared__` variables are the kernel's own static memory, which blocks use one after another: a kernel that has
/// some may not sleep. ThreadSanitizer is told of each by name, in thread_sanitizer.txt.
cudaError_t launch(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes,
                   cudaStream_t stream, std::function<void()> thread);
/// Queues a function that runs as a whole: what Thrust does on a device.
cudaError_t enqueue(const char* name, cudaStream_t stream, std::function<void()> work);

// What the built-in functions do. In a kernel only.
void synchronize_threads();
void sleep(unsigned nanoseconds);
/// The value that each lane of the warp gave, when all in `mask` have given theirs.
const std::uint64_t* exchange_in_warp(unsigned mask, std::uint64_t value);
unsigned lane();

}  // namespace penstock::simulated_cuda
