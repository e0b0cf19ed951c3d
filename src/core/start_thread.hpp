// core/start_thread: a new thread, or an error that says what to do.
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::core {

/// A thread that runs `work`, for `what`: "decoding".
///
/// Errors  Error  this process may have no more threads, or there is no memory for one's stack
template <class Work>
[[nodiscard]] std::jthread start_thread(std::string_view what, Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw Error(
        fmt::format("cannot start a thread for {}: {}; raise the limit of threads (ulimit -u, or "
                    "the container's pids.max) or of memory (ulimit -v), or use fewer threads",
                    what, error.what()));
  }
}

}  // namespace penstock::core
