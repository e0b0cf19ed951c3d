// Stands in for cuda_transfer.cpp in a build without CUDA.
#include <penstock/core/error.hpp>

#include "src/device/cuda_augmentation.hpp"
#include "src/device/cuda_transfer.hpp"

namespace penstock {

int gpu_count() { return 0; }

namespace {
constexpr int kErrorNoDevice = 100;  // cudaErrorNoDevice
}

namespace device {

std::unique_ptr<Transfer> open_cuda_transfer(int index, TransferPlan) {
  throw CudaError(kErrorNoDevice,
                  "cuda:" + std::to_string(index) +
                      " cannot be used: penstock was built without CUDA; build it where "
                      "nvcc is on the PATH, or use host devices");
}

std::shared_ptr<void> pin_host_memory(std::span<std::byte>, int) { return nullptr; }

void enqueue_passes(const PassImages&, std::span<const augment::PassGroup>, const augment::Pass*,
                    StreamHandle) {
  throw CudaError(kErrorNoDevice, "penstock was built without CUDA");
}

}  // namespace device

std::optional<int> numa_node(const Device&) { return std::nullopt; }

void DeviceTransform::enqueue(const std::byte*, const DeviceTransformRow*, std::uint64_t,
                              std::byte*, StreamHandle) const {
  throw CudaError(kErrorNoDevice,
                  "penstock was built without CUDA: run() transforms images on the host");
}

}  // namespace penstock
