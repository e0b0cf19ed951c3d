#include "src/core/progress.hpp"

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <penstock/core/process.hpp>

#include "src/core/printable.hpp"
#include "src/core/with_commas.hpp"

namespace penstock {

namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kEveryNs = 200'000'000;

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local core::ToldProgress* told = nullptr;

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(STDERR_FILENO, text.data(), text.size());
    if (put <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace

void with_progress(const ProgressCallback& callback, const std::function<void()>& work) {
  struct Restore {
    core::ToldProgress* before;
    ~Restore() { told = before; }
  };
  core::ToldProgress own{.callback = callback};
  const Restore restore{std::exchange(told, callback ? &own : nullptr)};
  work();
}

ProgressCallback progress_line() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  constexpr std::int64_t kShownAfterNs = 2'000'000'000;
  constexpr std::size_t kWidest = 60;  // of what is done; a line that wraps is not erased
  return [begin = std::int64_t{0}, is_shown = false](const Progress& progress) mutable {
    const std::int64_t now = now_ns();
    if (begin == 0) begin = now;
    if (progress.has_ended) {
      if (is_shown) print("\r\x1b[K");
      begin = 0;
      is_shown = false;
    } else if (now - begin >= kShownAfterNs) {
      is_shown = true;
      print(fmt::format(
          "\r\x1b[K{}: {}{} {}", core::printable(progress.what, kWidest),
          core::with_commas(std::to_string(progress.done)),
          progress.total > 0 ? " of " + core::with_commas(std::to_string(progress.total)) : "",
          progress.unit));
    }
  };
}

namespace core {

ProgressCounter::ProgressCounter(std::string what, std::string unit, std::uint64_t total)
    : told_(told),
      progress_{.what = std::move(what), .unit = std::move(unit), .total = total},
      next_ns_(told_ != nullptr ? now_ns() : INT64_MAX) {}

ProgressCounter::~ProgressCounter() {
  if (told_ == nullptr) return;
  const std::lock_guard lock(told_->mutex);
  progress_.done = done_;
  progress_.has_ended = true;
  try {
    told_->callback(progress_);
  } catch (const std::exception&) {
    // The work is done, or has failed already.
  }
}

void ProgressCounter::add(std::uint64_t count) {
  done_ += count;
  if (told_ == nullptr) return;
  const std::int64_t now = now_ns();
  if (now < next_ns_) return;
  const std::unique_lock lock(told_->mutex, std::try_to_lock);
  if (!lock || now < next_ns_) return;
  next_ns_ = now + kEveryNs;
  progress_.done = done_;
  told_->callback(progress_);
}

}  // namespace core

}  // namespace penstock
