// core/interruption: whether the work that this thread does is wanted no longer.
#pragma once

#include <stop_token>
#include <utility>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace core {

/// Tells what waits for long, far below the loader's threads (a request to a server), that the loader has been stopped.
///
/// Threads  each thread has its own; where none was set, nothing is interrupted.
class Interruption {
 public:
  /// Why what was interrupted has failed, in messages.
  static constexpr const char* kReason = "the work was stopped";

  explicit Interruption(std::stop_token stop) : stop_(std::move(stop)), before_(current_) {
    current_ = &stop_;
  }
  ~Interruption() { current_ = before_; }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// What interrupts this thread, for threads that work for it.
  [[nodiscard]] static std::stop_token current() {
    return current_ != nullptr ? *current_ : std::stop_token();
  }
  /// `own`, where it can be requested; else what interrupts this thread.
  [[nodiscard]] static std::stop_token current_or(const std::stop_token& own) {
    return own.stop_possible() ? own : current();
  }
  [[nodiscard]] static bool is_requested() noexcept {
    return current_ != nullptr && current_->stop_requested();
  }

 private:
  static inline thread_local const std::stop_token* current_ = nullptr;
  std::stop_token stop_;
  const std::stop_token* before_;
};

/// Errors  Error  it is wanted no longer
void require_wanted();

}  // namespace core
}  // namespace penstock
