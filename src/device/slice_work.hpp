// device/slice_work: what is done to a slice on a GPU before its fields are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <penstock/device/device.hpp>

namespace penstock::device {

/// Work that another room has for a GPU: images that arrive compressed become pixels.
///
/// Threads  immutable; any number of threads.
class SliceWork {
 public:
  virtual ~SliceWork() = default;
  /// Queues it, on the current device.
  ///
  /// slice    on the device, as it was copied; afterwards as others expect it
  /// scratch  TransferPlan::work_bytes of the device, used until the work has run; its first bytes are then the flags
  /// Errors   CudaError
  virtual void enqueue(std::byte* slice, std::byte* scratch, StreamHandle stream) const = 0;
  /// How many flags there are, of 4 bytes each.
  [[nodiscard]] virtual std::size_t flags() const noexcept = 0;
  /// Looks at the flags when the work has run.
  ///
  /// Errors  Error  what went wrong
  virtual void check(std::span<const std::uint32_t> flags) const = 0;
};

}  // namespace penstock::device
