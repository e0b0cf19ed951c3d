#include "src/device/cuda_digests.hpp"

#include <atomic>
#include <exception>
#include <utility>

#include <penstock/core/error.hpp>

#include "src/device/cuda_row_digests.hpp"
#include "src/device/cuda_transfer.hpp"

namespace penstock::device {

/// Where it comes from is kept until it is there.
class CudaDigests::Result final : public PendingDigests {
 public:
  Result(std::shared_ptr<CudaDigests> from, const CudaEvent& event)
      : from_(std::move(from)), event_(event) {}

  [[nodiscard]] std::optional<SliceDigests> look() const noexcept override {
    return is_known_.load(std::memory_order_acquire) && !error_ ? std::optional(digests_)
                                                                : std::nullopt;
  }
  [[nodiscard]] SliceDigests wait() override {
    // The event may have been recorded again for another one: this one is known then.
    while (!is_known_.load(std::memory_order_acquire)) {
      {
        const CurrentDevice current(from_->device_);
        check(cudaEventSynchronize(event_.get()));
      }
      from_->collect();
    }
    if (error_) std::rethrow_exception(error_);
    return digests_;
  }

  void set(const SliceDigests& digests, std::exception_ptr error = nullptr) noexcept {
    digests_ = digests;
    error_ = std::move(error);
    is_known_.store(true, std::memory_order_release);
  }

 private:
  std::shared_ptr<CudaDigests> from_;
  const CudaEvent& event_;
  SliceDigests digests_;
  std::exception_ptr error_;
  std::atomic<bool> is_known_ = false;
};

CudaDigests::CudaDigests(int device, std::vector<DigestPlan> plans, std::size_t results)
    : device_(device),
      plans_(std::move(plans)),
      stream_(device, CudaStream::Priority::first),
      sums_(device, sizeof(SliceDigests)),
      pinned_(staging::HostMemory::make(results * sizeof(SliceDigests))) {
  pinned_->keep(pin_host_memory(pinned_->bytes(), device));
  places_.reserve(results);
  for (std::size_t k = 0; k < results; ++k) places_.emplace_back(device);
  // What is not hashed stays 0. The last that can fail: the destructor waits for it.
  const CurrentDevice current(device);
  check(cudaMemsetAsync(sums_.data(), 0, sizeof(SliceDigests), stream_.get()));
}

CudaDigests::~CudaDigests() {
  try {
    const CurrentDevice current(device_);
    check(cudaStreamSynchronize(stream_.get()));
  } catch (const CudaError&) {
    // The device is lost, and the stream with it.
  }
}

std::shared_ptr<PendingDigests> CudaDigests::enqueue(std::byte* slice, const std::byte* transformed,
                                                     std::uint64_t samples, std::size_t form,
                                                     const CudaEvent& arrived,
                                                     const CudaEvent& hashed) {
  const std::lock_guard lock(mutex_);
  collect_locked();
  if (on_their_way_ == places_.size()) {
    check(cudaEventSynchronize(places_[oldest_].event.get()));
    collect_locked();
  }
  const std::size_t index = (oldest_ + on_their_way_) % places_.size();
  Place& place = places_[index];
  auto* const sums = reinterpret_cast<SliceDigests*>(sums_.data());
  const DigestPlan& plan = plans_[form];
  auto* const rows = reinterpret_cast<DigestRow*>(slice + plan.rows);
  const cudaStream_t stream = stream_.get();

  check(cudaStreamWaitEvent(stream, arrived.get(), 0));
  if (!plan.slice.empty())
    enqueue_row_digests(slice, plan.slice, rows, samples, &sums->slice, stream);
  if (!plan.transformed.empty())
    enqueue_row_digests(transformed, plan.transformed, rows, samples, &sums->transformed, stream);
  check(cudaEventRecord(hashed.get(), stream));
  check(cudaMemcpyAsync(reinterpret_cast<SliceDigests*>(pinned_->bytes().data()) + index, sums,
                        sizeof *sums, cudaMemcpyDeviceToHost, stream));
  check(cudaEventRecord(place.event.get(), stream));
  auto result = std::make_shared<Result>(shared_from_this(), place.event);
  place.result = result;
  ++on_their_way_;
  return result;
}

void CudaDigests::collect() {
  const std::lock_guard lock(mutex_);
  collect_locked();
}

bool CudaDigests::is_over() {
  const std::lock_guard lock(mutex_);
  collect_locked();
  return on_their_way_ == 0;
}

void CudaDigests::collect_locked() {
  const auto* const arrived = reinterpret_cast<const SliceDigests*>(pinned_->bytes().data());
  while (on_their_way_ > 0 && places_[oldest_].event.is_over()) {
    if (const auto result = places_[oldest_].result.lock()) result->set(arrived[oldest_]);
    oldest_ = (oldest_ + 1) % places_.size();
    --on_their_way_;
  }
}

void CudaDigests::finish() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    const CurrentDevice current(device_);
    check(cudaStreamSynchronize(stream_.get()));
    collect_locked();
  } catch (const CudaError&) {
    for (; on_their_way_ > 0; --on_their_way_, oldest_ = (oldest_ + 1) % places_.size())
      if (const auto result = places_[oldest_].result.lock())
        result->set({}, std::current_exception());
  }
}

}  // namespace penstock::device
