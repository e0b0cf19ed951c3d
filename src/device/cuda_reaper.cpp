#include "src/device/cuda_reaper.hpp"

#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include <unistd.h>

namespace penstock::device {

namespace {

struct Used {
  std::function<bool()> is_over;
  std::function<void()> free;
};

// Never destroyed: its thread may be inside the driver when the program ends.
class Reaper {
 public:
  static Reaper& get() {
    static auto* const reaper = new Reaper;
    static const AtExit at_exit;
    return *reaper;
  }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// False once the program ends, or where no thread can be had.
  [[nodiscard]] bool take(Used& used) {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return false;
    if (!is_running_) std::thread([this] { reap(); }).detach();
    is_running_ = true;
    used_.push_back(std::move(used));
    changed_.notify_all();
    return true;
  }

  [[nodiscard]] std::uint64_t count_of_frees() {
    const std::lock_guard lock(mutex_);
    return freed_;
  }
  [[nodiscard]] bool wait_for_a_free(std::uint64_t seen, Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (used_.empty()) return freed_ != seen;
    return changed_.wait_until(lock, deadline, [&] { return freed_ != seen; });
  }

  [[nodiscard]] bool wait_until_freed(Deadline deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [&] { return used_.empty(); });
  }

 private:
  // What is in use after that is left: to free memory that a kernel reads waits for the kernel, which may not end.
  struct AtExit {
    pid_t process = getpid();  // in another one, forked from it, there is no thread to wait for
    ~AtExit() {
      if (process == getpid()) get().end();
    }
  };

  Reaper() = default;

  void end() {
    constexpr std::chrono::seconds kGrace(2);
    (void)wait_until_freed(std::chrono::steady_clock::now() + kGrace);
    std::unique_lock lock(mutex_);
    has_ended_ = true;
    (void)changed_.wait_for(lock, kGrace, [&] { return !is_busy_; });
  }

  void reap() {
    constexpr std::chrono::milliseconds kPoll(2);
    std::unique_lock lock(mutex_);
    while (!has_ended_) {
      if (used_.empty()) {
        changed_.wait(lock);
        continue;
      }
      is_busy_ = true;
      for (auto each = used_.begin(); each != used_.end() && !has_ended_;) {
        lock.unlock();
        const bool is_over = each->is_over();
        if (is_over) each->free();
        lock.lock();
        each = is_over ? used_.erase(each) : std::next(each);
        if (is_over) ++freed_;
      }
      is_busy_ = false;
      changed_.notify_all();
      if (!used_.empty() && !has_ended_) changed_.wait_for(lock, kPoll);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Used> used_;  // only the thread takes out of it
  std::uint64_t freed_ = 0;
  bool is_running_ = false;
  bool is_busy_ = false;
  bool has_ended_ = false;
};

}  // namespace

void free_when_over(std::function<bool()> is_over, std::function<void()> free) noexcept {
  try {
    if (is_over()) return free();
    Used used{std::move(is_over), free};
    if (Reaper::get().take(used)) return;
  } catch (...) {  // no memory for it, or no thread
  }
  free();
}

std::uint64_t count_of_frees() { return Reaper::get().count_of_frees(); }

bool wait_for_a_free(std::uint64_t seen, Deadline deadline) {
  return Reaper::get().wait_for_a_free(seen, deadline);
}

bool wait_until_freed(std::chrono::milliseconds timeout) {
  return Reaper::get().wait_until_freed(std::chrono::steady_clock::now() + timeout);
}

}  // namespace penstock::device
