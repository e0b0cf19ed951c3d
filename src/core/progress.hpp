// core/progress: how far a long piece of work is, told to what with_progress() was given.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include <penstock/core/export.hpp>
#include <penstock/core/progress.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace core {

/// What with_progress() was given; one thread at a time calls it.
struct ToldProgress {
  const ProgressCallback& callback;
  std::mutex mutex{};
};

/// Counts what a piece of work has done. Where nothing is told, it only counts.
///
/// Threads  any number at once; made by the thread that with_progress() calls
class ProgressCounter {
 public:
  /// `total` is 0 where it is not known.
  ProgressCounter(std::string what, std::string unit, std::uint64_t total = 0);
  /// Tells the end, also after an error.
  ~ProgressCounter();
  ProgressCounter(const ProgressCounter&) = delete;
  ProgressCounter& operator=(const ProgressCounter&) = delete;

  /// Errors  what the callback throws
  void add(std::uint64_t count);
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }

 private:
  ToldProgress* told_;
  Progress progress_;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::int64_t> next_ns_;
};

}  // namespace core
}  // namespace penstock
