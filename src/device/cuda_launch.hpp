// device/cuda_launch: how kernels and bulk work are queued. For .cu files only; these also compile as C++, against the
// simulated runtime of testing/simulated_cuda.
#pragma once

#include <cstddef>
#include <type_traits>

#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include "src/device/cuda_owners.hpp"

namespace penstock::device {

/// Queues a kernel. Errors that the caller's own calls have left behind are not taken for this one's.
///
/// Errors  CudaError  the launch failed
template <class... Parameters>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, const std::type_identity_t<Parameters>&... arguments) {
#ifdef PENSTOCK_SIMULATED_CUDA
  check(simulated_cuda::launch("a kernel", grid, block, shared_bytes, stream,
                               [=] { kernel(arguments...); }));
#else
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, arguments...));
#endif
}

/// Queues op(0) to op(count - 1), in any order.
///
/// Errors  CudaError  the launch failed
template <class Op>
void bulk(std::size_t count, const Op& op, cudaStream_t stream) {
  if (count == 0) return;
  const thrust::counting_iterator<std::size_t> first(0);
#ifdef PENSTOCK_SIMULATED_CUDA
  check(simulated_cuda::enqueue("bulk work", stream,
                                [=] { thrust::for_each_n(thrust::cpp::par, first, count, op); }));
#else
  (void)cudaGetLastError();  // Thrust would throw the caller's
  try {
    thrust::for_each_n(thrust::cuda::par_nosync.on(stream), first, count, op);
  } catch (const thrust::system_error& error) {
    check(static_cast<cudaError_t>(error.code().value()));
    throw;
  }
#endif
}

}  // namespace penstock::device
