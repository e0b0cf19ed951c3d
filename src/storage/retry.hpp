// storage/retry: what is repeated where no loader does it: listings, and scans of shards.
#pragma once

#include <chrono>
#include <thread>

#include <penstock/core/error.hpp>

namespace penstock::storage {

/// Calls `attempt` until it succeeds or says that repeating will not help: five times at most, with
/// waits of 100 ms and then twice as long each.
template <class Attempt>
auto with_retries(const Attempt& attempt) {
  constexpr int kAttempts = 5;
  std::chrono::milliseconds wait(100);
  for (int i = 1;; ++i, wait *= 2) {
    auto result = attempt();
    if (result || !result.fault().transient || i == kAttempts) return result;
    std::this_thread::sleep_for(wait);
  }
}

}  // namespace penstock::storage
