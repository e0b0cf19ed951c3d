// sync/device/cuda_kernels: arithmetic on device memory. No fmt and no host headers of ours behind it, so
// that nvcc has little to compile.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include <penstock/core/tensor.hpp>
#include <penstock/sync/communicator.hpp>

#include "src/sync/collectives/reduction.hpp"

namespace penstock::sync {

/// A gradient's place in a packed buffer. On the device, in ascending order of `begin`.
struct Segment {
  std::byte* data;
  std::uint64_t begin;  // elements
};

/// As move_elements(). Where `rows` is not null, it is a device's number to divide by, besides.
void cuda_move(const std::byte* from, DType from_dtype, std::byte* to, DType to_dtype,
               std::size_t count, const Move& how, const std::uint64_t* rows, cudaStream_t stream);
/// The same from all segments into `packed`, in one kernel, and back.
void cuda_pack(const Segment* segments, std::size_t segment_count, DType dtype, std::byte* packed,
               DType packed_dtype, std::size_t count, const Move& how, const std::uint64_t* rows,
               cudaStream_t stream);
void cuda_unpack(const std::byte* packed, DType packed_dtype, const Segment* segments,
                 std::size_t segment_count, DType dtype, std::size_t count, const Move& how,
                 const std::uint64_t* rows, cudaStream_t stream);
/// out[i] = op over pieces[k * stride + i], k in ascending order, of 16-bit floats in f32.
void cuda_reduce_pieces(const std::byte* pieces, std::uint32_t piece_count, std::size_t stride,
                        std::byte* out, std::size_t count, DType dtype, ReduceOp op,
                        std::uint64_t ranks, cudaStream_t stream);
void cuda_set(std::uint64_t* place, std::uint64_t value, cudaStream_t stream);

/// Errors  std::invalid_argument  a host device
///         CudaError              it cannot be used
void require_cuda(const Device& device);

}  // namespace penstock::sync
