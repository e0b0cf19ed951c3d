// storage/retry: what is repeated where no loader does it: listings, scans of shards, and writes.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/core/random_wait.hpp"

namespace penstock::storage {

inline constexpr int kUsualAttempts = 5;

/// Calls `attempt` until it succeeds, says that repeating will not help, or was called so often; with random waits of 100 ms
/// on average and then twice as long each. What is interrupted waits no longer, and is not repeated.
template <class Attempt>
auto with_retries(const Attempt& attempt, int attempts = kUsualAttempts) {
  using std::chrono::milliseconds;
  constexpr milliseconds kLook(20);
  for (milliseconds wait(100);; wait *= 2) {
    auto result = attempt();
    if (result || !result.fault().transient || --attempts <= 0) return result;
    for (auto left = std::chrono::ceil<milliseconds>(core::random_wait(wait)); left.count() > 0;
         left -= kLook) {
      if (core::Interruption::is_requested()) return result;
      std::this_thread::sleep_for(std::min(left, kLook));
    }
  }
}

}  // namespace penstock::storage
