// What the driver says of the GPUs there are.
#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/device/device.hpp>

#include "src/device/cuda_owners.hpp"
#include "src/device/cuda_transfer.hpp"

namespace penstock {

int gpu_count() noexcept {
  int count = 0;  // stays as it is when there is no driver
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    (void)cudaGetLastError();
    return 0;
  }
  return count;
}

std::optional<int> numa_node(const Device& device) {
  std::array<char, 32> bus{};
  if (device.kind != Device::Kind::cuda || device.index >= gpu_count()) return std::nullopt;
  if (cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device.index) !=
      cudaSuccess) {
    (void)cudaGetLastError();
    return std::nullopt;
  }
  std::string name(bus.data());
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::ifstream file("/sys/bus/pci/devices/" + name + "/numa_node");
  int node = -1;  // what the kernel writes where there is no choice
  return file >> node && node >= 0 ? std::optional(node) : std::nullopt;
}

namespace device {

void require_device(int index) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice ||
      (status == cudaSuccess && count == 0)) {
    (void)cudaGetLastError();
    throw CudaError(
        status == cudaSuccess ? cudaErrorNoDevice : status,
        fmt::format("cuda:{} cannot be used: {}; use host devices here", index,
                    status == cudaErrorInsufficientDriver
                        ? "there is no NVIDIA driver, or it is older than this CUDA needs"
                        : "the driver finds no GPU (is CUDA_VISIBLE_DEVICES empty?)"));
  }
  check(status);
  if (index >= count)
    throw CudaError(cudaErrorInvalidDevice,
                    fmt::format("cuda:{} cannot be used: this machine has {} GPU{}, cuda:0{}",
                                index, count, count == 1 ? "" : "s",
                                count == 1 ? "" : fmt::format(" to cuda:{}", count - 1)));
}

std::shared_ptr<void> pin_host_memory(std::span<std::byte> bytes) {
  check(cudaHostRegister(bytes.data(), bytes.size(), cudaHostRegisterPortable));
  return {bytes.data(), [](void* data) { (void)cudaHostUnregister(data); }};
}

}  // namespace device
}  // namespace penstock
