// device/cuda_transfer: the CUDA side of a transfer. In a build without CUDA these say so.
#pragma once

#include "src/device/transfer.hpp"

namespace penstock::device {

/// Errors  CudaError  cuda:index cannot be used; says why
void require_device(int index);

[[nodiscard]] std::unique_ptr<Transfer> open_cuda_transfer(int index, TransferPlan plan);

/// A registration for all GPUs, made by way of one; unpins when it is destroyed.
[[nodiscard]] std::shared_ptr<void> pin_host_memory(std::span<std::byte> bytes, int index);

}  // namespace penstock::device
