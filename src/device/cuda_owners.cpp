#include "src/device/cuda_owners.hpp"

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::detail {

void check(cudaError_t status, std::source_location where) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // so that the next call does not report this error again
  throw CudaError(status, fmt::format("CUDA: {} ({}) in {}, {}:{}", cudaGetErrorString(status),
                                      cudaGetErrorName(status), where.function_name(),
                                      where.file_name(), where.line()));
}

CurrentDevice::CurrentDevice(int index) {
  check(cudaGetDevice(&previous_));
  check(cudaSetDevice(index));
}

CurrentDevice::~CurrentDevice() { (void)cudaSetDevice(previous_); }

CudaStream::CudaStream(int device) : device_(device) {
  const CurrentDevice current(device);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

CudaStream::~CudaStream() {
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

CudaEvent::CudaEvent(int device, Timing timing) : device_(device) {
  const CurrentDevice current(device);
  check(cudaEventCreateWithFlags(&event_,
                                 timing == Timing::on ? cudaEventDefault : cudaEventDisableTiming));
}

CudaEvent::~CudaEvent() {
  if (event_ != nullptr) (void)cudaEventDestroy(event_);
}

DeviceMemory::DeviceMemory(int device, std::size_t bytes) : device_(device) {
  const CurrentDevice current(device);
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw CudaError(status,
                    fmt::format("cuda:{} has no {:.1f} MiB left for batches: lower the batch or "
                                "the depth",
                                device, static_cast<double>(bytes) / (1 << 20)));
  }
  check(status);
  data_ = static_cast<std::byte*>(data);
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) (void)cudaFree(data_);
}

}  // namespace penstock::detail
