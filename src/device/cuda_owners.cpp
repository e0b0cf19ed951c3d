#include "src/device/cuda_owners.hpp"

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::device {

void check(cudaError_t status, std::source_location where) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // so that the next call does not report this error again
  throw CudaError(status, fmt::format("CUDA: {} ({}) in {}, {}:{}", cudaGetErrorString(status),
                                      cudaGetErrorName(status), where.function_name(),
                                      where.file_name(), where.line()));
}

namespace {

// Whether a device has a context already. Since CUDA 12 cudaSetDevice makes one, of some hundred
// megabytes, which a thread whose device is 0 by default must not leave on GPU 0.
bool is_in_use(int device) noexcept {
  using GetState = int (*)(int device, unsigned* flags, int* active);  // CUresult is an int
  static const auto get_state = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    constexpr unsigned kSince = 7000;
    const cudaError_t status = cudaGetDriverEntryPointByVersion(
        "cuDevicePrimaryCtxGetState", &function, kSince, cudaEnableDefault, &found);
#else
    const cudaError_t status =
        cudaGetDriverEntryPoint("cuDevicePrimaryCtxGetState", &function, cudaEnableDefault, &found);
#endif
    return status == cudaSuccess ? reinterpret_cast<GetState>(function) : nullptr;
  }();
  unsigned flags = 0;
  int active = 0;
  return get_state == nullptr || get_state(device, &flags, &active) != 0 || active != 0;
}

}  // namespace

CurrentDevice::CurrentDevice(int index) {
  check(cudaGetDevice(&previous_));
  if (previous_ == index) return;
  check(cudaSetDevice(index));
  changed_ = true;
}

CurrentDevice::~CurrentDevice() {
  if (changed_ && is_in_use(previous_)) (void)cudaSetDevice(previous_);
}

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

bool CudaEvent::is_over() const {
  // Without the relaxed mode, a global-mode capture of one of the caller's streams would forbid this
  // call on every thread, and would be invalidated by it.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check(cudaThreadExchangeStreamCaptureMode(&mode));
  const cudaError_t status = cudaEventQuery(event_);
  (void)cudaThreadExchangeStreamCaptureMode(&mode);
  if (status == cudaErrorNotReady) {
    (void)cudaGetLastError();  // or the next launch would report it as its own
    return false;
  }
  check(status);
  return true;
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
  if (data_ == nullptr) return;
  try {
    const CurrentDevice current(device_);
    (void)cudaDeviceSynchronize();  // kernels may still read it
    (void)cudaFree(data_);
  } catch (const CudaError&) {
    // The device is lost, and its memory with it.
  }
}

}  // namespace penstock::device
