// core/start_thread: a new thread, or an error that says what to do.
#pragma once

#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::core {

[[noreturn]] inline void throw_cannot_start(std::string_view what, const std::exception& error) {
  throw Error(
      fmt::format("cannot start a thread for {}: {}; raise the limit of threads (ulimit -u, or "
                  "the container's pids.max) or of memory (ulimit -v), or use fewer threads",
                  what, error.what()));
}

/// A thread that runs `work`, for `what`: "decoding".
///
/// Errors  Error  this process may have no more threads, or there is no memory for one's stack
template <class Work>
[[nodiscard]] std::jthread start_thread(std::string_view what, Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw_cannot_start(what, error);
  }
}

/// Runs `work`, which starts threads of oneTBB, for `what`.
///
/// Errors  Error  as of start_thread: oneTBB throws a std::runtime_error with the name of its system call; what `work` throws
template <class Work>
void run_on_tbb_threads(std::string_view what, Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const std::runtime_error& error) {
    if (std::string_view(error.what()).starts_with("pthread_create "))
      throw_cannot_start(what, error);
    throw;
  }
}

}  // namespace penstock::core
