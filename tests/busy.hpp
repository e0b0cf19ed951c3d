// For tests that look at the clock: is this machine too busy with other programs for what they
// would find?
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

namespace penstock::testing_support {

/// CPU time of the calling thread: other programs make it hardly any longer.
inline double thread_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// How much longer than alone this thread's work takes here and now: 1 where a core is free, 4
/// where four threads share each. The largest of three looks, each at 20 ms of work.
inline double slowdown() {
  using Clock = std::chrono::steady_clock;
  double largest = 1;
  for (int look = 0; look < 3; ++look) {
    const auto begin = Clock::now();
    const double begin_cpu = thread_seconds();
    while (thread_seconds() - begin_cpu < 0.02) {
    }
    const std::chrono::duration<double> wall = Clock::now() - begin;
    largest = std::max(largest, wall.count() / 0.02);
  }
  return largest;
}

/// Why a test that looks at the clock, and did not find what it should, cannot tell anything now:
/// empty where it can. To be asked at once, while what disturbed is still there:
///
///   if (took > limit) {
///     if (const std::string reason = too_busy(); !reason.empty()) GTEST_SKIP() << reason;
///   }
///   EXPECT_LE(took, limit);
inline std::string too_busy() {
  const double factor = slowdown();
  if (factor < 1.5) return {};
  return "this machine is too busy for a test that looks at the clock: 20 ms of work took " +
         std::to_string(static_cast<int>(20 * factor)) + " ms";
}

}  // namespace penstock::testing_support
