// device/cuda_reaper: frees what a device still uses when nobody else does, later.
#pragma once

#include <chrono>
#include <functional>

namespace penstock::device {

/// Calls `free` once `is_over` says so: now, or later on a thread that looks again and again, so that nobody waits for a device. What is
/// still in use 2 s after the program's end is left to the driver.
///
/// Threads  both are called on any thread, one at a time; neither may throw.
void free_when_over(std::function<bool()> is_over, std::function<void()> free) noexcept;

/// Waits until all that was given to free_when_over() is free, or the time has passed. True if it is, and was not before.
[[nodiscard]] bool wait_until_freed(std::chrono::milliseconds timeout);

}  // namespace penstock::device
