#include <chrono>
#include <deque>
#include <latch>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "src/loader/stall_meter.hpp"
#include "tests/loader/fakes.hpp"
#include "tests/loader/slow_stage.hpp"

namespace penstock {
namespace {

using loader::charge;
using loader::StageNs;
using loader::StepTimes;
using testing_support::consume_slowly;
using testing_support::fake;
using testing_support::SlowStage;
using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// Every nanosecond is charged to a stage or the consumer.
void expect_the_parts_add_up(const Stats& stats) {
  EXPECT_NEAR(stats.consume_s + stats.wait_s(), stats.seconds, 1e-6);
}

TEST(Charge, FollowsABatchThroughItsStages) {
  const std::deque<StepTimes> times{{.step = 4,
                                     .ordered = 110,
                                     .slotted = 130,
                                     .filled = 170,
                                     .copied = 175,
                                     .transformed = 176,
                                     .read_share = 0.25}};
  // order, slot, read, decode, remote, copy, device_transform
  EXPECT_EQ(charge(100, 177, 4, times), (StageNs{10, 20, 10, 30, 0, 6, 1}));
  EXPECT_EQ(charge(150, 175, 4, times), (StageNs{0, 0, 5, 15, 0, 5, 0}));
  EXPECT_EQ(charge(175, 180, 4, times), (StageNs{0, 0, 0, 0, 0, 4, 1}));
}

TEST(Charge, BlamesEarlierStepsForWhatTheDriverDidMeanwhile) {
  const std::deque<StepTimes> times{
      {.step = 3, .ordered = 105, .slotted = 140, .filled = 900},
      {.step = 4, .ordered = 150, .slotted = 155, .filled = 160},
  };
  EXPECT_EQ(charge(100, 160, 4, times), (StageNs{15, 40, 0, 5, 0}));
}

TEST(Charge, TakesUnfinishedStagesAsGoingOn) {
  EXPECT_EQ(charge(100, 160, 0, {}), (StageNs{60, 0, 0, 0, 0}));
  EXPECT_EQ(charge(100, 160, 0, {{.step = 0, .ordered = 120}}), (StageNs{20, 40, 0, 0, 0}));
  EXPECT_EQ(charge(100, 160, 0, {{.step = 0, .ordered = 120, .slotted = 125}}),
            (StageNs{20, 5, 0, 35, 0}));
}

TEST(Charge, RowsMadeElsewhereAreWaitedForOnceThisProcessHasMadeItsOwn) {
  StepTimes times{.step = 4,
                  .ordered = 110,
                  .slotted = 130,
                  .filled = 170,
                  .copied = 175,
                  .transformed = 176,
                  .read_share = 0.25,
                  .last_local_ns = 142};
  EXPECT_EQ(charge(100, 177, 4, {times}), (StageNs{10, 20, 3, 9, 28, 6, 1}));
  times.last_local_ns = 169;
  EXPECT_EQ(charge(130, 170, 4, {times}), (StageNs{0, 0, 9, 30, 1, 0, 0}));
  times.last_local_ns = 0;  // it made none
  EXPECT_EQ(charge(100, 177, 4, {times}), (StageNs{10, 20, 0, 0, 40, 6, 1}));
  times.filled = times.copied = times.transformed = 0;  // nor has anybody else
  EXPECT_EQ(charge(100, 177, 4, {times}), (StageNs{10, 20, 0, 0, 47, 0, 0}));
}

class EveryStage : public testing::TestWithParam<Stage> {};

// SEMANTICS proof 16.
TEST_P(EveryStage, IsNamedWhenItIsSlowAndThePartsAddUp) {
  SlowStage slow(GetParam());
  const bool per_sample = GetParam() == Stage::read || GetParam() == Stage::decode;
  Loader loader = Dataset(fake(1'000))
                      .repeat()
                      .batch(per_sample ? 1 : 4)
                      .prefetch_to_devices(host_devices(1), {.depth = 2})
                      .loader({.threads = 1, .observer = &slow});
  slow.watch(loader);
  // The meter's own clock runs between what is read around its start and around its report.
  const auto before_start = Clock::now();
  loader.start();
  const auto started = Clock::now();
  for (int step = 0; step < 40; ++step) EXPECT_TRUE(loader.next());
  const auto before_report = Clock::now();
  const Stats stats = loader.stats();
  const auto reported = Clock::now();
  EXPECT_GE(stats.seconds, seconds(before_report - started) - 1e-6);
  EXPECT_LE(stats.seconds, seconds(reported - before_start) + 1e-6);
  expect_the_parts_add_up(stats);

  slow.release();
  EXPECT_EQ(stats.bottleneck(), name_of(GetParam()));
  EXPECT_GT(stats[GetParam()].wait_s, 0.3);  // of 40 holds of at least 10 ms
}

INSTANTIATE_TEST_SUITE_P(Stall, EveryStage,
                         testing::Values(Stage::order, Stage::slot, Stage::read, Stage::decode,
                                         Stage::copy, Stage::device_transform),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(Stall, IsTheConsumersOwnWhenTheInputKeepsUp) {
  Loader loader = Dataset(fake(1'000)).repeat().batch(4).loader({.threads = 2});
  for (int step = 0; step < 20; ++step) {
    ASSERT_TRUE(loader.next());
    consume_slowly(loader);
  }
  const Stats stats = loader.stats();
  expect_the_parts_add_up(stats);
  EXPECT_EQ(stats.bottleneck(), "consumer");
  EXPECT_LT(stats.stall_fraction, 0.02);
}

TEST(Stall, IsVisibleWhileItLasts) {
  auto source = fake(10);
  std::latch seen(1);
  source->on_read = [&](std::uint64_t) { seen.wait(); };
  Loader loader = Dataset(source).batch(1).loader({.threads = 1});
  std::jthread consumer([&] { (void)loader.next(); });
  Stats stats;
  do {
    std::this_thread::yield();
    stats = loader.stats();
  } while (stats.wait_s() < 0.1);
  seen.count_down();
  EXPECT_EQ(stats.steps, 0U);
  expect_the_parts_add_up(stats);
}

// What a program does after its last step is no part of the run.
TEST(Stall, TheClockStopsAtTheEndAndGoesOnWithTheData) {
  constexpr std::chrono::milliseconds kPause(200);
  const auto expect_stopped = [&](const Loader& loader, const char* why) {
    const Stats before = loader.stats();
    std::this_thread::sleep_for(kPause);
    const Stats after = loader.stats();
    EXPECT_EQ(after.seconds, before.seconds) << why;
    EXPECT_EQ(after.consume_s, before.consume_s) << why;
    EXPECT_EQ(after.stall_fraction, before.stall_fraction) << why;
    expect_the_parts_add_up(after);
  };
  auto source = fake(8);
  Loader loader = Dataset(source).batch(4).loader({.threads = 1});
  while (loader.next()) {
  }
  expect_stopped(loader, "the end of the data");
  loader.start();
  (void)loader.next();
  expect_stopped(loader, "the end, asked for again");
  const double first = loader.stats().seconds;
  loader.rewind();
  std::this_thread::sleep_for(kPause);
  const auto begin = Clock::now();
  while (loader.next()) {
  }
  const double second = seconds(Clock::now() - begin);
  expect_stopped(loader, "the end after rewind()");
  EXPECT_GT(loader.stats().seconds, first);
  EXPECT_LE(loader.stats().seconds, first + second + 1e-6);  // the pause does not count
  EXPECT_EQ(loader.stats().steps, 4U);

  loader.rewind();
  (void)loader.next();
  loader.stop();
  expect_stopped(loader, "stop()");

  source->bad = {5};
  Loader broken = Dataset(source).batch(4).loader({.threads = 1});
  EXPECT_TRUE(broken.next());
  EXPECT_THROW((void)broken.next(), DataError);
  expect_stopped(broken, "an error");

  Loader apart =
      Dataset(source).take(4).batch(2).prefetch_to_devices(host_devices(2)).loader({.threads = 1});
  for (std::size_t part = 0; part < 2; ++part) {
    auto device = apart.device(part);
    while (device.next()) {
    }
  }
  expect_stopped(apart, "both devices at the end");
}

}  // namespace
}  // namespace penstock
