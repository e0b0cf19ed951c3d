#include "gpu_kernels.hpp"
#include "src/device/cuda_launch.hpp"

namespace {

#ifdef PENSTOCK_SIMULATED_CUDA
__global__ void spin_for(unsigned long long duration) {
  __nanosleep(static_cast<unsigned>(duration));
}
#else
__device__ unsigned long long nanoseconds() {
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin_for(unsigned long long duration) {
  const unsigned long long begin = nanoseconds();
  while (nanoseconds() - begin < duration) {
  }
}
#endif

__global__ void do_nothing() {}

}  // namespace

void launch_nothing(cudaStream_t stream) { penstock::device::launch(do_nothing, 1, 1, 0, stream); }

void spin(double milliseconds, cudaStream_t stream) {
  penstock::device::launch(spin_for, 1, 1, 0, stream,
                           static_cast<unsigned long long>(milliseconds * 1e6));
}
