// loader/in_flight: one batch on its way from the numbers to the consumer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "src/batch/layout.hpp"
#include "src/device/transfer.hpp"
#include "src/loader/batch_form.hpp"
#include "src/loader/step_info.hpp"
#include "src/staging/ring.hpp"

namespace penstock::loader {

struct InFlight {
  std::shared_ptr<StepInfo> info = std::make_shared<StepInfo>();
  std::shared_ptr<staging::StagingLease> slot;  // until it is published
  /// Where its rows go, until it is published: a slice for each part, laid out alike.
  std::span<std::byte> memory;
  const batch::BatchLayout* layout = nullptr;
  std::vector<std::shared_ptr<device::DeviceSlice>> slices;  // one per part

  std::vector<std::atomic<std::uint8_t>> mix_inputs_ready;  // of each sample: see HostPart

  /// Of each sample, by BatchForm::packable(): 1 where the row is a packed JPEG, which the GPU that it goes to decodes: the
  /// compressed bytes lie in the place of the pixels. It has nothing to do with pack(), whose rows are tokens.
  std::vector<std::uint8_t> packed;

  // Under the engine's mutex.
  bool complete = false;     // every sample is there; on GPUs it may wait for its turn
  bool done = false;         // published, or failed
  std::exception_ptr error;  // what keeps this step from being delivered

  std::atomic<std::uint64_t> unfinished = 0;    // samples; the thread that brings it to 0 publishes
  std::atomic<std::uint64_t> elsewhere = 0;     // samples that are made elsewhere, or were
  std::atomic<std::int64_t> last_local_ns = 0;  // when a thread of this process last made samples
  std::atomic<std::int64_t> read_ns = 0;
  std::atomic<std::int64_t> decode_ns = 0;
  std::atomic<std::int64_t> transform_ns = 0;  // on host devices, row by row
  std::atomic<std::uint64_t> bytes_read = 0;
  std::atomic<std::uint64_t> retries = 0;

  std::mutex mutex;  // guards info->faults, info->digest and fatal, until the batch is done
  std::optional<Fault> fatal;  // the first fault, by row, that the policy has no answer to

  /// The host memory of a part's slice.
  [[nodiscard]] std::span<std::byte> slice(std::size_t part) const noexcept {
    const std::size_t bytes = layout->slice_bytes();
    return memory.subspan(part * bytes, bytes);
  }
  /// Which part a sample belongs to.
  [[nodiscard]] std::vector<PartInfo>::const_iterator part_of(std::uint64_t sample) const noexcept {
    return std::ranges::find_if(info->parts, [&](const PartInfo& part) {
      return sample < part.first_sample + part.slice.samples;
    });
  }
};

}  // namespace penstock::loader
