// device/cuda_bulk: one operation for each of many numbers, by Thrust. For .cu files, as cuda_launch.hpp.
#pragma once

#include <cstddef>

#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include "src/device/cuda_owners.hpp"

namespace penstock::device {

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
