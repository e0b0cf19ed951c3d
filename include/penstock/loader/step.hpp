// loader/step: what the iterator yields: one global batch's share of this process, part by device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <penstock/core/digest.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/sample_id.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/device.hpp>

namespace penstock {

namespace batch {
class BatchLayout;
}
namespace device {
class DeviceSlice;
}

namespace loader {
struct StepInfo;
}

/// One replica's rows of a global batch, on its device.
///
/// Owns     its slot, for as long as any copy of it lives; it may outlive the loader.
/// Threads  a value; copies may be used on different threads.
class DeviceBatch {
 public:
  DeviceBatch(std::shared_ptr<const loader::StepInfo> info, std::size_t part,
              std::shared_ptr<device::DeviceSlice> slice)
      : info_(std::move(info)), part_(part), slice_(std::move(slice)) {}

  [[nodiscard]] const Device& device() const noexcept;
  /// The replica's number over all processes.
  [[nodiscard]] std::uint32_t replica() const noexcept;
  [[nodiscard]] std::uint64_t step() const noexcept;
  /// Rows, padding included; may be 0 at the end of the data.
  [[nodiscard]] std::uint64_t size() const noexcept;
  /// Sample IDs of the rows, in order; shorter than size() when the batch was padded.
  [[nodiscard]] std::span<const SampleId> samples() const noexcept;

  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept;
  /// One field of all rows, in device memory (host memory on a host device).
  ///
  /// Shapes  [size(), …]
  /// Stream  on a CUDA device call wait_on(s) before reading on s
  /// Errors  std::invalid_argument  there is no such field; names those there are
  [[nodiscard]] TensorView operator[](std::string_view field) const;
  /// Payload over all fields; padding between them is left out.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Makes `stream` wait until this part has arrived; the host does not wait. The memory is reused only when all work that
  /// was queued on `stream` before this batch is destroyed has finished.
  ///
  /// Stream  must outlive this batch. Does nothing on a host device.
  /// Errors  CudaError
  void wait_on(StreamHandle stream) const;
  /// Queues a copy of a field to the caller's memory, for example the static inputs of a training
  /// step that was captured as a CUDA graph. Bytes after a short batch stay unchanged.
  ///
  /// Units   `bytes` of room at `destination`, on this device
  /// Stream  on `stream`, which waits as with wait_on; on a host device it is done on return
  /// Errors  std::invalid_argument  no such field, or too little room; CudaError
  void copy_to(std::string_view field, void* destination, std::size_t bytes,
               StreamHandle stream) const;
  /// Lets the host wait until this part has arrived.
  void synchronize() const;

 private:
  std::shared_ptr<const loader::StepInfo> info_;
  std::size_t part_;
  std::shared_ptr<device::DeviceSlice> slice_;
};

/// One step of training: a DeviceBatch for every device of this process.
///
/// Owns  its parts.
class Step {
 public:
  Step(std::shared_ptr<const loader::StepInfo> info, std::vector<DeviceBatch> parts)
      : info_(std::move(info)), parts_(std::move(parts)) {}

  /// Counted from 0 at the very start, also after a resume.
  [[nodiscard]] std::uint64_t number() const noexcept;
  /// The epoch of the global batch's first sample.
  [[nodiscard]] std::uint32_t epoch() const noexcept;
  /// Samples in the global batch, over all processes.
  [[nodiscard]] std::uint64_t global_samples() const noexcept;
  /// This process's samples, in row order over its parts.
  [[nodiscard]] std::span<const SampleId> samples() const noexcept;
  /// Tolerated faults in this process's rows.
  [[nodiscard]] std::span<const Fault> faults() const noexcept;
  /// Of this process's rows; zero unless LoaderOptions::digest. Waits until CUDA devices have hashed theirs.
  ///
  /// Errors  CudaError  a device is lost
  [[nodiscard]] Digest digest() const;
  /// The same of what device transforms made; zero unless LoaderOptions::digest_transformed.
  ///
  /// Errors  CudaError  a device is lost
  [[nodiscard]] Digest transformed_digest() const;

  /// Number of parts: this process's devices.
  [[nodiscard]] std::size_t size() const noexcept { return parts_.size(); }
  /// Errors  std::out_of_range  there is no such part; says how many there are
  [[nodiscard]] const DeviceBatch& operator[](std::size_t part) const;
  [[nodiscard]] auto begin() const noexcept { return parts_.begin(); }
  [[nodiscard]] auto end() const noexcept { return parts_.end(); }

 private:
  std::shared_ptr<const loader::StepInfo> info_;
  std::vector<DeviceBatch> parts_;
};

}  // namespace penstock
