#include "src/device/cuda_owners.hpp"

#include <array>
#include <atomic>
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

// A function of the driver, which the runtime finds.
template <class Function>
Function driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  constexpr unsigned kSince = 9020;
  check(cudaGetDriverEntryPointByVersion(name, &function, kSince, cudaEnableDefault, &found));
#else
  check(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found));
#endif
  if (function == nullptr)
    throw CudaError(cudaErrorCallRequiresNewerDriver, fmt::format("the driver has no {}", name));
  return reinterpret_cast<Function>(function);
}

// What CUresult says, which is an int; the runtime's codes are the same ones.
void check_driver(int status, std::source_location where = std::source_location::current()) {
  check(static_cast<cudaError_t>(status), where);
}

// The driver's contexts (CUcontext). Most calls of the runtime, cudaSetDevice among them, make a context of some
// hundred megabytes on a thread's device, which is 0 where nothing has been said; these calls make none but the one
// that is asked for, and leave that device as it is.
class Driver {
 public:
  static Driver& get() {
    static Driver driver;
    return driver;
  }

  [[nodiscard]] void* current() const {
    void* context = nullptr;
    check_driver(get_current_(&context));
    return context;
  }
  void set_current(void* context) const { check_driver(set_current_(context)); }

  /// Makes the device's primary context, which the runtime uses.
  [[nodiscard]] void* context_of(int index) {
    if (index < 0 || static_cast<std::size_t>(index) >= primary_.size())
      check(cudaErrorInvalidDevice);
    std::atomic<void*>& known = primary_[static_cast<std::size_t>(index)];
    if (void* const context = known.load()) return context;
    int device = 0;
    void* context = nullptr;
    check_driver(get_device_(&device, index));
    check_driver(retain_(&context, device));  // until the process ends, as the runtime does
    known = context;
    return context;
  }
  [[nodiscard]] int device_of(cudaStream_t stream) const {
    int device = 0;
    void* context = nullptr;
    void* const before = current();
    check_driver(get_stream_context_(stream, &context));
    set_current(context);
    const int status = get_current_device_(&device);
    set_current(before);
    check_driver(status);
    return device;
  }

 private:
  Driver() { check_driver(driver_function<int (*)(unsigned)>("cuInit")(0)); }

  int (*get_current_)(void**) = driver_function<int (*)(void**)>("cuCtxGetCurrent");
  int (*set_current_)(void*) = driver_function<int (*)(void*)>("cuCtxSetCurrent");
  int (*get_current_device_)(int*) = driver_function<int (*)(int*)>("cuCtxGetDevice");
  int (*get_stream_context_)(cudaStream_t, void**) =
      driver_function<int (*)(cudaStream_t, void**)>("cuStreamGetCtx");
  int (*get_device_)(int*, int) = driver_function<int (*)(int*, int)>("cuDeviceGet");
  int (*retain_)(void**, int) = driver_function<int (*)(void**, int)>("cuDevicePrimaryCtxRetain");
  std::array<std::atomic<void*>, 256> primary_{};
};

}  // namespace

CurrentDevice::CurrentDevice(int index) {
  Driver& driver = Driver::get();
  previous_ = driver.current();
  void* const own = driver.context_of(index);
  changed_ = previous_ != own;
  if (changed_) driver.set_current(own);
  try {
    check(cudaThreadExchangeStreamCaptureMode(&mode_));
  } catch (...) {
    restore();
    throw;
  }
}

CurrentDevice::~CurrentDevice() {
  (void)cudaThreadExchangeStreamCaptureMode(&mode_);
  restore();
}

void CurrentDevice::restore() noexcept {
  if (!changed_) return;
  try {
    Driver::get().set_current(previous_);
  } catch (const CudaError&) {
    // Its owner has destroyed it meanwhile.
  }
}

int device_of_stream(cudaStream_t stream) {
#if CUDART_VERSION >= 12080
  int device = 0;
  const cudaError_t status = cudaStreamGetDevice(stream, &device);
  if (status == cudaSuccess) return device;
  (void)cudaGetLastError();
  // A driver of CUDA 12.7 or earlier, which programs of a later CUDA 12 run on.
  if (status != cudaErrorCallRequiresNewerDriver) check(status);
#endif
  return Driver::get().device_of(stream);
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

CudaStream::CudaStream(int device, Priority priority) : device_(device) {
  const CurrentDevice current(device);
  if (priority == Priority::usual) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    return;
  }
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
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

CudaEvent::CudaEvent(int device, Use use) : device_(device) {
  const CurrentDevice current(device);
  unsigned flags = cudaEventDisableTiming;
  if (use == Use::wait) flags |= cudaEventBlockingSync;
  if (use == Use::timing) flags = cudaEventBlockingSync;
  check(cudaEventCreateWithFlags(&event_, flags));
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
                                "the depth, or have PyTorch give back what it keeps for later "
                                "(torch.cuda.empty_cache())",
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
