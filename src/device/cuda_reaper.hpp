// device/cuda_reaper: frees what a device still uses when nothing else does, later.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace penstock::device {

using Deadline = std::chrono::steady_clock::time_point;

/// Calls `free` once `is_over` says so: now, or later on a thread that looks again and again, so that no caller
/// waits for a device. What is still in use 2 s after the program's end is left to the driver.
///
/// Threads  both are called on any thread, one at a time; neither may throw.
void free_when_over(std::function<bool()> is_over, std::function<void()> free) noexcept;

/// How much of what was given to free_when_over() its thread has freed so far.
[[nodiscard]] std::uint64_t count_of_frees();

/// Waits until that is no longer `seen`: no free is missed that came before this call. False where nothing waits to be freed, or the time
/// has passed.
[[nodiscard]] bool wait_for_a_free(std::uint64_t seen, Deadline deadline);

/// Waits until all that was given to free_when_over() is freed. False where the time has passed.
[[nodiscard]] bool wait_until_freed(std::chrono::milliseconds timeout);

}  // namespace penstock::device
