#include <penstock/report/report.hpp>

namespace penstock {

void History::add(const Stats& stats) {
  if (!is_due(stats.seconds)) return;
  end(stats);
  if (moments_.size() < kMost) return;
  for (std::size_t k = 1; 2 * k < moments_.size(); ++k) moments_[k] = moments_[2 * k];
  moments_.resize((moments_.size() + 1) / 2);
  interval_s_ *= 2;
}

void History::end(const Stats& stats) {
  Moment moment{.seconds = stats.seconds, .samples = stats.samples};
  for (std::size_t stage = 0; stage < kStages; ++stage)
    moment.wait_s[stage] = stats.stages[stage].wait_s;
  moments_.push_back(moment);
}

}  // namespace penstock
