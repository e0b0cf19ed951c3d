// device/cuda_reaper: frees what a device still uses when nobody else does, later.
#pragma once

#include <chrono>
#include <functional>

namespace penstock::device {

using Deadline = std::chrono::steady_clock::time_point;

/// Calls `free` once `is_over` says so: now, or later on a thread that looks again and again, so that nobody waits for a device. What is
/// still in use 2 s after the program's end is left to the driver.
///
/// Threads  both are called on any thread, one at a time; neither may throw.
void free_when_over(std::function<bool()> is_over, std::function<void()> free) noexcept;

/// Waits until something that was given to free_when_over() is freed. False where nothing waits to be, or the time has passed.
[[nodiscard]] bool wait_for_a_free(Deadline deadline);

/// Waits until all that was given to free_when_over() is freed. False where the time has passed.
[[nodiscard]] bool wait_until_freed(std::chrono::milliseconds timeout);

}  // namespace penstock::device
