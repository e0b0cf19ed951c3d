// storage/http/rate_limit: pauses that a server asks for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "src/storage/http/client.hpp"

namespace penstock::storage {

/// How many seconds an answer asks to wait before the next request, by Retry-After or RateLimit; nothing where it does not.
[[nodiscard]] std::optional<std::uint64_t> seconds_to_wait(const HttpResponse& response);

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
