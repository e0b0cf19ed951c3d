// testing/simulated_cuda/cuda_language: what nvcc gives device code, for .cu files that are compiled as C++. Included
// before everything else in them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime_api.h>

#include "testing/simulated_cuda/kernel.hpp"

#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __launch_bounds__
#undef __shared__
#undef __restrict__
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __restrict__

#define threadIdx (::penstock::simulated_cuda::kernel_context.thread_index)
#define blockIdx (::penstock::simulated_cuda::kernel_context.block_index)
#define blockDim (::penstock::simulated_cuda::kernel_context.block)
#define gridDim (::penstock::simulated_cuda::kernel_context.grid)
#define warpSize 32

inline void __syncthreads() { ::penstock::simulated_cuda::synchronize_threads(); }
inline void __nanosleep(unsigned nanoseconds) { ::penstock::simulated_cuda::sleep(nanoseconds); }
inline void __syncwarp(unsigned mask = ~0U) {
  (void)::penstock::simulated_cuda::exchange_in_warp(mask, 0);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T __ldg(const T* address) {
  return *address;
}

// Addresses in shared memory have 32 bits: they are counted from here.
alignas(1024) inline std::byte simulated_shared_memory[1];
inline std::size_t __cvta_generic_to_shared(const void* address) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address) -
                                    reinterpret_cast<std::uintptr_t>(simulated_shared_memory));
}
inline void* __cvta_shared_to_generic(std::size_t address) {
  return reinterpret_cast<void*>(
      reinterpret_cast<std::uintptr_t>(simulated_shared_memory) +
      static_cast<std::uintptr_t>(static_cast<std::int32_t>(static_cast<std::uint32_t>(address))));
}
// Copies are over at once, and misaligned ones are a fault as on a GPU.
inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes) {
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % bytes != 0)
    std::abort();
  std::memcpy(to, from, bytes);
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(std::size_t) {}

template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  const std::uint64_t* const all = ::penstock::simulated_cuda::exchange_in_warp(mask, word);
  const unsigned lane = ::penstock::simulated_cuda::lane();
  const unsigned begin = lane / static_cast<unsigned>(width) * static_cast<unsigned>(width);
  const unsigned source = begin + static_cast<unsigned>(from) % static_cast<unsigned>(width);
  T result;
  std::memcpy(&result, &all[source], sizeof result);
  return result;
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  return __shfl_sync(mask, value, static_cast<int>(::penstock::simulated_cuda::lane()) ^ lanes,
                     width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const unsigned lane = ::penstock::simulated_cuda::lane();
  const bool inside = lane % static_cast<unsigned>(width) + by < static_cast<unsigned>(width);
  return __shfl_sync(mask, value, static_cast<int>(inside ? lane + by : lane), width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const unsigned lane = ::penstock::simulated_cuda::lane();
  const bool inside = lane % static_cast<unsigned>(width) >= by;
  return __shfl_sync(mask, value, static_cast<int>(inside ? lane - by : lane), width);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const std::uint64_t* const all =
      ::penstock::simulated_cuda::exchange_in_warp(mask, predicate != 0 ? 1 : 0);
  unsigned votes = 0;
  for (unsigned k = 0; k < 32; ++k)
    if ((mask >> k & 1) != 0 && all[k] != 0) votes |= 1U << k;
  return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
inline int __clz(int value) {
  return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<unsigned>(both << (shift & 31) >> 32);
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return result;
}
inline int __ffs(int value) { return __builtin_ffs(value); }

template <class T>
T atomicAdd(T* address, T value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <class T>
T atomicMax(T* address, T value) {
  T seen = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (seen < value && !__atomic_compare_exchange_n(address, &seen, value, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
  return seen;
}
template <class T>
T atomicExch(T* address, T value) {
  return __atomic_exchange_n(address, value, __ATOMIC_RELAXED);
}

using std::max;
using std::min;
