// loader/task_counters: what became of tasks, for Stats.
#pragma once

#include <atomic>
#include <cstdint>

#include <penstock/loader/loader.hpp>

namespace penstock::loader {

/// Threads  any number of threads.
struct TaskCounters {
  std::atomic<std::uint64_t> rows = 0;
  std::atomic<std::uint64_t> tasks = 0;
  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<std::uint64_t> cancelled = 0;
  std::atomic<std::int64_t> wait_ns = 0;
  std::atomic<std::int64_t> made_ns = 0;
  std::atomic<std::int64_t> copy_ns = 0;

  [[nodiscard]] RemoteStats stats() const noexcept {
    const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; };
    return {.rows = rows,
            .tasks = tasks,
            .bytes = bytes,
            .cancelled = cancelled,
            .wait_s = seconds(wait_ns),
            .made_s = seconds(made_ns),
            .copy_s = seconds(copy_ns)};
  }
};

}  // namespace penstock::loader
