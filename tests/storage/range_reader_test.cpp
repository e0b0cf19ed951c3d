// Reads from a server that is slow, breaks off, refuses, or stalls.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "src/core/interruption.hpp"
#include "src/core/random_wait.hpp"
#include "src/core/reason_counts.hpp"
#include "src/storage/http/latency.hpp"
#include "src/storage/object_store.hpp"
#include "testing/object_server/object_server.hpp"
#include "tests/variables.hpp"

namespace penstock::storage {
namespace {

using namespace std::chrono_literals;
using penstock::test::ObjectRead;
using penstock::test::ObjectServer;
using penstock::test::Trouble;
using penstock::test::Troubles;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string noise_of(std::size_t count, unsigned seed) {
  std::string bytes(count, ' ');
  std::uint32_t state = seed * 2654435761U + 1;
  for (char& c : bytes) c = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24);
  return bytes;
}

constexpr std::size_t kOddBytes = 100'000;
// Longer than a test may take.
constexpr auto kForEver = 1000s;
// So many that a second request may be sent, and is known to be needed.
constexpr int kUsualReads = 1000;

class RangeReads : public ::testing::Test {
 protected:
  RangeReads() {
    server_.put("usual", noise_of(kOddBytes, 1));
    server_.put("odd", odd_);
    options_ = server_.options();
    options_.timeout = 600s;
  }

  void open() { store_ = open_object_store(options_); }
  // Reads are made until hedging knows how long they take.
  void open_and_read_usual() {
    open();
    for (int i = 0; i < kUsualReads; ++i) ASSERT_TRUE(read("usual", 0, kOddBytes));
  }
  // What happens to the requests for "odd", in their order; then nothing.
  void plan(std::vector<Trouble> troubles) {
    server_.misbehave({.stall = kForEver}, [troubles = std::move(troubles),
                                            at = 0U](const ObjectRead& read) mutable {
      return read.key == "odd" && at < troubles.size() ? troubles[at++] : Trouble::none;
    });
  }
  Result<std::string> read(const std::string& key, std::uint64_t offset, std::size_t count) {
    const ObjectName name{"data", key};
    const Result<FileStamp> stamp = store_->stat(name);
    if (!stamp) return stamp.fault();
    std::string text(count, '\0');
    Result<void> result =
        store_->read(name, *stamp, offset, std::as_writable_bytes(std::span(text)));
    if (!result) return result.fault();
    return text;
  }
  void expect_all(std::uint64_t offset = 0, std::size_t count = kOddBytes) {
    const Result<std::string> text = read("odd", offset, count);
    ASSERT_TRUE(text) << text.fault().to_string();
    EXPECT_TRUE(*text == odd_.substr(offset, count));
  }
  // Of "odd".
  std::vector<ObjectRead> reads() const {
    std::vector<ObjectRead> all = server_.reads();
    std::erase_if(all, [](const ObjectRead& read) { return read.key != "odd"; });
    return all;
  }

  std::string odd_ = noise_of(kOddBytes, 2);
  ObjectServer server_;
  ObjectStorageOptions options_;
  ObjectStorePtr store_;
};

TEST_F(RangeReads, AnAnswerThatBreaksOffIsGoneOnWithFromThere) {
  plan({Trouble::cut, Trouble::cut, Trouble::none, Trouble::cut});
  open();
  expect_all();
  ASSERT_EQ(reads().size(), 3U);
  EXPECT_EQ(reads()[1].offset, kOddBytes / 2);
  EXPECT_EQ(reads()[2].offset, kOddBytes / 4 * 3);
  EXPECT_TRUE(reads()[1].is_conditional);
  EXPECT_EQ(server_.counts().bytes, kOddBytes);  // no byte came twice
  expect_all(1000, 5000);
  EXPECT_EQ(reads()[3].offset, 1000U);
  EXPECT_EQ(reads()[4].offset, 3500U);
  EXPECT_EQ(reads()[4].count, 2500U);
  EXPECT_EQ(store_->counts().requests, 5U);
  EXPECT_EQ(store_->counts().failures, 3U);
  EXPECT_EQ(store_->counts().hedges, 0U);
}

TEST_F(RangeReads, AnObjectThatIsReplacedInTheMiddleOfAnAnswerIsNeverMixed) {
  for (const bool is_ignored : {false, true}) {
    server_.put("odd", odd_);
    server_.misbehave({.ignores_if_match = is_ignored}, [this](const ObjectRead& read) {
      if (!read.is_conditional) return Trouble::cut;
      server_.put("odd", noise_of(kOddBytes, 3));
      return Trouble::none;
    });
    open();
    const auto result = read("odd", 0, kOddBytes);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.fault().to_string(),
                AllOf(HasSubstr("s3://data/odd"), HasSubstr("the object was changed")));
    EXPECT_FALSE(result.fault().transient);
    EXPECT_EQ(reads().size(), 2U);
  }
}

TEST_F(RangeReads, ALateAnswerIsOvertakenByThatOfASecondRequest) {
  open_and_read_usual();
  plan({Trouble::stall});
  expect_all();
  ASSERT_GE(reads().size(), 2U);
  EXPECT_EQ(reads()[1].count, kOddBytes);
  EXPECT_GE(store_->counts().hedges, 1U);
}

TEST_F(RangeReads, OfABodyThatStallsTheRestIsAskedForOverAnotherConnection) {
  open_and_read_usual();
  plan({Trouble::stall_body});
  expect_all();
  ASSERT_GE(reads().size(), 2U);
  EXPECT_EQ(reads()[1].offset, kOddBytes / 2);
  EXPECT_TRUE(reads()[1].is_conditional);
}

TEST_F(RangeReads, ASecondRequestThatStallsIsReplaced) {
  open_and_read_usual();
  plan({Trouble::stall, Trouble::stall_body, Trouble::stall});
  expect_all();
  EXPECT_GE(reads().size(), 4U);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(read("usual", 0, kOddBytes));
}

TEST_F(RangeReads, ASecondRequestThatFailsLeavesTheFirst) {
  open_and_read_usual();
  server_.misbehave({.slow_start = 500ms}, [](const ObjectRead& read) {
    if (read.key != "odd") return Trouble::none;
    return read.earlier == 0 ? Trouble::slow_start : Trouble::busy;
  });
  expect_all();
  EXPECT_GE(reads().size(), 2U);
  EXPECT_GE(store_->counts().failures, 1U);
}

TEST_F(RangeReads, ASecondRequestThatIsRefusedLeavesTheFirst) {
  open_and_read_usual();
  server_.misbehave({.slow_start = 500ms}, [](const ObjectRead& read) {
    if (read.key != "odd") return Trouble::none;
    return read.earlier == 0 ? Trouble::slow_start : Trouble::denied;
  });
  expect_all();
  EXPECT_GE(reads().size(), 2U);
}

TEST_F(RangeReads, SecondRequestsAreAtMostTwoInAHundred) {
  open_and_read_usual();
  server_.misbehave({.slow_start = 100ms}, [](const ObjectRead&) { return Trouble::slow_start; });
  constexpr int kSlow = 20;
  for (int i = 0; i < kSlow; ++i) expect_all();
  const std::uint64_t most = (kUsualReads + kSlow) / Hedging::kReadsForOne;
  EXPECT_LE(store_->counts().hedges, most);
  EXPECT_GE(store_->counts().hedges, 1U);
  EXPECT_EQ(store_->counts().requests, kUsualReads + kSlow + store_->counts().hedges);
}

TEST_F(RangeReads, HedgingCanBeSwitchedOff) {
  options_.timeout = 1s;
  {
    const test::Variables set(test::Variables::Values{{"PENSTOCK_HEDGING", "0"}});
    open_and_read_usual();
  }
  plan({Trouble::stall});
  const auto result = read("odd", 0, kOddBytes);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason, HasSubstr("no byte for 1000 ms"));
  EXPECT_TRUE(result.fault().transient);
  EXPECT_EQ(store_->counts().hedges, 0U);
  options_.hedging = false;
  open_and_read_usual();
  plan({Trouble::stall});
  EXPECT_FALSE(read("odd", 0, kOddBytes));
  EXPECT_EQ(reads().size(), 1U);
  const test::Variables set(test::Variables::Values{{"PENSTOCK_HEDGING", "sometimes"}});
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("PENSTOCK_HEDGING to be 0 or 1")));
}

TEST_F(RangeReads, AServerThatSaysWhenToComeBackIsAskedThen) {
  plan({Trouble::busy_for_1s});
  open();
  const auto begin = std::chrono::steady_clock::now();
  expect_all();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_EQ(reads().size(), 2U);
  options_.timeout = 500ms;  // which is shorter
  plan({Trouble::busy_for_1s, Trouble::busy});
  open();
  for (int times = 0; times < 2; ++times) {
    const auto result = read("odd", 0, kOddBytes);
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.fault().transient);
    EXPECT_THAT(result.fault().reason, HasSubstr("503 (SlowDown"));
  }
  EXPECT_EQ(reads().size(), 2U);
}

TEST_F(RangeReads, WhatIsRefusedIsNotRepeated) {
  plan({Trouble::denied});
  open();
  const auto result = read("odd", 0, kOddBytes);
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.fault().transient);
  EXPECT_EQ(store_->counts().requests, 1U);
  EXPECT_EQ(store_->counts().failures, 0U);
}

TEST_F(RangeReads, AreStoppedWhileTwoRequestsAreInFlight) {
  open_and_read_usual();
  plan({Trouble::stall, Trouble::stall_body, Trouble::stall, Trouble::stall, Trouble::stall});
  std::stop_source stop;
  std::jthread watcher([&] {
    while (reads().size() < 2) std::this_thread::sleep_for(1ms);
    stop.request_stop();
  });
  const core::Interruption interruption(stop.get_token());
  const auto result = read("odd", 0, kOddBytes);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason, HasSubstr(core::Interruption::kReason));
  EXPECT_FALSE(result.fault().transient);
}

TEST(RangeReadsOfLoaders, GiveTheSameDigestFromAServerThatMisbehaves) {
  ObjectServer server;
  constexpr int kRows = 200;
  for (int i = 0; i < kRows; ++i)
    server.put(fmt::format("rows/{:04}.jpg", i), noise_of(3000 + 100 * (i % 50), i));
  const auto run = [&](bool hedging, std::vector<StorageTier>* tiers) {
    ObjectStorageOptions options = server.options();
    options.hedging = hedging;
    Loader loader =
        Dataset(source::image_folder("s3://data/rows", {.storage = options}))
            .seed(7)
            .shuffle()
            .repeat(3)
            .map(pad({.field = "image", .to = 5000, .truncate = true}))
            .batch(20)
            .loader({.digest = true, .retry = {.attempts = 10, .initial_backoff = 5ms}});
    while (loader.next()) {
    }
    if (tiers != nullptr) *tiers = loader.stats().tiers;
    return loader.digest().to_string();
  };
  const std::string expected = run(true, nullptr);
  for (const bool hedging : {true, false}) {
    server.misbehave({.busy = 0.04,
                      .busy_for_1s = 0.003,
                      .cut = 0.05,
                      .reset = 0.04,
                      .stalls = 0.02,
                      .slow_starts = 0.02,
                      .stall = 400ms,
                      .slow_start = 100ms});
    std::vector<StorageTier> tiers;
    EXPECT_EQ(run(hedging, &tiers), expected);
    const ObjectServer::Counts counts = server.counts();
    ASSERT_EQ(tiers.size(), 1U);
    EXPECT_EQ(tiers[0].reads, 3U * kRows);
    // libcurl itself sends one again where a connection that it kept is closed without an answer.
    EXPECT_LE(tiers[0].requests, counts.reads);
    EXPECT_GE(tiers[0].requests + counts.troubles.at(Trouble::reset), counts.reads);
    EXPECT_GE(tiers[0].failures, counts.troubles.at(Trouble::cut));
    EXPECT_LE(tiers[0].hedges, hedging ? 3U * kRows / Hedging::kReadsForOne + 1 : 0U);
    for (const Trouble trouble : {Trouble::cut, Trouble::reset, Trouble::busy, Trouble::stall})
      EXPECT_GT(counts.troubles.at(trouble), 0U);
  }
}

TEST(RangeReadsOfLoaders, SayAtLastWhatHappenedHowOften) {
  ObjectServer server;
  server.put("rows/1.jpg", noise_of(kOddBytes, 1));
  server.misbehave({.stall = kForEver}, [at = 0](const ObjectRead&) mutable {
    return ++at % 3 == 0 ? Trouble::stall : Trouble::busy;
  });
  ObjectStorageOptions options = server.options();
  options.timeout = 1s;
  Loader loader = Dataset(source::image_folder("s3://data/rows", {.storage = options}))
                      .map(decode_image({.crop = random_resized_crop(32)}))
                      .batch(1)
                      .loader({.retry = {.attempts = 4, .initial_backoff = 1ms}});
  EXPECT_THAT(
      [&] { (void)loader.next(); },
      ThrowsMessage<DataError>(AllOf(HasSubstr("s3://data/rows/1.jpg"), HasSubstr("status 503"),
                                     HasSubstr("(4 attempts: 3 times; cannot reach"),
                                     HasSubstr("no byte for 1000 ms (the timeout), once)"))));
}

TEST(ReasonsOfFaults, AreCounted) {
  core::ReasonCounts counts;
  counts.add("busy");
  EXPECT_EQ(counts.text("busy"), "busy");
  counts.add("busy");
  EXPECT_EQ(counts.text("busy"), "busy (2 attempts)");
  counts.add("cut");
  EXPECT_EQ(counts.text("cut"), "cut (3 attempts: once; busy, 2 times)");
}

TEST(RandomWaits, AreUpToTwiceTheirMean) {
  std::set<std::chrono::nanoseconds> waits;
  std::chrono::nanoseconds sum{};
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i) {
    const auto wait = core::random_wait(100ms);
    EXPECT_GE(wait, 0ms);
    EXPECT_LE(wait, 200ms);
    waits.insert(wait);
    sum += wait;
  }
  EXPECT_GT(waits.size(), kDraws / 2U);
  EXPECT_GT(sum / kDraws, 90ms);
  EXPECT_LT(sum / kDraws, 110ms);
  EXPECT_EQ(core::random_wait(0ns), 0ns);
}

TEST(Latencies, AreUnusualAboveThe99thPercentile) {
  LatencyHistogram histogram;
  for (unsigned i = 1; i < LatencyHistogram::kLeast; ++i) histogram.add(40ms);
  EXPECT_EQ(histogram.unusual(), LatencyHistogram::Duration::max());
  histogram.add(40ms);
  EXPECT_GE(histogram.unusual(), 40ms);
  EXPECT_LE(histogram.unusual(), 52ms);
  // 1..1000: within a bin, a quarter of a doubling.
  LatencyHistogram even;
  for (int i = 1; i <= 1008; ++i) even.add(std::chrono::milliseconds(i));
  EXPECT_GE(even.unusual(), 990ms);
  EXPECT_LE(even.unusual(), 1250ms);
}

TEST(Latencies, ThatStallAreUnusualAlsoWhereTheyAreMoreThanOneInAHundred) {
  LatencyHistogram histogram;
  for (int i = 0; i < 1008; ++i) histogram.add(i % 50 == 7 ? 10'000ms : 40ms);
  EXPECT_GE(histogram.unusual(), 120ms);
  EXPECT_LE(histogram.unusual(), 160ms);
}

TEST(Latencies, FollowAServerThatBecomesSlower) {
  LatencyHistogram histogram;
  for (int i = 0; i < 1600; ++i) histogram.add(30ms);
  EXPECT_LE(histogram.unusual(), 40ms);
  for (int i = 0; i < 16'000; ++i) histogram.add(300ms);
  EXPECT_GE(histogram.unusual(), 300ms);
  for (int i = 0; i < 16'000; ++i) histogram.add(1ms);
  EXPECT_EQ(histogram.unusual(), 20ms);  // as usual as that
}

TEST(Latencies, OfLargeReadsAreNotThoseOfSmallOnes) {
  Hedging hedging;
  for (unsigned i = 0; i < LatencyHistogram::kLeast; ++i) hedging.note_whole(4096, 30ms);
  EXPECT_LE(hedging.late_whole(1), 40ms);
  EXPECT_LE(hedging.late_whole(4096), 40ms);
  EXPECT_EQ(hedging.late_whole(std::uint64_t{4} << 20), Hedging::Duration::max());
  EXPECT_EQ(hedging.late_byte(4096), Hedging::Duration::max());
}

TEST(Hedges, AreOneForFiftyReads) {
  Hedging hedging;
  EXPECT_FALSE(hedging.take());
  for (int i = 0; i < Hedging::kReadsForOne; ++i) hedging.add_read();
  EXPECT_TRUE(hedging.take());
  EXPECT_FALSE(hedging.take());
  for (int i = 0; i < 1'000'000; ++i) hedging.add_read();
  int count = 0;
  while (hedging.take()) ++count;
  EXPECT_EQ(count, Hedging::kMostAtOnce);
}

}  // namespace
}  // namespace penstock::storage
