// loader/open_samples: the samples of open batches that no thread makes yet, in the order in which they are needed.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "src/loader/in_flight.hpp"

namespace penstock::loader {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNever = Deadline::max();

/// Samples [first, first + count) of a batch, for one thread or task that makes them.
struct Claim {
  std::shared_ptr<InFlight> batch;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Threads  any number of threads.
class OpenSamples {
 public:
  /// All samples of a batch; batches come in the order of their steps.
  void push(std::shared_ptr<InFlight> batch);
  /// The next samples, `most` at the most, for a thread of the loader. Waits until there are some; none when `stop` was
  /// requested.
  [[nodiscard]] std::optional<Claim> claim(std::uint64_t most, const std::stop_token& stop);
  /// The same for others; samples of one part. None also when it is too late.
  [[nodiscard]] std::optional<Claim> claim_in_part(std::uint64_t most, const std::stop_token& stop,
                                                   Deadline deadline);
  /// They are not made after all.
  void give_back(Claim claim);
  /// Drops all.
  void clear();
  /// Whether the loader's threads may claim; they do until this says otherwise.
  void let_threads_claim(bool may);
  [[nodiscard]] bool threads_may_claim() const noexcept { return threads_may_; }

 private:
  [[nodiscard]] Claim take(std::uint64_t most);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Claim> open_;                // in order of steps and samples
  std::atomic<bool> threads_may_ = true;  // changes under the mutex
};

}  // namespace penstock::loader
