// What the driver says of the GPUs there are.
#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <sys/mman.h>

#include <penstock/core/error.hpp>
#include <penstock/device/device.hpp>

#include "src/device/cuda_owners.hpp"
#include "src/device/cuda_transfer.hpp"

namespace penstock {

int gpu_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count;
  (void)cudaGetLastError();
  if (status == cudaErrorNoDevice) return 0;
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  if (status == cudaErrorInsufficientDriver && driver == 0) return 0;  // there is none
  std::string remedy = "nvidia-smi may say more";
  if (status == cudaErrorInsufficientDriver)
    remedy = fmt::format(
        "the driver is of CUDA {}.{}, and this program needs {}.{}: update the driver",
        driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  if (status == cudaErrorSystemNotReady)
    remedy = "machines with NVSwitch need nvidia-fabricmanager: is it running?";
  if (status == cudaErrorInitializationError)
    remedy = "a process that was forked cannot use CUDA where its parent did: start it by spawn";
  throw CudaError(
      status,
      fmt::format("the GPUs of this machine cannot be used: {} ({}); {}; host devices need no GPU",
                  cudaGetErrorString(status), cudaGetErrorName(status), remedy));
}

std::optional<int> numa_node(const Device& device) {
  std::array<char, 32> bus{};
  if (device.kind != Device::Kind::cuda) return std::nullopt;
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
  const int count = gpu_count();
  if (count == 0)
    throw CudaError(
        cudaErrorNoDevice,
        fmt::format("cuda:{} cannot be used: there is no NVIDIA driver, or it finds no GPU (is "
                    "CUDA_VISIBLE_DEVICES empty?); use host devices here",
                    index));
  if (index >= count)
    throw CudaError(cudaErrorInvalidDevice,
                    fmt::format("cuda:{} cannot be used: this machine has {} GPU{}, cuda:0{}",
                                index, count, count == 1 ? "" : "s",
                                count == 1 ? "" : fmt::format(" to cuda:{}", count - 1)));
}

std::shared_ptr<void> pin_host_memory(std::span<std::byte> bytes, int index) {
  const CurrentDevice current(index);
  check(cudaHostRegister(bytes.data(), bytes.size(), cudaHostRegisterPortable));
  // A forked process must not share these pages: when this one writes next it would get others than the device reads.
  // Newer kernels (5.12) copy them all at the fork instead. The driver's own pinned memory is kept from children, too.
  (void)madvise(bytes.data(), bytes.size(), MADV_DONTFORK);
  return {bytes.data(), [index](void* data) {
            try {
              const CurrentDevice unpinning(index);
              (void)cudaHostUnregister(data);
            } catch (const CudaError&) {
              // The device is lost; the process's end unpins what is left.
            }
          }};
}

}  // namespace device
}  // namespace penstock
