// loader/run/in_flight: one batch on its way from the numbers to the consumer.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "src/device/transfer.hpp"
#include "src/loader/run/batch_form.hpp"
#include "src/loader/run/step_info.hpp"
#include "src/staging/ring.hpp"

namespace penstock::loader {

struct InFlight {
  std::shared_ptr<StepInfo> info = std::make_shared<StepInfo>();
  std::shared_ptr<staging::StagingLease> slot;
  std::vector<std::shared_ptr<device::DeviceSlice>> slices;  // one per part

  std::vector<std::atomic<std::uint8_t>> images_there;  // of each sample: see HostPart

  std::uint64_t claimed = 0;  // samples handed to readers or workers; under the mutex of who does
  // Under the engine's mutex.
  bool complete = false;     // every sample is there; on GPUs it may wait for its turn
  bool done = false;         // published, or failed
  std::exception_ptr error;  // what keeps this step from being delivered

  std::atomic<std::uint64_t> unfinished = 0;  // samples; who brings it to 0 publishes
  std::atomic<std::int64_t> read_ns = 0;
  std::atomic<std::int64_t> decode_ns = 0;
  std::atomic<std::int64_t> transform_ns = 0;  // on host devices, row by row
  std::atomic<std::uint64_t> bytes_read = 0;
  std::atomic<std::uint64_t> retries = 0;

  std::mutex mutex;            // until the batch is done, guards info->faults, info->digest and
  std::optional<Fault> fatal;  // the first fault, by row, that the policy has no answer to

  /// The host memory of a part's slice.
  [[nodiscard]] std::span<std::byte> slice(std::size_t part) const noexcept {
    const std::size_t bytes = info->form->slice().slice_bytes();
    return slot->bytes().subspan(part * bytes, bytes);
  }
};

}  // namespace penstock::loader
