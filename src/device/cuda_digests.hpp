// device/cuda_digests: digests on their way from a GPU to the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "src/device/cuda_owners.hpp"
#include "src/device/slice_digest.hpp"
#include "src/staging/host_memory.hpp"

namespace penstock::device {

/// Hashes slices on a stream of its own, and hands out what comes of it.
///
/// Source   pinned results in a ring, read when their event is over: results come in the order of the stream
/// Threads  any number of threads.
class CudaDigests : public std::enable_shared_from_this<CudaDigests> {
 public:
  /// What to hash of each form of slices, at least one, and room for the results of so many slices at a time.
  CudaDigests(int device, std::vector<DigestPlan> plans, std::size_t results);
  /// Waits for what is queued.
  ~CudaDigests();
  CudaDigests(const CudaDigests&) = delete;
  CudaDigests& operator=(const CudaDigests&) = delete;

  [[nodiscard]] bool hashes_transformed() const noexcept {
    return !plans_.front().transformed.empty();
  }

  /// Queues the hashing of the first `samples` rows of a slice of form `form`. Waits only where more results are on their way than
  /// there is room for.
  ///
  /// Stream  on a stream of its own, behind `arrived`; records `hashed` there. Both are events of the device, which is
  ///         current.
  /// Errors  CudaError
  [[nodiscard]] std::shared_ptr<PendingDigests> enqueue(std::byte* slice,
                                                        const std::byte* transformed,
                                                        std::uint64_t samples, std::size_t form,
                                                        const CudaEvent& arrived,
                                                        const CudaEvent& hashed);
  /// Whether all that was queued is over. A device that is lost throws a CudaError.
  [[nodiscard]] bool is_over();
  /// Waits for all that is queued; no caller needs the device for it afterwards. Where that is lost, a caller that asks
  /// for a result that never came is told.
  void finish() noexcept;

 private:
  class Result;
  /// Where a result arrives. Its event is over when it is there.
  struct Place {
    explicit Place(int device) : event(device, CudaEvent::Use::wait) {}
    CudaEvent event;
    std::weak_ptr<Result> result;  // gone: no caller wants it any more
  };

  void collect();
  void collect_locked();

  int device_;
  std::vector<DigestPlan> plans_;
  CudaStream stream_;
  DeviceMemory sums_;  // of the slice that is hashed at the moment
  std::shared_ptr<staging::HostMemory> pinned_;
  std::mutex mutex_;  // guards what follows, and the order of the stream
  std::vector<Place> places_;
  std::size_t oldest_ = 0;  // of those on their way
  std::size_t on_their_way_ = 0;
};

}  // namespace penstock::device
