#include "src/device/cuda_launch.hpp"
#include "tests/simulated_cuda/simulated_kernels.hpp"

namespace penstock::simulation_test {

namespace {

constexpr unsigned kThreads = 256;

__global__ void add_up_blocks(const std::uint32_t* values, std::uint32_t* sums) {
  __shared__ std::uint32_t part[kThreads];
  part[threadIdx.x] = values[blockIdx.x * kThreads + threadIdx.x];
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

__global__ void add_up_warps(const std::uint32_t* values, std::uint32_t warps, std::uint32_t* sums,
                             std::uint32_t* ballots) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at / 32 >= warps) return;
  const std::uint32_t own = values[at];
  std::uint32_t sum = own;
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0U, sum, lanes);
  const unsigned odd = __ballot_sync(~0U, static_cast<int>(own & 1));
  const std::uint32_t first = __shfl_sync(~0U, own, 0);
  if (at % 32 == 31) {
    sums[at / 32] = sum;
    ballots[at / 32] = first == values[at - 31] ? odd : 0;
  }
}

__global__ void pack_indices(std::uint64_t* out) {
  const std::uint64_t block =
      blockIdx.x + gridDim.x * (blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z);
  const std::uint64_t thread =
      threadIdx.x + blockDim.x * (threadIdx.y + std::uint64_t{blockDim.y} * threadIdx.z);
  out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] = block << 32 | thread;
}

__global__ void increment_late(std::uint32_t* to, const std::uint32_t* from,
                               unsigned microseconds) {
  for (unsigned slept = 0; slept < microseconds; slept += 10) __nanosleep(10'000);
  to[0] = from[0] + 1;
}

__global__ void exchange_with_half() {
  if (threadIdx.x % 2 == 0) __syncwarp();
}

}  // namespace

void block_sums(const std::uint32_t* values, std::uint32_t blocks, std::uint32_t* sums,
                cudaStream_t stream) {
  device::launch(add_up_blocks, blocks, kThreads, 0, stream, values, sums);
}

void warp_sums(const std::uint32_t* values, std::uint32_t warps, std::uint32_t* sums,
               std::uint32_t* ballots, cudaStream_t stream) {
  device::launch(add_up_warps, (warps * 32 + kThreads - 1) / kThreads, kThreads, 0, stream, values,
                 warps, sums, ballots);
}

void write_indices(dim3 grid, dim3 block, std::uint64_t* out, cudaStream_t stream) {
  device::launch(pack_indices, grid, block, 0, stream, out);
}

void slow_increment(std::uint32_t* to, const std::uint32_t* from, unsigned microseconds,
                    cudaStream_t stream) {
  device::launch(increment_late, 1, 1, 0, stream, to, from, microseconds);
}

void broken_exchange(cudaStream_t stream) { device::launch(exchange_with_half, 1, 32, 0, stream); }

}  // namespace penstock::simulation_test
