#include "src/loader/stall_meter.hpp"

#include <algorithm>
#include <numeric>

namespace penstock::loader {

namespace {

constexpr double kNs = 1e-9;

std::int64_t sum(const StageNs& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

}  // namespace

StageNs charge(std::int64_t from, std::int64_t to, std::uint64_t step,
               const std::deque<StepTimes>& times) {
  StageNs parts{};
  std::int64_t at = from;
  const auto until = [&](std::int64_t stamp) {
    const std::int64_t end = stamp == 0 ? to : std::clamp(stamp, at, to);
    const std::int64_t span = end - at;
    at = end;
    return span;
  };
  const auto part = [&](Stage stage) -> std::int64_t& {
    return parts[static_cast<std::size_t>(stage)];
  };

  for (const StepTimes& times_of : times) {
    if (times_of.step > step) break;
    part(Stage::order) += until(times_of.ordered);
    part(Stage::slot) += until(times_of.slotted);
    if (times_of.step != step) continue;
    const std::int64_t last_local_ns = times_of.last_local_ns.value_or(0);
    const std::int64_t filling =
        times_of.last_local_ns && last_local_ns == 0
            ? 0
            : until(times_of.last_local_ns ? last_local_ns : times_of.filled);
    const auto of_filling = [&](double share) {
      return static_cast<std::int64_t>(share * static_cast<double>(filling));
    };
    const std::int64_t reading = of_filling(times_of.read_share);
    const std::int64_t transforming = of_filling(times_of.transform_share);
    part(Stage::read) += reading;
    part(Stage::device_transform) += transforming;
    part(Stage::decode) += filling - reading - transforming;
    if (times_of.last_local_ns) part(Stage::remote) += until(times_of.filled);
    part(Stage::copy) += until(times_of.copied);
    part(Stage::device_transform) += until(times_of.transformed);
    part(Stage::copy) += until(0);  // handing over
  }
  part(Stage::order) += until(0);  // the driver has not begun, or found the end
  return parts;
}

void StallMeter::leave(std::int64_t now, const StageNs& waited, bool delivered) {
  for (std::size_t stage = 0; stage < kStages; ++stage) waits_[stage] += waited[stage];
  last_ = now;
  inside_ = false;
  if (ended_ != 0) ended_ = now;
  if (delivered && first_batch_ns_ == 0) {
    first_batch_ns_ = std::max<std::int64_t>(now - started_, 1);
    first_waits_ns_ = sum(waits_);
  }
}

void StallMeter::report(Stats& stats, std::int64_t now, const StageNs& waiting,
                        double share) const {
  if (started_ == 0) return;
  if (ended_ != 0) now = ended_;
  const std::int64_t consumed = inside_ ? 0 : now - last_;
  stats.seconds += share * static_cast<double>(now - started_) * kNs;
  stats.consume_s += share * static_cast<double>(consume_ns_ + consumed) * kNs;
  stats.first_batch_s += share * static_cast<double>(first_batch_ns_) * kNs;
  std::int64_t waited = 0;
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    const std::int64_t wait = waits_[stage] + (inside_ ? waiting[stage] : 0);
    stats.stages[stage].wait_s += share * static_cast<double>(wait) * kNs;
    waited += wait;
  }
  const std::int64_t since_first = now - started_ - first_batch_ns_;
  if (first_batch_ns_ > 0 && since_first > 0)
    stats.stall_fraction +=
        share * static_cast<double>(waited - first_waits_ns_) / static_cast<double>(since_first);
}

}  // namespace penstock::loader
