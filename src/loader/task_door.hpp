// loader/task_door: keeps tasks away from threads that stop, and these from stopping while one is inside.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>

namespace penstock::loader {

class RowThreads;

/// Threads  open() and close() from one thread at a time; the rest from any number.
class TaskDoor {
 public:
  /// While it lasts, RowThreads::stop() waits.
  class Visit {
   public:
    Visit(TaskDoor& door, RowThreads& threads) noexcept : door_(&door), threads_(&threads) {}
    Visit(Visit&& other) noexcept;
    Visit& operator=(Visit&&) = delete;
    ~Visit();
    RowThreads* operator->() const noexcept { return threads_; }

   private:
    TaskDoor* door_;
    RowThreads* threads_;
  };

  void open(RowThreads& threads);
  /// Waits for the tasks inside.
  void close();
  /// None where the door is closed.
  [[nodiscard]] std::optional<Visit> enter();
  /// Waits until the door is open; none when it is too late.
  [[nodiscard]] std::optional<Visit> enter(std::chrono::steady_clock::time_point deadline);

 private:
  friend class Visit;
  void leave() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  RowThreads* threads_ = nullptr;  // none: closed
  std::size_t inside_ = 0;
};

}  // namespace penstock::loader
