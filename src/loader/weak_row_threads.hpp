// loader/weak_row_threads: where tasks find the threads of a loader that makes rows, while these run. As std::weak_ptr.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>

namespace penstock::loader {

class RowThreads;

/// Threads  set() and reset() from one thread at a time; the rest from any number.
class WeakRowThreads {
 public:
  /// RowThreads::stop() waits until it is destroyed.
  class Lock {
   public:
    Lock(WeakRowThreads& weak, RowThreads& threads) noexcept : weak_(&weak), threads_(&threads) {}
    Lock(Lock&& other) noexcept;
    Lock& operator=(Lock&&) = delete;
    ~Lock();
    RowThreads* operator->() const noexcept { return threads_; }

   private:
    WeakRowThreads* weak_;
    RowThreads* threads_;
  };

  void set(RowThreads& threads);
  /// Waits until all locks are destroyed.
  void reset();
  /// None where the threads do not run.
  [[nodiscard]] std::optional<Lock> lock();
  /// Waits until the threads run; none at the deadline.
  [[nodiscard]] std::optional<Lock> lock(std::chrono::steady_clock::time_point deadline);

 private:
  friend class Lock;
  void unlock() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  RowThreads* threads_ = nullptr;  // none: they do not run
  std::size_t locks_ = 0;
};

}  // namespace penstock::loader
