#include "src/storage/http/rate_limit.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "src/core/interruption.hpp"

namespace penstock::storage {

using PauseClock = std::chrono::steady_clock;

namespace {

std::optional<std::uint64_t> number_at_start(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop == text.data()) return std::nullopt;
  return number;
}

std::string_view without_blanks_before(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

}  // namespace

std::optional<std::uint64_t> seconds_to_wait(const HttpResponse& response) {
  // "resolvers";r=0;t=55: of the draft of the IETF, as the Hub sends it.
  const std::string limit = response.header("ratelimit");
  if (limit.find(";r=0;") != limit.npos)
    if (const std::size_t at = limit.find(";t="); at != limit.npos)
      if (const auto seconds = number_at_start(std::string_view(limit).substr(at + 3)))
        return seconds;
  return number_at_start(without_blanks_before(response.header("retry-after")));
}

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
