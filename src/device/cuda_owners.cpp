#include "src/device/cuda_owners.hpp"

#include <chrono>
#include <cstdint>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/device/cuda_reaper.hpp"

namespace penstock::device {

void check(cudaError_t status, std::source_location where) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // so that the next call does not report this error again
  throw CudaError(status, fmt::format("CUDA: {} ({}) in {}, {}:{}", cudaGetErrorString(status),
                                      cudaGetErrorName(status), where.function_name(),
                                      where.file_name(), where.line()));
}

namespace {

// A function of the driver, which the runtime finds; nullptr where it has none of that name.
template <class Function>
Function driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  constexpr unsigned kSince = 7000;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &function, kSince, cudaEnableDefault, &found);
#else
  const cudaError_t status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  if (status == cudaSuccess && function != nullptr) return reinterpret_cast<Function>(function);
  (void)cudaGetLastError();
  return nullptr;
}

// The thread's context. Going back to a device by cudaSetDevice would make one there, of some hundred megabytes, on a
// thread whose device was 0 only because nothing had been said. CUresult is an int.
using GetContext = int (*)(void** context);
using SetContext = int (*)(void* context);

GetContext get_context() {
  static const auto function = driver_function<GetContext>("cuCtxGetCurrent");
  return function;
}
SetContext set_context() {
  static const auto function = driver_function<SetContext>("cuCtxSetCurrent");
  return function;
}

}  // namespace

CurrentDevice::CurrentDevice(int index) {
  check(cudaThreadExchangeStreamCaptureMode(&mode_));
  try {
    check(cudaGetDevice(&previous_));
    if (previous_ == index) return;
    if (get_context() != nullptr && get_context()(&context_) != 0) context_ = nullptr;
    check(cudaSetDevice(index));
    changed_ = true;
  } catch (...) {
    (void)cudaThreadExchangeStreamCaptureMode(&mode_);
    throw;
  }
}

CurrentDevice::~CurrentDevice() {
  if (changed_) {
    if (set_context() != nullptr)
      (void)set_context()(context_);
    else
      (void)cudaSetDevice(previous_);
  }
  (void)cudaThreadExchangeStreamCaptureMode(&mode_);
}

bool is_capturing(cudaStream_t stream) {
  // The legacy stream cannot; asking could end the capture of another.
  if (stream == nullptr || stream == cudaStreamLegacy) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

namespace {

// What a query says.
bool is_ready(cudaError_t status) {
  if (status == cudaErrorNotReady) {
    (void)cudaGetLastError();  // or the next launch would report it as its own
    return false;
  }
  check(status);
  return true;
}

}  // namespace

CudaStream::CudaStream(int device) : device_(device) {
  const CurrentDevice current(device);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

CudaStream::~CudaStream() {
  if (stream_ == nullptr) return;
  try {
    const CurrentDevice current(device_);
    (void)cudaStreamDestroy(stream_);
  } catch (const CudaError&) {
    // The device is lost, and the stream with it.
  }
}

bool CudaStream::is_over() const {
  const CurrentDevice current(device_);
  return is_ready(cudaStreamQuery(stream_));
}

CudaEvent::CudaEvent(int device, Timing timing) : device_(device) {
  const CurrentDevice current(device);
  check(cudaEventCreateWithFlags(&event_,
                                 timing == Timing::on ? cudaEventDefault : cudaEventDisableTiming));
}

CudaEvent::~CudaEvent() {
  if (event_ == nullptr) return;
  try {
    const CurrentDevice current(device_);
    (void)cudaEventDestroy(event_);
  } catch (const CudaError&) {
    // The device is lost, and the event with it.
  }
}

bool CudaEvent::is_over() const {
  const CurrentDevice current(device_);
  return is_ready(cudaEventQuery(event_));
}

DeviceMemory::DeviceMemory(int device, std::size_t bytes) : device_(device) {
  const CurrentDevice current(device);
  void* data = nullptr;
  std::uint64_t frees = count_of_frees();
  cudaError_t status = cudaMalloc(&data, bytes);
  // Loaders that are gone may still have memory there.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (bool more = true; status == cudaErrorMemoryAllocation && more;) {
    (void)cudaGetLastError();
    more = wait_for_a_free(frees, deadline);
    frees = count_of_frees();
    status = cudaMalloc(&data, bytes);
  }
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
  if (data_ == nullptr) return;
  try {
    const CurrentDevice current(device_);
    (void)cudaFree(data_);
  } catch (const CudaError&) {
    // The device is lost, and its memory with it.
  }
}

}  // namespace penstock::device
