// Waiting for a step with a limit, for consumers that look after something else meanwhile.
#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using testing_support::drain;
using testing_support::fake;
using testing_support::FakeSource;

Dataset two_a_batch(std::shared_ptr<FakeSource> source, int devices = 1) {
  return Dataset(std::move(source)).batch(2).prefetch_to_devices(host_devices(devices));
}

TEST(WaitFor, IsFalseUntilTheStepIsThereAndLosesNothing) {
  auto source = fake(6);
  std::latch opened(1);
  source->on_read = [&](std::uint64_t number) {
    if (number == 3) opened.wait();
  };
  Loader loader = two_a_batch(source).loader({.threads = 2});
  EXPECT_TRUE(loader.wait_for(10min));
  ASSERT_TRUE(loader.next());
  EXPECT_FALSE(loader.wait_for(0s));
  EXPECT_FALSE(loader.wait_for(5ms));
  EXPECT_EQ(loader.state().step, 1U);
  opened.count_down();
  EXPECT_TRUE(loader.wait_for(std::chrono::nanoseconds::max()));
  EXPECT_TRUE(loader.wait_for(0s));
  EXPECT_EQ(loader.state().step, 1U);
  EXPECT_EQ(drain(loader).size(), 2U);
}

TEST(WaitFor, LeavesTheEpochsAsTheyAre) {
  Loader loader = Dataset(fake(5)).batch(2).repeat(2).loader();
  std::vector<std::uint32_t> epochs;
  while (true) {
    EXPECT_TRUE(loader.wait_for(10min));
    const auto upcoming = loader.next_epoch();
    if (!upcoming) break;
    const auto step = loader.next();
    ASSERT_TRUE(step);
    EXPECT_EQ(step->epoch(), *upcoming);
    epochs.push_back(*upcoming);
  }
  EXPECT_THAT(epochs, testing::ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(WaitFor, AnEpochIsKnownBeforeItsStepIsFilled) {
  auto source = fake(4);
  std::latch opened(1);
  source->on_read = [&](std::uint64_t number) {
    if (number == 2) opened.wait();
  };
  Loader loader = two_a_batch(source).loader({.threads = 1});
  ASSERT_TRUE(loader.next());
  EXPECT_TRUE(loader.wait_for_epoch(10min));
  EXPECT_EQ(loader.next_epoch(), 0U);
  EXPECT_FALSE(loader.wait_for(0s));
  opened.count_down();
  ASSERT_TRUE(loader.next());
  EXPECT_TRUE(loader.wait_for_epoch(10min));
  EXPECT_FALSE(loader.next_epoch());
}

TEST(WaitFor, AnEpochThatIsNotKnownYetIsWaitedForWithALimit) {
  auto queue = source::queue({{"x", DType::f32, {}}});
  Loader loader = Dataset(queue).batch(2).loader();
  EXPECT_FALSE(loader.wait_for_epoch(0s));
  EXPECT_FALSE(loader.wait_for_epoch(5ms));
  queue->close();
  EXPECT_TRUE(loader.wait_for_epoch(10min));
  EXPECT_FALSE(loader.next_epoch());
}

TEST(WaitFor, AnEpochWithoutASlotIsAnErrorAndNoHang) {
  Loader loader = two_a_batch(fake(100)).loader({.threads = 1});
  std::vector<Step> held;
  const std::size_t slots = [&] {
    held.push_back(*loader.next());
    return loader.stats().slots;
  }();
  while (held.size() < slots) held.push_back(*loader.next());
  EXPECT_FALSE(loader.wait_for_epoch(0s));  // another thread might release one
  EXPECT_THROW((void)loader.wait_for_epoch(10s), Error);
  EXPECT_THROW((void)loader.next_epoch(), Error);
  held.clear();
  EXPECT_EQ(loader.next_epoch(), 0U);
}

// Whether or not the loader's thread has come to the end by then.
TEST(WaitFor, ACallerThatHoldsAllSlotsGetsTheErrorAtTheEndOfTheData) {
  for (const int looks : {0, 30, 1000}) {
    Loader loader = two_a_batch(fake(6)).loader({.threads = 1});
    std::vector<Step> held;
    while (held.size() < 3) held.push_back(*loader.next());
    ASSERT_EQ(loader.stats().slots, held.size());
    for (int look = 0; look < looks; ++look) std::this_thread::yield();
    ASSERT_THROW((void)loader.next(), Error);
    held.clear();
    ASSERT_FALSE(loader.next());
  }
}

TEST(WaitFor, IsTrueAtTheEndAndThrowsWhatNextThrows) {
  Loader ending = two_a_batch(fake(2)).loader();
  ASSERT_TRUE(ending.next());
  EXPECT_TRUE(ending.wait_for(10min));
  EXPECT_FALSE(ending.next());
  EXPECT_TRUE(ending.has_ended());

  auto source = fake(2);
  source->bad = {1};
  Loader failing = two_a_batch(source).loader();
  EXPECT_THROW((void)failing.wait_for(10min), DataError);
  EXPECT_THROW((void)failing.next(), DataError);
}

// It was not delivered.
TEST(WaitFor, WeightsMayChangeFromTheStepThatIsThereOn) {
  const Dataset dataset =
      mix({Dataset(fake(10)).repeat(), Dataset(fake(20)).repeat()}).seed(7).batch(4);
  Loader loader = dataset.loader();
  ASSERT_TRUE(loader.next());
  ASSERT_TRUE(loader.wait_for(10min));
  loader.set_weights(1, {0, 1});
  EXPECT_EQ(loader.stats().steps, 1U);
  const auto step = loader.next();
  EXPECT_EQ(step->number(), 1U);
  for (const SampleId& sample : step->samples()) EXPECT_EQ(sample.source, 1U);
}

TEST(WaitFor, SplitsTheTimeOfAWaitAsOneWaitWould) {
  auto source = fake(4);
  std::latch opened(1);
  source->on_read = [&](std::uint64_t number) {
    if (number == 2) opened.wait();
  };
  Loader loader = two_a_batch(source).loader({.threads = 1});
  ASSERT_TRUE(loader.next());
  for (int slice = 0; slice < 20; ++slice) ASSERT_FALSE(loader.wait_for(1ms));
  opened.count_down();
  ASSERT_TRUE(loader.next());
  const Stats stats = loader.stats();
  EXPECT_GE(stats[Stage::read].wait_s + stats[Stage::decode].wait_s, 0.015);
  EXPECT_NEAR(stats.consume_s + stats.wait_s(), stats.seconds, 0.01 * stats.seconds);
}

TEST(WaitFor, OneDevicesConsumerCanWaitWhileAnotherFetches) {
  auto source = fake(4);
  std::latch opened(1);
  source->on_read = [&](std::uint64_t number) {
    if (number == 0) opened.wait();
  };
  Loader loader = two_a_batch(source, 2).loader({.threads = 1});
  std::jthread fetching([device = loader.device(0)]() mutable { (void)device.next(); });
  DeviceLoader other = loader.device(1);
  EXPECT_FALSE(other.wait_for(0s));
  EXPECT_FALSE(other.wait_for(5ms));
  opened.count_down();
  EXPECT_TRUE(other.wait_for(10min));
  EXPECT_TRUE(other.next());
}

TEST(WaitFor, IsTrueForThoseWhomAStopWakes) {
  auto source = fake(4);
  std::latch reading(1);
  std::latch opened(1);
  source->on_read = [&](std::uint64_t number) {
    if (number != 0) return;
    reading.count_down();
    opened.wait();
  };
  Loader loader = two_a_batch(source).loader({.threads = 1});
  std::jthread stopping([&] {
    reading.wait();
    opened.count_down();
    loader.stop();
  });
  EXPECT_TRUE(loader.wait_for(10min));
}

}  // namespace
}  // namespace penstock
