// loader/stall_meter: what the consumer waited for. Every nanosecond since the start is charged to
// the consumer or to one stage, so the parts add up.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include <penstock/loader/loader.hpp>

namespace penstock::loader {

using StageNs = std::array<std::int64_t, kStages>;

/// When the driver was done with each stage of one batch; 0 for not yet.
struct StepTimes {
  std::uint64_t step = 0;
  std::int64_t ordered = 0;
  std::int64_t slotted = 0;
  std::int64_t filled = 0;
  std::int64_t copied = 0;
  std::int64_t transformed = 0;
  // Of the time between slotted and filled, or last_local_ns; the rest is decoding.
  double read_share = 0;
  double transform_share = 0;  // row by row, on host devices
  // Where samples are made elsewhere, this process had made its own by then.
  std::optional<std::int64_t> last_local_ns{};
};

/// Charges the time from `from` to `to`, during which the consumer waited for `step`, to the stages
/// that the driver and the workers were in. `times` is in order of steps and reaches back to the
/// first step that the driver had not yet leased a slot for at `from`.
///
/// The driver does one step after the other, so until it leased the slot of `step` the consumer
/// waited for whatever the driver was doing, maybe for an earlier step; after that for that step's
/// own filling.
[[nodiscard]] StageNs charge(std::int64_t from, std::int64_t to, std::uint64_t step,
                             const std::deque<StepTimes>& times);

/// Adds up the consumer's time.
///
/// Threads  the caller locks.
class StallMeter {
 public:
  /// The run begins, or goes on: the time since end() does not count.
  void start(std::int64_t now) {
    if (started_ == 0) {
      started_ = last_ = now;
    } else if (ended_ != 0) {
      started_ += now - ended_;
      last_ += now - ended_;
      ended_ = 0;
    }
  }
  /// next() is entered: the time since the last return was the consumer's.
  void enter(std::int64_t now) {
    if (inside_) return;
    consume_ns_ += now - last_;
    last_ = now;
    inside_ = true;
  }
  /// next() was entered and found a batch at once.
  void pass(std::int64_t now) {
    start(now);
    enter(now);
    leave(now, {}, true);
  }
  /// next() returns; `waited` splits the time since enter().
  void leave(std::int64_t now, const StageNs& waited, bool delivered);

  /// There is nothing more, or the loader was stopped: the clock stops.
  void end(std::int64_t now) {
    if (started_ != 0 && ended_ == 0) ended_ = now;
  }

  [[nodiscard]] bool inside() const noexcept { return inside_; }
  [[nodiscard]] std::int64_t last() const noexcept { return last_; }
  /// Adds a `share` of the times as of `now` to `stats`; `waiting` is the charge since last() while
  /// inside().
  void report(Stats& stats, std::int64_t now, const StageNs& waiting, double share) const;

 private:
  std::int64_t started_ = 0;
  std::int64_t ended_ = 0;  // not at the moment: 0
  std::int64_t last_ = 0;   // of the last enter() or leave()
  std::int64_t consume_ns_ = 0;
  std::int64_t first_batch_ns_ = 0;  // from the start to the first delivery
  std::int64_t first_waits_ns_ = 0;
  StageNs waits_{};
  bool inside_ = false;
};

}  // namespace penstock::loader
