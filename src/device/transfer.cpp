#include "src/device/transfer.hpp"

#include <utility>

#include "src/device/cuda_transfer.hpp"
#include "src/device/host_transfer.hpp"

namespace penstock::device {

std::unique_ptr<Transfer> open_transfer(const Device& device, TransferPlan plan) {
  if (device.kind == Device::Kind::cuda) return open_cuda_transfer(device.index, std::move(plan));
  return open_host_transfer(std::move(plan));
}

void pin_host_memory(staging::HostMemory& memory, const Device& device) {
  if (device.kind == Device::Kind::cuda && !memory.bytes().empty())
    memory.keep(pin_host_memory(memory.bytes(), device.index));
}

}  // namespace penstock::device
