#include "src/storage/hub/rate_limit.hpp"

#include <algorithm>
#include <thread>

#include "src/core/interruption.hpp"
#include "src/storage/hub/hub_answers.hpp"

namespace penstock::storage {

using PauseClock = std::chrono::steady_clock;

void RateLimit::note(const HttpResponse& response) {
  if (response.status != 429 && response.status != 503) return;
  const auto seconds = seconds_to_wait(response);
  if (!seconds || *seconds > kLongestPause) return;
  const auto wanted =
      (PauseClock::now() + std::chrono::seconds(*seconds)).time_since_epoch().count();
  auto until = until_.load();
  while (until < wanted && !until_.compare_exchange_weak(until, wanted)) {
  }
}

void RateLimit::wait() const {
  constexpr std::chrono::milliseconds kLook(20);
  while (!core::Interruption::is_requested()) {
    const PauseClock::duration left =
        PauseClock::duration(until_.load()) - PauseClock::now().time_since_epoch();
    if (left <= PauseClock::duration::zero()) return;
    std::this_thread::sleep_for(std::min<PauseClock::duration>(left, kLook));
  }
}

}  // namespace penstock::storage
