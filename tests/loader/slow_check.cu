#include "src/device/cuda_launch.hpp"
#include "tests/loader/slow_check.hpp"

namespace penstock::testing_support {

namespace {

__device__ void sleep_for(unsigned microseconds) {
  for (unsigned slept = 0; slept < microseconds; ++slept) __nanosleep(1000);
}

// Sleeps, looks, sleeps again, and looks again: a write there in the meantime is caught.
__global__ void check_rows(const std::uint64_t* rows, std::uint64_t count, std::uint64_t first,
                           std::uint64_t size, unsigned microseconds, unsigned long long* wrong) {
  for (int look = 0; look < 2; ++look) {
    if (threadIdx.x == 0) sleep_for(microseconds / 2);
    __syncthreads();
    for (std::uint64_t row = threadIdx.x; row < count; row += blockDim.x) {
      const std::uint64_t number = (first + row) % size;
      const volatile std::uint64_t* at = rows + 2 * row;
      if (at[0] != number || at[1] != number * number) atomicAdd(wrong, 1ULL);
    }
  }
}

}  // namespace

void slow_check(const std::uint64_t* rows, std::uint64_t count, std::uint64_t first,
                std::uint64_t size, unsigned microseconds, unsigned long long* wrong,
                cudaStream_t stream) {
  device::launch(check_rows, 1, 128, 0, stream, rows, count, first, size, microseconds, wrong);
}

}  // namespace penstock::testing_support
