#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing_support::drain;
using testing_support::fake;
using testing_support::FakeSource;
using testing_support::Seen;

constexpr std::uint64_t kSamples = 5'000;

/// A fake() that reads up to 16 together.
class Together final : public FakeSource {
 public:
  Together() : FakeSource(kSamples) {}

  bool throws = false;                             ///< when several are asked for
  std::set<std::uint64_t> transient;               ///< the first time
  mutable std::atomic<std::uint64_t> longest = 0;  ///< so many were asked for at once

  [[nodiscard]] std::size_t reads_together() const noexcept override { return 16; }
  void read_together(std::span<RecordRead> reads) const override {
    longest = std::max<std::uint64_t>(longest, reads.size());
    if (throws) throw std::runtime_error("not together");
    for (RecordRead& one : reads)
      one.result = transient.contains(one.number) ? Fault{.reason = "for now", .transient = true}
                                                  : read(one.number, *one.record);
  }
};

Dataset plan(const SourcePtr& source, int devices = 2) {
  return Dataset(source).shuffle({.seed = 3}).batch(100).prefetch_to_devices(host_devices(devices));
}

std::vector<Seen> seen_of(const SourcePtr& source, const LoaderOptions& options = {.threads = 3}) {
  Loader loader = plan(source).loader(options);
  return drain(loader);
}

TEST(ReadTogether, DeliversWhatReadsOneByOneDo) {
  const auto expected = seen_of(fake(kSamples), {.digest = true, .threads = 2});
  for (const int threads : {1, 2, 8}) {
    const auto source = std::make_shared<Together>();
    EXPECT_EQ(seen_of(source, {.digest = true, .threads = threads}), expected) << threads;
    EXPECT_GT(source->longest, 1U) << "nothing was read together";
    EXPECT_LE(source->longest, 16U);
  }
}

TEST(ReadTogether, AResumeInTheMiddleOfAnEpochGoesOn) {
  const auto expected = seen_of(fake(kSamples));
  Loader first = plan(std::make_shared<Together>()).loader({.threads = 2});
  (void)drain(first, 17);
  Loader second = plan(std::make_shared<Together>()).loader({.threads = 5});
  second.restore(first.state());
  EXPECT_TRUE(std::ranges::equal(drain(second), std::span(expected).subspan(17)));
}

TEST(ReadTogether, ABadRecordIsAFaultOfItsOwn) {
  const auto masked = [](const std::shared_ptr<FakeSource>& source, OnFault policy) {
    source->bad = {7, 8, 2'000, kSamples - 1};
    Loader loader = plan(source).loader({.on_fault = policy, .threads = 2});
    auto steps = drain(loader);
    EXPECT_EQ(loader.faults().size(), 4U);
    for (const Fault& fault : loader.faults()) EXPECT_EQ(fault.reason, "made bad");
    return steps;
  };
  for (const OnFault policy : {OnFault::mask, OnFault::replace}) {
    const auto source = std::make_shared<Together>();
    EXPECT_EQ(masked(source, policy), masked(fake(kSamples), policy));
    EXPECT_GT(source->longest, 1U);
  }
}

TEST(ReadTogether, WhatMayGoByIsReadAgain) {
  const auto source = std::make_shared<Together>();
  for (std::uint64_t number = 0; number < kSamples; number += 50) source->transient.insert(number);
  using namespace std::chrono_literals;
  EXPECT_EQ(seen_of(source, {.threads = 3, .retry = {.attempts = 3, .initial_backoff = 1ms}}),
            seen_of(fake(kSamples)));

  const auto with_attempts = [&](int attempts) {
    Loader loader = plan(source).loader({.on_fault = OnFault::mask,
                                         .threads = 2,
                                         .retry = {.attempts = attempts, .initial_backoff = 1ms}});
    (void)drain(loader);
    EXPECT_LE(loader.stats().retries, source->transient.size());
    return std::pair(loader.stats().retries, loader.stats().faults);
  };
  // A sample that is alone in its grain is read by read(), which finds nothing wrong.
  const auto [none, faults] = with_attempts(1);
  EXPECT_EQ(none, 0U) << "the read together was the attempt";
  EXPECT_GT(faults, 0U);
  const auto [retries, left] = with_attempts(2);
  EXPECT_GT(retries, 0U);
  EXPECT_EQ(left, 0U);
}

TEST(ReadTogether, WhereItThrowsEachIsReadByItself) {
  const auto source = std::make_shared<Together>();
  source->throws = true;
  EXPECT_EQ(seen_of(source), seen_of(fake(kSamples)));
  EXPECT_GT(source->longest, 1U);
}

TEST(ReadTogether, SourcesThatDoAndThatDoNotMayBeMixed) {
  const auto mixed = [](const SourcePtr& one, const SourcePtr& other) {
    Loader loader = mix({Dataset(one).repeat(), Dataset(other).repeat()})
                        .seed(5)
                        .take(9'000)
                        .batch(64)
                        .loader({.threads = 2});
    return drain(loader);
  };
  const auto source = std::make_shared<Together>();
  EXPECT_EQ(mixed(source, fake(100)), mixed(fake(kSamples), fake(100)));
  EXPECT_GT(source->longest, 1U);
}

// Each record's share of it would be too small for one that fits by itself.
TEST(ReadTogether, WithAByteBudgetRecordsAreReadOneByOne) {
  const auto source = std::make_shared<Together>();
  EXPECT_EQ(seen_of(source, {.threads = 2, .budget_bytes = std::size_t{64} << 20}),
            seen_of(fake(kSamples)));
  EXPECT_EQ(source->longest, 0U);
}

}  // namespace
}  // namespace penstock
