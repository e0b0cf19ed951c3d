// A stage that the consumer waits for longest, however busy the machine is.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <thread>

#include <penstock/penstock.hpp>

namespace penstock::testing_support {

/// Holds up one stage, of every sample where the stage is read or decode, else of every batch. Each
/// hold lasts until the consumer has waited 10 ms during it, and until the waits during holds are
/// twice as long as everything else that the loader has measured. So it is certain which stage is
/// the bottleneck: other programs can only make the holds longer.
class SlowStage final : public StageObserver {
 public:
  explicit SlowStage(Stage stage) : stage_(stage) {}
  ~SlowStage() override { release(); }
  SlowStage(const SlowStage&) = delete;
  SlowStage& operator=(const SlowStage&) = delete;
  SlowStage(SlowStage&&) = delete;
  SlowStage& operator=(SlowStage&&) = delete;

  /// Call before the loader starts. An observer must not call its loader, so a thread looks at it.
  void watch(const Loader& loader) {
    watcher_ = std::jthread([this, &loader](const std::stop_token& stop) { look(loader, stop); });
  }
  /// Ends all holds, now and later. Call before the loader is destroyed.
  void release() {
    if (watcher_.joinable()) {
      watcher_.request_stop();
      watcher_.join();
    }
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

  void begin(Stage stage, std::uint64_t, std::uint64_t) noexcept override {
    if (stage != stage_) return;
    std::unique_lock lock(mutex_);
    const std::uint64_t own = ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_ || ended_ >= own; });
  }
  void end(Stage, std::uint64_t, std::uint64_t) noexcept override {}

 private:
  // If the waits are not charged as they should be, the holds end all the same, and the test fails.
  static constexpr double kMostSeconds = 30;

  void look(const Loader& loader, const std::stop_token& stop) {
    double held = 0;  // waits during the holds that have ended
    while (!stop.stop_requested()) {
      const double begin = wait_for_hold(stop, loader);
      for (bool enough = false; !enough && !stop.stop_requested();) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const Stats stats = loader.stats();
        const double now = stats.wait_s() - begin;
        const double others = stats.seconds - held - now;
        enough = stats.seconds > kMostSeconds || (now >= 0.01 && held + now >= 2 * others);
        if (enough) held += now;
      }
      const std::lock_guard lock(mutex_);
      ++ended_;
      changed_.notify_all();
    }
  }
  // Returns how long the consumer had waited when the hold began.
  double wait_for_hold(const std::stop_token& stop, const Loader& loader) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return begun_ > ended_; });
    lock.unlock();
    return loader.stats().wait_s();
  }

  Stage stage_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;
  bool open_ = false;
  std::jthread watcher_;
};

/// Consumes a step: for 20 ms, and until the consumer has had the loader, since its first batch, for
/// sixty times as long as it waited for it.
inline void consume_slowly(const Loader& loader) {
  Stats stats;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stats = loader.stats();
  } while (stats.seconds < 60 &&
           stats.seconds - stats.first_batch_s < 60 * (stats.wait_s() - stats.first_batch_s));
}

}  // namespace penstock::testing_support
