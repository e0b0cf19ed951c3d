#include "src/loader/open_samples.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace penstock::loader {

void OpenSamples::push(std::shared_ptr<InFlight> batch) {
  const std::uint64_t count = batch->info->samples.size();
  if (count == 0) return;
  {
    const std::lock_guard lock(mutex_);
    open_.push_back({.batch = std::move(batch), .first = 0, .count = count});
  }
  changed_.notify_all();
}

std::optional<Claim> OpenSamples::claim(std::uint64_t most, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return threads_may_ && !open_.empty(); });
  if (stop.stop_requested()) return std::nullopt;
  return take(most);
}

std::optional<Claim> OpenSamples::claim_in_part(std::uint64_t most, const std::stop_token& stop,
                                                Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto any = [&] { return !open_.empty(); };
  const bool found = deadline == kNever ? changed_.wait(lock, stop, any)
                                        : changed_.wait_until(lock, stop, deadline, any);
  if (!found || stop.stop_requested()) return std::nullopt;
  const Claim& front = open_.front();
  const PartInfo& part = *front.batch->part_of(front.first);
  return take(std::min(most, part.first_sample + part.slice.samples - front.first));
}

Claim OpenSamples::take(std::uint64_t most) {
  Claim& front = open_.front();
  Claim claim = front;
  claim.count = std::min(front.count, most);
  front.first += claim.count;
  front.count -= claim.count;
  if (front.count == 0) open_.pop_front();
  return claim;
}

void OpenSamples::give_back(Claim claim) {
  {
    const std::lock_guard lock(mutex_);
    const auto place = [](const Claim& one) {
      return std::tuple(one.batch->info->step, one.first);
    };
    const auto behind = std::ranges::upper_bound(open_, place(claim), {}, place);
    open_.insert(behind, std::move(claim));
  }
  changed_.notify_all();
}

void OpenSamples::clear() {
  const std::lock_guard lock(mutex_);
  open_.clear();
}

void OpenSamples::let_threads_claim(bool may) {
  {
    const std::lock_guard lock(mutex_);
    threads_may_ = may;
  }
  changed_.notify_all();
}

}  // namespace penstock::loader
