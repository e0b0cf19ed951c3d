#include "src/source/in_parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "src/core/interruption.hpp"

namespace penstock::source {

void in_parallel(std::size_t count, std::size_t threads,
                 const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t failed = count;
  std::exception_ptr failure;
  const auto loop = [&, stop = core::Interruption::current()] {
    const core::Interruption interruption(stop);
    for (std::size_t k; (k = next.fetch_add(1)) < count;) {
      try {
        core::require_wanted();
        work(k);
      } catch (...) {
        const std::lock_guard lock(mutex);
        next = count;
        if (k < failed) {
          failed = k;
          failure = std::current_exception();
        }
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::size_t i = 1; i < std::min(threads, count); ++i) helpers.emplace_back(loop);
    } catch (const std::system_error&) {  // those that could be started, then
    }
    loop();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace penstock::source
