// Kernels that use what kernels can use.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace penstock::simulation_test {

/// sums[b] = the sum of block b's 256 values, by shared memory and barriers.
void block_sums(const std::uint32_t* values, std::uint32_t blocks, std::uint32_t* sums,
                cudaStream_t stream);
/// sums[w] = the sum of warp w's 32 values, by shuffles; ballots[w] has a bit for each odd value.
void warp_sums(const std::uint32_t* values, std::uint32_t warps, std::uint32_t* sums,
               std::uint32_t* ballots, cudaStream_t stream);
/// out[thread of the whole grid] = its indices, packed.
void write_indices(dim3 grid, dim3 block, std::uint64_t* out, cudaStream_t stream);
/// to[0] = from[0] + 1, after `microseconds`.
void slow_increment(std::uint32_t* to, const std::uint32_t* from, unsigned microseconds,
                    cudaStream_t stream);
/// A barrier that every second thread of a warp passes by, in a warp exchange.
void broken_exchange(cudaStream_t stream);

}  // namespace penstock::simulation_test
