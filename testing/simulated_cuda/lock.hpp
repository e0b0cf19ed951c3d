// testing/simulated_cuda/lock: a mutex and a condition that ThreadSanitizer does not see.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sanitizers.hpp"

namespace penstock::simulated_cuda {

inline std::int64_t now_ns() {
  const Unseen unseen;  // streams use one stack, and are different threads to ThreadSanitizer
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t ns) {
  const timespec limit{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, ns < 0 ? nullptr : &limit, nullptr, 0);
}
inline void futex_wake(std::atomic<std::uint32_t>& word, int count) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

class Lock {
 public:
  void lock() {
    std::uint32_t expected = 0;
    if (word_.compare_exchange_strong(expected, 1, std::memory_order_acquire)) return;
    while (word_.exchange(2, std::memory_order_acquire) != 0) futex_wait(word_, 2, -1);
  }
  void unlock() {
    if (word_.exchange(0, std::memory_order_release) == 2) futex_wake(word_, 1);
  }

 private:
  std::atomic<std::uint32_t> word_{0};  // 0 free, 1 taken, 2 taken and waited for
};

/// What is done under it is not seen either.
class Guard {
 public:
  explicit Guard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Unseen unseen_;
  Lock& lock_;
};

/// Something has happened. The lock is held by those who call.
class Signal {
 public:
  void wait(Lock& lock, std::int64_t ns = -1) {
    const std::uint32_t seen = word_.load(std::memory_order_relaxed);
    lock.unlock();
    futex_wait(word_, seen, ns);
    lock.lock();
  }
  void notify() {
    word_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(word_, 1 << 30);
  }

 private:
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace penstock::simulated_cuda
