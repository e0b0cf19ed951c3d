// core/clock: the one clock that every measurement uses.
#pragma once

#include <chrono>
#include <cstdint>

namespace penstock {

/// Nanoseconds on a monotonic clock.
[[nodiscard]] inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace penstock
