// storage/hub/rate_limit: pauses that a server asks for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "src/storage/http/client.hpp"

namespace penstock::storage {

/// A server that is asked too often says how long to wait. All threads wait then, before their next request.
///
/// Threads  any number at once.
class RateLimit {
 public:
  /// The Hub counts the requests of five minutes.
  static constexpr std::uint64_t kLongestPause = 300;

  /// Takes note of an answer: 429 and 503 may ask for a pause. One that is longer than kLongestPause is not waited for.
  void note(const HttpResponse& response);
  /// Returns when the pause is over, or what this thread does is wanted no longer.
  void wait() const;

 private:
  std::atomic<std::chrono::steady_clock::rep> until_ = 0;
};

}  // namespace penstock::storage
