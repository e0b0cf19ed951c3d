// sync/device/device_memory: buffers on any device.
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
[[nodiscard]] std::shared_ptr<std::byte> allocate_on(const Device& device, std::size_t bytes);
/// Between host memory and a device's; waits until the bytes are there.
void copy_to(const Device& device, std::byte* to, std::span<const std::byte> from);
void copy_from(const Device& device, std::span<std::byte> to, const std::byte* from);
/// move_elements() where the memory is. On a CUDA device it is queued on `stream`.
void move_on(const Device& device, const std::byte* from, DType from_dtype, std::byte* to,
             DType to_dtype, std::size_t count, const Move& how, StreamHandle stream);
/// Waits until what was given to `stream` is done.
void synchronize(const Device& device, StreamHandle stream);

/// all_gather of host bytes, by way of the communicator's device.
void gather_bytes(Communicator& communicator, std::span<const std::byte> in,
                  std::span<std::byte> out);

}  // namespace penstock::sync
