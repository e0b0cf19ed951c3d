// loader/remote/task_door: keeps tasks away from threads that stop, and these from stopping while one is inside.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace penstock::loader {

class RowThreads;

/// Tasks are given out in a generation, which ends when the door is closed; they cannot enter another one.
///
/// Threads  open() and close() from one thread at a time; the rest from any number.
class TaskDoor {
 public:
  /// While it lasts, RowThreads::stop() waits.
  class Visit {
   public:
    Visit(TaskDoor& door, RowThreads& threads, std::uint64_t generation) noexcept
        : door_(&door), threads_(&threads), generation_(generation) {}
    Visit(Visit&& other) noexcept;
    Visit& operator=(Visit&&) = delete;
    ~Visit();
    RowThreads* operator->() const noexcept { return threads_; }
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

   private:
    TaskDoor* door_;
    RowThreads* threads_;
    std::uint64_t generation_;
  };

  void open(RowThreads& threads);
  /// Waits for those inside.
  void close();
  /// None where the door is closed, or was since that generation.
  [[nodiscard]] std::optional<Visit> enter(std::uint64_t generation);
  /// Waits until the door is open; none when it is too late.
  [[nodiscard]] std::optional<Visit> enter_any(std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] bool is_open(std::uint64_t generation) const;

 private:
  friend class Visit;
  void leave() noexcept;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  RowThreads* threads_ = nullptr;  // none: closed
  std::uint64_t generation_ = 0;
  std::size_t inside_ = 0;
};

}  // namespace penstock::loader
