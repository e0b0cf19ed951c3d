#include "src/device/transfer.hpp"

#include <utility>

#include "src/device/cuda_transfer.hpp"
#include "src/device/host_transfer.hpp"

namespace penstock {

std::unique_ptr<Transfer> open_transfer(const Device& device, TransferPlan plan) {
  if (device.kind == Device::Kind::cuda)
    return device::open_cuda_transfer(device.index, std::move(plan));
  return device::open_host_transfer(std::move(plan));
}

void pin(HostMemory& memory) {
  if (gpu_count() > 0 && !memory.bytes().empty())
    memory.keep(device::pin_host_memory(memory.bytes()));
}

}  // namespace penstock
