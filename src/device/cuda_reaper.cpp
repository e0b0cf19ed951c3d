#include "src/device/cuda_reaper.hpp"

#include <condition_variable>
#include <list>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace penstock::device {

namespace {

struct Used {
  std::function<bool()> is_over;
  std::function<void()> free;
};

class Reaper {
 public:
  /// None once the program ends.
  static Reaper* get() {
    static Reaper reaper;
    return is_alive ? &reaper : nullptr;
  }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  ~Reaper() {
    constexpr std::chrono::seconds kGrace(2);
    (void)wait_until_freed(kGrace);
    is_alive = false;
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    // Never freed: to free memory that a kernel reads waits for the kernel, which may not end.
    if (!used_.empty()) still_used = new std::list<Used>(std::move(used_));
  }

  void take(Used used) {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable())
      thread_ = std::jthread([this](const std::stop_token& stop) { reap(stop); });
    used_.push_back(std::move(used));
    changed_.notify_all();
  }

  [[nodiscard]] bool wait_until_freed(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (used_.empty()) return false;
    return changed_.wait_for(lock, timeout, [&] { return used_.empty(); });
  }

 private:
  Reaper() = default;

  void reap(const std::stop_token& stop) {
    constexpr std::chrono::milliseconds kPoll(2);
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      if (used_.empty()) {
        changed_.wait(lock, stop, [&] { return !used_.empty(); });
        continue;
      }
      for (auto each = used_.begin(); each != used_.end() && !stop.stop_requested();) {
        lock.unlock();
        const bool is_over = each->is_over();
        if (is_over) each->free();
        lock.lock();
        each = is_over ? used_.erase(each) : std::next(each);
      }
      if (used_.empty())
        changed_.notify_all();
      else
        changed_.wait_for(lock, stop, kPoll, [] { return false; });
    }
  }

  static inline bool is_alive = true;
  static inline std::list<Used>* still_used = nullptr;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Used> used_;  // only the thread takes out of it
  std::jthread thread_;
};

}  // namespace

void free_when_over(std::function<bool()> is_over, std::function<void()> free) noexcept {
  try {
    if (is_over()) return free();
    if (Reaper* const reaper = Reaper::get()) return reaper->take({std::move(is_over), free});
  } catch (...) {  // no memory for it, or no thread
  }
  free();
}

bool wait_until_freed(std::chrono::milliseconds timeout) {
  Reaper* const reaper = Reaper::get();
  return reaper != nullptr && reaper->wait_until_freed(timeout);
}

}  // namespace penstock::device
