// core/random_wait: waits before something is tried again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <thread>

namespace penstock::core {

/// A wait of `mean` on average: any from none to twice that, so that threads which failed together do not come back together
/// ("full jitter"; "Exponential Backoff And Jitter", Brooker, 2015). Nothing that is read depends on it.
[[nodiscard]] inline std::chrono::nanoseconds random_wait(std::chrono::nanoseconds mean) {
  using Engine = std::minstd_rand;
  thread_local Engine engine(static_cast<Engine::result_type>(
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
      std::hash<std::thread::id>{}(std::this_thread::get_id())));
  return std::chrono::nanoseconds(
      std::uniform_int_distribution<std::chrono::nanoseconds::rep>(0, 2 * mean.count())(engine));
}

}  // namespace penstock::core
