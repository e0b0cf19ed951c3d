// sync/device/cuda_support: what this room does with CUDA memory. In a build without CUDA these throw.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <penstock/sync/communicator.hpp>

#include "src/sync/collectives/reduction.hpp"

namespace penstock::sync {

/// Zeros at first.
///
/// Errors  CudaError  no room, or the device cannot be used
[[nodiscard]] std::shared_ptr<std::byte> cuda_allocate(int device, std::size_t bytes);
/// To or from the host; waits until they are there.
void cuda_copy(int device, std::byte* to, const std::byte* from, std::size_t bytes);
/// move_elements() on a device; queued on `stream`.
void cuda_move_elements(int device, const std::byte* from, DType from_dtype, std::byte* to,
                        DType to_dtype, std::size_t count, const Move& how, StreamHandle stream);
/// Waits until what was given to `stream` is done.
void cuda_synchronize(int device, StreamHandle stream);

}  // namespace penstock::sync
