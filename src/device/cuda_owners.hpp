// device/cuda_owners: move-only owners of CUDA objects. Each knows its device and restores the
// caller's.
#pragma once

#include <cstddef>
#include <source_location>
#include <utility>

#include <cuda_runtime_api.h>

namespace penstock::device {

/// Throws CudaError with CUDA's words and the place when `status` is an error.
void check(cudaError_t status, std::source_location where = std::source_location::current());

/// Makes a device current for a scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int index);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

/// A stream that does not synchronise with the default stream.
class CudaStream {
 public:
  explicit CudaStream(int device);
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

/// An event. Unrecorded events count as completed.
class CudaEvent {
 public:
  enum class Timing : bool { off, on };
  explicit CudaEvent(int device, Timing timing = Timing::off);
  ~CudaEvent();
  CudaEvent(CudaEvent&& other) noexcept
      : device_(other.device_), event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&&) = delete;

  [[nodiscard]] cudaEvent_t get() const noexcept { return event_; }
  /// Whether what was recorded is over. Does not wait.
  [[nodiscard]] bool is_over() const;

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

/// Device memory, allocated once. Destroying it waits for the device (cudaFree).
class DeviceMemory {
 public:
  DeviceMemory(int device, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  int device_;
  std::byte* data_ = nullptr;
};

}  // namespace penstock::device
