// Stands in for cuda_transfer.cpp in a build without CUDA.
#include <penstock/core/error.hpp>

#include "src/device/cuda_transfer.hpp"

namespace penstock {

int gpu_count() noexcept { return 0; }

namespace detail {

namespace {
constexpr int kErrorNoDevice = 100;  // cudaErrorNoDevice
}

std::unique_ptr<Transfer> open_cuda_transfer(int index, std::size_t, std::size_t) {
  throw CudaError(kErrorNoDevice,
                  "cuda:" + std::to_string(index) +
                      " cannot be used: penstock was built without CUDA; build it where "
                      "nvcc is on the PATH, or use host devices");
}

std::shared_ptr<void> pin_host_memory(std::span<std::byte>) { return nullptr; }

}  // namespace detail
}  // namespace penstock
