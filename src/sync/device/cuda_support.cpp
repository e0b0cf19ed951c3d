#include "src/sync/device/cuda_support.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "src/device/cuda_owners.hpp"
#include "src/sync/device/cuda_kernels.hpp"

namespace penstock::sync {

void require_cuda(const Device& device) {
  if (device.kind != Device::Kind::cuda)
    throw std::invalid_argument(
        fmt::format("NCCL works on CUDA devices, found {}", device.to_string()));
  const int count = gpu_count();
  if (device.index >= count)
    throw CudaError(cudaErrorInvalidDevice,
                    fmt::format("{} cannot be used: {} GPUs were found here; use host devices, or "
                                "look at the driver and CUDA_VISIBLE_DEVICES",
                                device.to_string(), count));
}

std::shared_ptr<std::byte> cuda_allocate(int device, std::size_t bytes) {
  require_cuda({Device::Kind::cuda, device});
  const device::CurrentDevice current(device);
  const auto memory = std::make_shared<device::DeviceMemory>(device, bytes);
  if (bytes > 0) {
    const device::CudaStream stream(device);
    device::check(cudaMemsetAsync(memory->data(), 0, bytes, stream.get()));
    device::check(cudaStreamSynchronize(stream.get()));
  }
  return {memory, memory->data()};
}

void cuda_copy(int device, std::byte* to, const std::byte* from, std::size_t bytes) {
  const device::CurrentDevice current(device);
  // On the legacy stream, which is where callers without a stream have put their work. From pageable memory a copy returns
  // before the bytes are there, and streams that do not block would not wait for it.
  device::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, nullptr));
  device::check(cudaStreamSynchronize(nullptr));
}

void cuda_move_elements(int device, const std::byte* from, DType from_dtype, std::byte* to,
                        DType to_dtype, std::size_t count, const Move& how, StreamHandle stream) {
  const device::CurrentDevice current(device);
  cuda_move(from, from_dtype, to, to_dtype, count, how, nullptr, stream);
}

void cuda_synchronize(int device, StreamHandle stream) {
  const device::CurrentDevice current(device);
  device::check(cudaStreamSynchronize(stream));
}

}  // namespace penstock::sync
