#include <algorithm>

#include <penstock/loader/loader.hpp>

namespace penstock {

std::string_view Stats::bottleneck() const noexcept {
  constexpr double kNoticeable = 0.02;
  if (stall_fraction < kNoticeable) return "consumer";
  const auto longest = std::ranges::max_element(stages, {}, &StageTime::wait_s);
  return name_of(static_cast<Stage>(longest - stages.begin()));
}

}  // namespace penstock
