#include "src/loader/weak_row_threads.hpp"

#include <utility>

namespace penstock::loader {

WeakRowThreads::Lock::Lock(Lock&& other) noexcept
    : weak_(std::exchange(other.weak_, nullptr)), threads_(other.threads_) {}

WeakRowThreads::Lock::~Lock() {
  if (weak_ != nullptr) weak_->unlock();
}

void WeakRowThreads::set(RowThreads& threads) {
  {
    const std::lock_guard lock(mutex_);
    threads_ = &threads;
  }
  changed_.notify_all();
}

void WeakRowThreads::reset() {
  std::unique_lock lock(mutex_);
  threads_ = nullptr;
  changed_.wait(lock, [&] { return locks_ == 0; });
}

std::optional<WeakRowThreads::Lock> WeakRowThreads::lock() {
  const std::lock_guard lock(mutex_);
  if (threads_ == nullptr) return std::nullopt;
  ++locks_;
  return std::optional<Lock>(std::in_place, *this, *threads_);
}

std::optional<WeakRowThreads::Lock> WeakRowThreads::lock(
    std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [&] { return threads_ != nullptr; }))
    return std::nullopt;
  ++locks_;
  return std::optional<Lock>(std::in_place, *this, *threads_);
}

void WeakRowThreads::unlock() noexcept {
  {
    const std::lock_guard lock(mutex_);
    --locks_;
  }
  changed_.notify_all();
}

}  // namespace penstock::loader
