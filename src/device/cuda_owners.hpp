// device/cuda_owners: move-only owners of CUDA objects. Each knows its device and restores the
// caller's.
#pragma once

#include <cstddef>
#include <source_location>
#include <utility>

#include <cuda_runtime_api.h>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace device {

/// Throws CudaError with CUDA's words and the place when `status` is an error.
void check(cudaError_t status, std::source_location where = std::source_location::current());

/// Makes a device current for a scope; afterwards the thread has the context that it had before, be it none at all. No
/// other device gets a context. Calls in the scope do not disturb a capture of the caller's streams, on whichever thread and in whichever mode it is.
///
/// Errors  CudaError  there is no such device, or it is lost
class CurrentDevice {
 public:
  explicit CurrentDevice(int index);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  void restore() noexcept;

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  void* previous_ = nullptr;  // CUcontext
  bool changed_ = false;
};

/// The device of a stream that was made, not of a default stream.
[[nodiscard]] int device_of_stream(cudaStream_t stream);

/// Whether the stream takes part in a capture.
[[nodiscard]] bool is_capturing(cudaStream_t stream);

/// A stream that does not synchronise with the default stream.
class CudaStream {
 public:
  /// `first`: before what streams of training do, where both could go on: short work, for which a late batch waits.
  enum class Priority : bool { usual, first };
  explicit CudaStream(int device, Priority priority = Priority::usual);
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }
  /// Whether all that was queued is over. Does not wait.
  [[nodiscard]] bool is_over() const;

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

/// An event. Unrecorded events count as completed.
class CudaEvent {
 public:
  /// For the order of streams; for the host, too, which then sleeps while it waits; the same with the time.
  enum class Use : unsigned char { order, wait, timing };
  explicit CudaEvent(int device, Use use = Use::order);
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

/// Device memory, allocated once. The owner that destroys it has waited for what still reads it: waiting for the whole
/// device would end a capture that is going on there.
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

}  // namespace device
}  // namespace penstock
