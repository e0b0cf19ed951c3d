#include "src/storage/http/range_reader.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <new>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/core/interruption.hpp"
#include "src/core/printable.hpp"
#include "src/storage/http/rate_limit.hpp"

namespace penstock::storage {

namespace {

using HedgeClock = HttpTime::clock;

// Second requests of one read: the second may stall, too.
constexpr int kMostHedges = 4;
// How often an answer that breaks off is gone on with, each time with more bytes.
constexpr int kMostParts = 16;
// How often one read waits for a moment that the server names.
constexpr int kMostPauses = 3;

bool is_worth_repeating(long status) noexcept {
  return status == 408 || status == 429 || status >= 500;
}

// One that stands for these bytes and no others.
bool is_strong(std::string_view etag) noexcept { return !etag.empty() && !etag.starts_with("W/"); }

void sleep_until_wanted(std::chrono::seconds pause) {
  constexpr std::chrono::milliseconds kLook(20);
  const HttpTime end = HedgeClock::now() + pause;
  while (!core::Interruption::is_requested() && HedgeClock::now() < end)
    std::this_thread::sleep_for(kLook);
}

}  // namespace

bool is_hedged(const ObjectStorageOptions& options) {
  const char* const text = std::getenv("PENSTOCK_HEDGING");
  const std::string_view value = text == nullptr ? "" : text;
  if (!value.empty() && value != "0" && value != "1")
    throw Error(fmt::format("expected PENSTOCK_HEDGING to be 0 or 1, found '{}'",
                            core::printable(value, 100)));
  return options.hedging.value_or(value != "0");
}

// One read, by one thread.
class RangeReader::Read {
 public:
  Read(const RangeReader& reader, const ByteRange& range, std::span<std::byte> into,
       const Make& make, bool heeds_pauses)
      : reader_(reader),
        range_(range),
        into_(into),
        make_(make),
        heeds_pauses_(heeds_pauses),
        flight_(*reader.client_) {}

  Result<HttpResponse> run() {
    reader_.hedging_.add_read();
    if (auto fault = start(0)) return *std::move(fault);
    for (;;) {
      constexpr std::chrono::milliseconds kAnew(100);
      const HttpTime due = due_at();
      const auto ended = flight_.wait(std::min(due, HedgeClock::now() + kAnew));
      if (ended) {
        if (auto answer = take(*ended)) return *std::move(answer);
      } else if (core::Interruption::is_requested()) {
        return Fault{.reason = core::Interruption::kReason};
      } else if (HedgeClock::now() >= due) {
        hedge();
      }
    }
  }

 private:
  // A request in flight, in a place of the flight.
  struct Request {
    ByteRange part{};
    bool is_direct = true;         // writes into the caller's memory
    std::vector<std::byte> own{};  // where it does not
  };

  [[nodiscard]] std::optional<std::size_t> other_than(std::size_t place) const {
    const std::size_t other = 1 - place;
    return flight_.is_free(other) ? std::nullopt : std::optional(other);
  }

  // Asks for what is not there yet.
  std::optional<Fault> start(std::size_t place) {
    Request& request = requests_[place];
    request.part = {range_.offset + done_, range_.count - done_, range_.size};
    request.is_direct = !other_than(place);
    Result<HttpRequest> made = make_(request.part, done_ > 0 ? etag_ : std::string());
    if (!made) return std::move(made.fault());
    std::span<std::byte> into = into_.subspan(done_);
    if (!request.is_direct) {
      request.own.resize(request.part.count);
      into = request.own;
    }
    flight_.start(place, *made, into);
    latest_ = place;
    ++reader_.requests_;
    return std::nullopt;
  }

  // What has come of an answer that may be gone on with counts as done. Returns whether there is more than before.
  bool keep(std::size_t place) {
    const Request& request = requests_[place];
    const HttpResponse& so_far = flight_.so_far(place);
    const std::string etag = so_far.header("etag");
    const bool is_usable = request.is_direct && so_far.is_good() && is_strong(etag) &&
                           (done_ == 0 || etag == etag_) && so_far.received < request.part.count &&
                           !request.part.fault_of_head(so_far, "", "");
    const std::uint64_t done = request.part.offset - range_.offset + so_far.received;
    if (!is_usable || done <= done_) return false;
    if (done_ == 0) {
      first_ = so_far;
      etag_ = etag;
    }
    done_ = done;
    return true;
  }

  // The result of the read, unless it goes on.
  std::optional<Result<HttpResponse>> take(std::size_t place) {
    const Request& request = requests_[place];
    const HttpProgress progress = flight_.progress(place);
    const bool has_more = flight_.so_far(place).received < request.part.count && keep(place);
    Result<HttpResponse> answer = flight_.take(place);
    const bool is_rest = request.part.count < range_.count;
    if (answer && answer->is_good() && !request.part.fault_of(*answer, "", "")) {
      if (!is_rest || answer->header("etag") == etag_)
        return complete(place, *std::move(answer), progress);
      answer->status = kChanged;
    }
    // Another answer than was asked for; of a second request it means that only the first can be used.
    const bool is_other =
        answer && answer->is_good() && request.part.fault_of_head(*answer, "", "").has_value();
    if (is_other && !is_rest && request.is_direct) return answer;
    const bool is_failure = !answer ? answer.fault().transient
                                    : answer->is_good() || is_worth_repeating(answer->status);
    // What the server refuses of a second request it may have allowed of the first.
    const bool may_be_left =
        !request.is_direct && other_than(place) && (!answer || answer->status >= 400);
    if (!is_failure && !may_be_left) return answer;
    ++reader_.failures_;
    if (const auto other = other_than(place)) {
      latest_ = *other;
      return std::nullopt;
    }
    if (is_other) {  // nothing can be gone on with here
      if (++parts_ > kMostParts) return answer;
      done_ = 0;
      return again(place);
    }
    if (has_more && ++parts_ <= kMostParts) return again(place);
    if (answer && is_rest && answer->is_good()) return *request.part.fault_of(*answer, "", "");
    if (!answer || !heeds_pauses_ || pauses_ == kMostPauses) return answer;
    const auto seconds = seconds_to_wait(*answer);
    const auto most = std::chrono::floor<std::chrono::seconds>(reader_.client_->timeouts().idle);
    if (!seconds || std::cmp_greater(*seconds, most.count())) return answer;
    ++pauses_;
    sleep_until_wanted(std::chrono::seconds(*seconds));
    return again(place);
  }

  std::optional<Result<HttpResponse>> again(std::size_t place) {
    if (auto fault = start(place)) return *std::move(fault);
    return std::nullopt;
  }

  // All is there.
  Result<HttpResponse> complete(std::size_t place, HttpResponse answer,
                                const HttpProgress& progress) {
    const Request& request = requests_[place];
    if (!request.is_direct)
      std::ranges::copy(request.own, into_.begin() + static_cast<std::ptrdiff_t>(
                                                         request.part.offset - range_.offset));
    reader_.hedging_.note_first_byte(request.part.count, progress.first_byte - progress.started);
    reader_.hedging_.note_whole(request.part.count, progress.last_byte - progress.started);
    if (const auto other = other_than(place)) give_up(*other);
    if (request.part.count == range_.count) return answer;
    first_.received = range_.count;
    return std::move(first_);
  }

  // One that is late takes at least as long as it took up to now.
  void give_up(std::size_t place) {
    const HttpProgress& progress = flight_.progress(place);
    const std::uint64_t bytes = requests_[place].part.count;
    const auto so_long = HedgeClock::now() - progress.started;
    Hedging& hedging = reader_.hedging_;
    if (!progress.has_begun() && so_long > hedging.late_byte(bytes))
      hedging.note_first_byte(bytes, so_long);
    if (so_long > hedging.late_whole(bytes)) hedging.note_whole(bytes, so_long);
    flight_.give_up(place);
    requests_[place].own = {};
  }

  // When the request that was sent last is late.
  [[nodiscard]] HttpTime due_at() const {
    if (!reader_.is_hedged_ || hedges_ == kMostHedges || flight_.is_free(latest_))
      return HttpTime::max();
    const auto after = [](HttpTime time, Hedging::Duration duration) {
      return duration == Hedging::Duration::max() ? HttpTime::max() : time + duration;
    };
    const HttpProgress& progress = flight_.progress(latest_);
    const std::uint64_t bytes = requests_[latest_].part.count;
    const HttpTime heard = progress.has_begun() ? progress.last_byte : progress.started;
    const HttpTime late = std::min(after(heard, reader_.hedging_.late_byte(bytes)),
                                   after(progress.started, reader_.hedging_.late_whole(bytes)));
    return std::max(late, not_before_);
  }

  void hedge() {
    constexpr std::chrono::milliseconds kAnew(20);
    constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // of memory for the second
    if (range_.count - done_ > kMostBytes) {
      hedges_ = kMostHedges;
      return;
    }
    if (!reader_.hedging_.take()) {
      not_before_ = HedgeClock::now() + kAnew;
      return;
    }
    for (std::size_t place = 0; place < HttpFlight::kMost; ++place)
      if (!flight_.is_free(place)) (void)keep(place);
    std::size_t place = 1 - latest_;
    if (!flight_.is_free(place)) {
      // Both are late: the one that has brought less makes room.
      if (flight_.so_far(latest_).received < flight_.so_far(place).received) place = latest_;
      give_up(place);
    }
    ++hedges_;
    // What cannot be asked for now, or has no room, is not hedged.
    bool is_sent = false;
    try {
      is_sent = !start(place);
    } catch (const std::bad_alloc&) {
    }
    if (is_sent)
      ++reader_.hedges_;
    else
      hedges_ = kMostHedges;
  }

  const RangeReader& reader_;
  ByteRange range_;
  std::span<std::byte> into_;
  const Make& make_;
  bool heeds_pauses_;
  std::array<Request, HttpFlight::kMost> requests_{};
  std::size_t latest_ = 0;
  // The bytes at the start of `into_` that are there, the head of the answer that they came with, and its ETag.
  std::uint64_t done_ = 0;
  HttpResponse first_{};
  std::string etag_{};
  int hedges_ = 0;
  int parts_ = 0;
  int pauses_ = 0;
  HttpTime not_before_{};
  HttpFlight flight_;  // the last, since its requests write into the others' memory
};

Result<HttpResponse> RangeReader::read(const ByteRange& range, std::span<std::byte> into,
                                       const Make& make, bool heeds_pauses) const {
  return Read(*this, range, into, make, heeds_pauses).run();
}

}  // namespace penstock::storage
