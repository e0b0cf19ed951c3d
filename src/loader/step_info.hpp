// loader/step_info: the metadata of a delivered step, shared by its parts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/device/device.hpp>
#include <penstock/source/source.hpp>

#include "src/batch/slicing.hpp"
#include "src/device/slice_digest.hpp"

namespace penstock::loader {

/// One part: which rows of the global batch, for which replica.
struct PartInfo {
  Device device;
  std::uint32_t replica = 0;
  batch::Slice slice;              // rows of the global batch
  std::uint64_t first_sample = 0;  // where its samples begin in StepInfo::samples
  // Where rows go to their homes: which rows its samples are, ascending. Its slice then says only how many there are, and where
  // they stand when all are sorted by their replicas.
  std::vector<std::uint64_t> rows{};

  /// Which row of the global batch a sample of this part is.
  [[nodiscard]] std::uint64_t row_of(std::uint64_t sample) const noexcept {
    return rows.empty() ? slice.first + sample : rows[sample];
  }
  /// Which of its samples a row of the global batch is; none where it is another part's.
  [[nodiscard]] std::optional<std::uint64_t> sample_of(std::uint64_t row) const noexcept;
};

class BatchForm;

struct StepInfo {
  std::shared_ptr<const BatchForm> form;
  std::weak_ptr<const std::vector<SourcePtr>> sources;  // by SampleId::source; what names rows
  std::size_t bucket = 0;                               // whose batch it is; each has a form
  std::uint64_t step = 0;
  std::uint32_t epoch = 0;
  std::uint64_t global_samples = 0;
  std::vector<SampleId> samples;  // this process's, in row order over its parts
  std::vector<PartInfo> parts;
  std::vector<Fault> faults;
  Digest digest;  // of what workers hashed: rows on host devices
  std::vector<std::shared_ptr<device::PendingDigests>> device_digests;

  /// The samples of a part as they were drawn: before others replaced bad ones.
  [[nodiscard]] std::vector<SampleId> original_samples(const PartInfo& part) const;

  /// Waits for the devices' part.
  ///
  /// Errors  CudaError  a device is lost
  [[nodiscard]] device::SliceDigests wait_for_digests() const {
    device::SliceDigests sum{.slice = digest, .transformed = {}};
    for (const auto& pending : device_digests) sum += pending->wait();
    return sum;
  }
};

}  // namespace penstock::loader
