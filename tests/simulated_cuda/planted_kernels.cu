#include "src/device/cuda_launch.hpp"
#include "tests/simulated_cuda/planted.hpp"

namespace penstock::simulation_test {

namespace {

constexpr unsigned kSleepNs = 1000;

__global__ void add_words(Word* to, const Word* from, std::size_t count, Word add) {
  if (threadIdx.x == 0) __nanosleep(kSleepNs);
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = from[i] + add;
}

__global__ void count_wrong_words(const Word* data, std::size_t count, Word expected,
                                  Count* result) {
  if (threadIdx.x == 0) __nanosleep(kSleepNs);
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    if (data[i] != expected) atomicAdd(result, Count{1});
}

dim3 grid_of(std::size_t count, unsigned threads) {
  return dim3(static_cast<unsigned>((count + threads - 1) / threads));
}

}  // namespace

void add_kernel(Word* to, const Word* from, std::size_t count, Word add, cudaStream_t stream,
                unsigned threads) {
  device::launch(add_words, grid_of(count, threads), dim3(threads), 0, stream, to, from, count,
                 add);
}

void count_wrong_kernel(const Word* data, std::size_t count, Word expected, Count* result,
                        cudaStream_t stream) {
  device::launch(count_wrong_words, grid_of(count, kThreads), dim3(kThreads), 0, stream, data,
                 count, expected, result);
}

}  // namespace penstock::simulation_test
