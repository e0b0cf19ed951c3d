// device/cuda_launch: how kernels are queued. For .cu files only; these also compile as C++, against the
// simulated runtime of testing/simulated_cuda.
#pragma once

#include <cstddef>
#include <type_traits>

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

}  // namespace penstock::device
