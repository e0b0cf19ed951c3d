// device/transfer: moves filled slices of pinned slots to one device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>

#include <penstock/device/device.hpp>
#include <penstock/device/stream.hpp>
#include <penstock/staging/host_memory.hpp>
#include <penstock/staging/ring.hpp>

namespace penstock {

/// One replica's slice of a batch, on its device. Destroying it makes its memory reusable: on a
/// CUDA device as soon as every stream that waited on it has finished what it was given until then.
///
/// Owns  its device memory; on a host device a share of the staging slot.
class DeviceSlice {
 public:
  virtual ~DeviceSlice() = default;

  /// Device memory, or host memory on a host device.
  [[nodiscard]] virtual std::byte* data() const noexcept = 0;
  /// Makes `stream` wait until the slice has arrived. The host does not wait.
  ///
  /// Stream  `stream` must live as long as this slice. On a host device nothing happens.
  /// Errors  CudaError
  virtual void wait_on(StreamHandle stream) = 0;
  /// Whether it has arrived. Does not wait.
  [[nodiscard]] virtual bool arrived() const = 0;
  /// Lets the host wait until it has arrived: for tests and for host-side readers.
  virtual void synchronize() const = 0;
};

/// Moves filled slots to one device.
///
/// Threads  any number of threads; separate transfers are independent.
class Transfer {
 public:
  virtual ~Transfer() = default;

  /// Waits for a free place on the device; none when `stop` was requested first.
  [[nodiscard]] virtual std::shared_ptr<DeviceSlice> reserve(std::stop_token stop) = 0;
  /// Queues the copy of `filled`, a part of `slot`, into a reserved slice, and returns without
  /// waiting.
  ///
  /// Stream  all work goes to the transfer's own copy stream, behind the last readers of that place
  /// Owns    a share of `slot` until the copy has completed; on a host device until the slice is
  /// gone Errors  CudaError  the copy could not be queued
  virtual void enqueue(DeviceSlice& slice, std::shared_ptr<StagingLease> slot,
                       std::span<std::byte> filled) = 0;
  /// Memory held on the device, for the loader's budget; 0 on a host device.
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept = 0;
};

/// A transfer with room for `slots` slices of `slice_bytes` on `device`, allocated here and never
/// again.
///
/// Errors  CudaError  the device cannot be used; says whether the build, the driver or the GPU is
/// missing
[[nodiscard]] std::unique_ptr<Transfer> open_transfer(const Device& device, std::size_t slots,
                                                      std::size_t slice_bytes);

/// Pins host memory for copies to every CUDA device, where there is one; once for all of it.
///
/// Errors  CudaError  the system refuses to pin that much
void pin(HostMemory& memory);

}  // namespace penstock
