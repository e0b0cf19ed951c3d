// device/transfer: moves filled slices of pinned slots to one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include <penstock/device/device.hpp>
#include <penstock/device/device_transform.hpp>

#include "src/device/device_augmentation.hpp"
#include "src/device/slice_digest.hpp"
#include "src/device/slice_work.hpp"
#include "src/staging/host_memory.hpp"
#include "src/staging/ring.hpp"

namespace penstock::device {

/// A DeviceTransform, and where it finds and leaves its bytes.
struct PlacedDeviceTransform {
  DeviceTransform transform;
  std::size_t input = 0;   ///< offset of the images in a slice
  std::size_t rows = 0;    ///< offset of their DeviceTransformRows in a slice
  std::size_t output = 0;  ///< offset in a slice's transformed bytes
  /// What comes before it on a GPU, with the offsets of its programs and passes in a slice and of its scratch memory.
  std::optional<DeviceAugmentation> augmentation{};
  std::size_t programs = 0;
  std::size_t passes = 0;
  std::size_t scratch = 0;
};

/// Of each device transform of a slice, in their order: how its augmentation's passes are grouped.
using PassGroups = std::vector<std::vector<augment::PassGroup>>;

/// What a device did when, in nanoseconds of penstock::now_ns().
struct DeviceSpan {
  enum class Work : std::uint8_t { copy, decode, device_transform };
  Work work = Work::copy;
  std::uint64_t step = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

struct TransferPlan {
  std::size_t slots = 1;
  std::size_t slice_bytes = 0;
  std::size_t transformed_bytes = 0;  ///< for what the device transforms of one slice make
  std::size_t scratch_bytes = 0;      ///< of a GPU, for augmentations; one for all slots
  std::size_t work_bytes = 0;         ///< of a GPU, for SliceWork; one for all slots
  std::size_t work_flags = 0;         ///< the most flags that a SliceWork has
  /// For each form that slices may have, as many of the same kind; none: no device transforms.
  std::vector<std::vector<PlacedDeviceTransform>> transforms{};
  /// What is hashed of a slice, for each form; none: no digests.
  std::vector<DigestPlan> digests{};
  /// Told of what a GPU did, later, on any thread; must not throw. Empty: nothing is timed.
  std::function<void(const DeviceSpan&)> on_span{};
};

/// A filled part of a staging slot.
struct FilledSlice {
  std::shared_ptr<staging::StagingLease> slot;
  std::span<std::byte> bytes;
  std::uint64_t rows = 0;
  std::uint64_t samples = 0;  ///< of the rows: those that digests are of; they come first
  std::uint64_t step = 0;
  std::size_t form = 0;                     ///< of TransferPlan::transforms and digests
  PassGroups groups{};                      ///< what drawing the slice's augmentations gave
  std::shared_ptr<const SliceWork> work{};  ///< done before anything else; null: nothing. On GPUs
};

/// One replica's slice of a batch, on its device. Destroying it makes its memory reusable: on a
/// CUDA device as soon as every stream that waited on it has finished what it was given until then.
///
/// Owns  its device memory; on a host device a share of the staging slot.
class DeviceSlice {
 public:
  virtual ~DeviceSlice() = default;

  /// Device memory; on a host device the part of the slot, once it has arrived.
  [[nodiscard]] virtual std::byte* data() const noexcept = 0;
  /// What the device transforms make of it; null without any. On a host device the threads that fill the slot write
  /// to it, from reserve() on.
  [[nodiscard]] virtual std::byte* transformed() const noexcept = 0;
  /// Makes `stream` wait until the slice has arrived and is transformed. The host does not wait.
  ///
  /// Stream  `stream` must live as long as this slice. On a host device nothing happens.
  /// Errors  CudaError
  virtual void wait_on(StreamHandle stream) = 0;
  /// Queues a copy of `from`, which lies in this slice, to the caller's own memory on the device.
  ///
  /// Stream  on `stream`, behind wait_on; on a host device it is done on return
  /// Errors  CudaError
  virtual void copy_to(void* destination, std::span<const std::byte> from, StreamHandle stream) = 0;
  /// Lets the host wait until it has arrived and is transformed: for tests and host-side readers.
  ///
  /// Errors  as reserve()
  virtual void synchronize() = 0;
};

/// Moves filled slots to one device.
///
/// Threads  any number of threads; separate transfers are independent.
class Transfer {
 public:
  virtual ~Transfer() = default;

  /// Throws if the device can no longer be used. What waits for a place calls it now and then: a lost device returns none.
  ///
  /// Errors  CudaError
  virtual void check_health() {}
  /// Waits for the SliceWork that was queued, and looks at its flags.
  ///
  /// Errors  Error      what SliceWork::check says
  ///         CudaError  the device is lost
  virtual void check_work() {}
  /// What was queued until now is not looked at any more: another run begins.
  virtual void forget_work() {}
  /// Waits for a free place on the device; none when `stop` was requested first.
  ///
  /// Errors  CudaError  the device is lost
  ///         Error      what SliceWork::check says of the slice that lay there before
  [[nodiscard]] virtual std::shared_ptr<DeviceSlice> reserve(std::stop_token stop) = 0;
  /// Queues the copy of `filled` into a reserved slice, and returns without waiting.
  ///
  /// Stream  the transfer's own copy stream, behind the last readers of that place; SliceWork on one of its own
  /// Owns    a share of the slot until the copy has completed; on a host device until the slice is
  ///         gone
  /// Errors  CudaError  the copy could not be queued
  virtual void enqueue(DeviceSlice& slice, FilledSlice filled) = 0;
  /// To be called after enqueue(): queues the device transforms, which run after the copy. Does nothing on a host device: the
  /// threads that fill its rows transform them.
  ///
  /// Stream  a stream of its own, so that it overlaps with the next copy; or the consumer's, where its result is not
  ///         hashed
  /// Errors  CudaError
  virtual void transform(DeviceSlice& slice) = 0;
  /// To be called after transform(): queues the hashing of what the plan says, as it lies on the device; on a host device it is
  /// done on return. Null where the plan says nothing.
  ///
  /// Stream  a stream of its own, behind the copy and the device transforms; the next copy into that place waits for it
  /// Errors  CudaError
  [[nodiscard]] virtual std::shared_ptr<PendingDigests> digest(DeviceSlice& slice) = 0;
};

/// A transfer with room for `plan.slots` slices on `device`, allocated here and never again.
///
/// Errors  CudaError  the device cannot be used; says whether the build, the driver or the GPU is
///                    missing
[[nodiscard]] std::unique_ptr<Transfer> open_transfer(const Device& device, TransferPlan plan);

/// Pins host memory for copies to every CUDA device, by way of `device`, which is in use already; nothing where that is a
/// host device. Once for all of it.
///
/// Errors  CudaError  the system refuses to pin that much
void pin_host_memory(staging::HostMemory& memory, const Device& device);

}  // namespace penstock::device
