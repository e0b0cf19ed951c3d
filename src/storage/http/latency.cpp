#include "src/storage/http/latency.hpp"

#include <algorithm>
#include <bit>

namespace penstock::storage {

namespace {

constexpr std::uint64_t kFirstBinNs = 1 << 16;  // all that takes less is one
constexpr LatencyHistogram::Duration kLeastUnusual = std::chrono::milliseconds(20);

// Which quarter of which doubling of 2^14 ns.
std::size_t bin_of(std::uint64_t ns, std::size_t bins) noexcept {
  const std::uint64_t quarters = std::max(ns, kFirstBinNs);
  const int shift = std::bit_width(quarters) - 3;
  const std::uint64_t quarter = (quarters >> shift) & 3;
  const int doubling = std::bit_width(quarters) - std::bit_width(kFirstBinNs);
  return std::min(static_cast<std::size_t>(doubling) * 4 + quarter, bins - 1);
}

// What is less than the next bin's.
std::uint64_t end_of_bin(std::size_t bin) noexcept {
  return (kFirstBinNs << (bin / 4)) / 4 * (5 + bin % 4);
}

}  // namespace

void LatencyHistogram::add(Duration duration) {
  const std::lock_guard lock(mutex_);
  ++bins_[bin_of(static_cast<std::uint64_t>(std::max<Duration::rep>(duration.count(), 0)), kBins)];
  ++count_;
  if (count_ >= kWindow) {
    count_ = 0;
    for (std::uint32_t& bin : bins_) count_ += bin /= 2;
  }
  constexpr std::uint32_t kAnew = 16;
  if (++added_ % kAnew != 0 && added_ != kLeast) return;
  if (added_ < kLeast) return;
  unusual_ = std::max(std::min(percentile(99), 3 * percentile(90)), kLeastUnusual).count();
}

LatencyHistogram::Duration LatencyHistogram::percentile(std::uint32_t percent) const noexcept {
  const std::uint64_t wanted = std::uint64_t{count_} * percent;
  std::uint64_t below = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    below += bins_[bin];
    if (below * 100 >= wanted) return Duration(end_of_bin(bin));
  }
  return Duration::max();
}

std::size_t Hedging::size_of(std::uint64_t bytes) noexcept {
  constexpr int kSmallest = 12;
  const int doublings = std::bit_width(bytes - (bytes > 0 ? 1 : 0));
  return std::min(static_cast<std::size_t>((std::max(doublings, kSmallest) - kSmallest + 2) / 3),
                  kSizes - 1);
}

void Hedging::note_first_byte(std::uint64_t bytes, Duration duration) {
  first_byte_[size_of(bytes)].add(duration);
}
void Hedging::note_whole(std::uint64_t bytes, Duration duration) {
  whole_[size_of(bytes)].add(duration);
}
Hedging::Duration Hedging::late_byte(std::uint64_t bytes) const noexcept {
  return first_byte_[size_of(bytes)].unusual();
}
Hedging::Duration Hedging::late_whole(std::uint64_t bytes) const noexcept {
  return whole_[size_of(bytes)].unusual();
}

void Hedging::add_read() noexcept {
  int reads = reads_;
  while (reads < kReadsForOne * kMostAtOnce && !reads_.compare_exchange_weak(reads, reads + 1)) {
  }
}

bool Hedging::take() noexcept {
  int reads = reads_;
  while (reads >= kReadsForOne)
    if (reads_.compare_exchange_weak(reads, reads - kReadsForOne)) return true;
  return false;
}

}  // namespace penstock::storage
