// storage/http/latency: how long good answers take, and when a request is sent a second time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace penstock::storage {

/// How long something took the last thousand times or two, in bins of a quarter of a doubling. What is older counts for less:
/// all counts are halved now and then.
///
/// Threads  any number at once
class LatencyHistogram {
 public:
  using Duration = std::chrono::nanoseconds;
  /// Of fewer there is no 99th percentile.
  static constexpr std::uint32_t kLeast = 100;

  void add(Duration duration);
  /// More than is usual: the 99th percentile, and where that is among stalls, because 1% of all do so, three times the 90th.
  /// At least 20 ms; Duration::max() where fewer than kLeast were added.
  [[nodiscard]] Duration unusual() const noexcept { return Duration(unusual_.load()); }

 private:
  static constexpr std::size_t kBins = 128;
  static constexpr std::uint32_t kWindow = 2000;
  [[nodiscard]] Duration percentile(std::uint32_t percent) const noexcept;

  std::mutex mutex_;
  std::array<std::uint32_t, kBins> bins_{};
  std::uint32_t count_ = 0;
  std::uint32_t added_ = 0;
  std::atomic<Duration::rep> unusual_ = Duration::max().count();
};

/// When a read of an object is slower than others of about its size, and is hedged by a second request ("The Tail at Scale",
/// Dean and Barroso, 2013); and how many of these there may be.
///
/// Threads  any number at once
class Hedging {
 public:
  using Duration = LatencyHistogram::Duration;
  /// Second requests are at most one in so many reads: 2%.
  static constexpr int kReadsForOne = 50;
  /// After a long time without any, so many may be sent at once.
  static constexpr int kMostAtOnce = 16;

  /// A good answer with `bytes` of a body came, or had not come yet: its first byte, and all of it, after so long.
  void note_first_byte(std::uint64_t bytes, Duration duration);
  void note_whole(std::uint64_t bytes, Duration duration);
  /// After which an answer is late: to begin, or to go on once it has begun; and to be complete.
  [[nodiscard]] Duration late_byte(std::uint64_t bytes) const noexcept;
  [[nodiscard]] Duration late_whole(std::uint64_t bytes) const noexcept;

  /// One more read.
  void add_read() noexcept;
  /// Whether one more second request may be sent, which then counts.
  [[nodiscard]] bool take() noexcept;

 private:
  // Up to 4 KiB, and then 8 times as many bytes each.
  static constexpr std::size_t kSizes = 6;
  [[nodiscard]] static std::size_t size_of(std::uint64_t bytes) noexcept;

  std::array<LatencyHistogram, kSizes> first_byte_{};
  std::array<LatencyHistogram, kSizes> whole_{};
  std::atomic<int> reads_ = 0;  // that no second request was sent for
};

}  // namespace penstock::storage
