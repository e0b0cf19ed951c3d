// loader/thread_budget: cores that several loaders share.
#pragma once

#include <semaphore>
#include <stdexcept>

namespace penstock {

/// Give the same one to several loaders of a process (LoaderOptions::thread_budget) and no more
/// than `threads` of their threads work at a time, whichever of them have something to do: a
/// training and a validation loader both get all cores while the other's ring is full, and never
/// more. Without one, each loader works with its own threads.
///
///   const auto cores = std::make_shared<ThreadBudget>(8);
///   auto train = training.loader({.thread_budget = cores});
///   auto valid = validation.loader({.thread_budget = cores});
///
/// Threads  any number.
class ThreadBudget {
 public:
  /// Errors  std::invalid_argument  threads < 1
  explicit ThreadBudget(int threads) : free_(checked(threads)), threads_(threads) {}

  /// Waits for a core; held for one grain of samples, about 0.1 ms or one sample.
  void acquire() { free_.acquire(); }
  void release() { free_.release(); }
  [[nodiscard]] int threads() const noexcept { return threads_; }

 private:
  static int checked(int threads) {
    if (threads < 1) throw std::invalid_argument("a thread budget needs at least 1 thread");
    return threads;
  }

  std::counting_semaphore<> free_;
  int threads_;
};

}  // namespace penstock
