// One consumer thread per device: SEMANTICS D6, D7 and F1.
#include <array>
#include <atomic>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/core/interruption.hpp"
#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::fake;
using testing_support::see;

Dataset plan(std::uint64_t samples, std::uint64_t batch, int devices, int depth = 2,
             Split split = Split::scatter) {
  return Dataset(fake(samples))
      .batch(batch)
      .prefetch_to_devices(host_devices(devices), {.depth = depth, .split = split});
}

void wait_until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

/// What one consumer got: sample numbers, batch by batch.
using Batches = std::vector<std::vector<std::uint64_t>>;

Batches take_all(
    DeviceLoader device, const std::function<void()>& meanwhile = [] {}) {
  Batches batches;
  for (const DeviceBatch& batch : device) {
    EXPECT_EQ(batch.step(), batches.size());
    EXPECT_EQ(batch.device(), device.device());
    batches.emplace_back();
    for (std::uint64_t row = 0; row < batch.size(); ++row)
      batches.back().push_back(batch["number"].data<std::uint64_t>()[2 * row]);
    meanwhile();
  }
  return batches;
}

TEST(DeviceLoader, EachConsumerGetsItsPartOfEveryStep) {
  constexpr int kDevices = 4;
  const Dataset dataset = plan(103, 16, kDevices);
  std::vector<Batches> expected(kDevices);
  Loader steps = dataset.loader();
  while (const auto step = steps.next())
    for (std::size_t part = 0; part < kDevices; ++part) {
      expected[part].emplace_back();
      for (const SampleId& id : (*step)[part].samples()) expected[part].back().push_back(id.number);
    }
  for (int run = 0; run < 100; ++run) {
    Loader loader = dataset.loader({.threads = 1 + run % 3});
    std::vector<Batches> found(kDevices);
    {
      std::vector<std::jthread> consumers;
      for (std::size_t part = 0; part < kDevices; ++part)
        consumers.emplace_back([&, part] { found[part] = take_all(loader.device(part)); });
    }
    ASSERT_EQ(found, expected);
    ASSERT_EQ(loader.state().step, 7U);
    ASSERT_EQ(loader.samples_per_device(), steps.samples_per_device());
    // The end stays the end, for all.
    for (std::size_t part = 0; part < kDevices; ++part)
      ASSERT_FALSE(loader.device(part).next().has_value());
    ASSERT_FALSE(loader.next().has_value());
  }
}

// SEMANTICS proof 2.
TEST(DeviceLoader, BatchKReachesDeviceKModEightWithConsumersDelayedAtRandom) {
  constexpr std::uint64_t kDevices = 8;
  for (int run = 0; run < 1000; ++run) {
    Loader loader =
        plan(96, 16, kDevices, 1 + run % 3, Split::round_robin).loader({.threads = 1 + run % 2});
    std::vector<std::jthread> consumers;
    for (std::size_t part = 0; part < kDevices; ++part)
      consumers.emplace_back([&, part, random = std::mt19937(run * 8 + part)]() mutable {
        const Batches batches = take_all(loader.device(part), [&] {
          if (random() % 8 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
        });
        ASSERT_EQ(batches.size(), 6U);
        for (std::uint64_t step = 0; step < batches.size(); ++step) {
          const std::uint64_t k = step * kDevices + part;
          ASSERT_EQ(batches[step], (std::vector{2 * k, 2 * k + 1}));
        }
      });
  }
}

// SEMANTICS proof 3.
TEST(DeviceLoader, OthersGetExactlyDepthMoreThanAStalledOneAndStatsNamesIt) {
  constexpr int kDevices = 4;
  constexpr std::size_t kStalled = 2;
  for (const int depth : {1, 2, 5}) {
    Loader loader = plan(4000, 4, kDevices, depth).loader();
    std::latch held(1);
    std::latch release(1);
    std::array<std::atomic<int>, kDevices> taken{};
    std::vector<std::jthread> consumers;
    for (std::size_t part = 0; part < kDevices; ++part)
      consumers.emplace_back([&, part] {
        DeviceLoader device = loader.device(part);
        while (const auto batch = device.next()) {
          ++taken[part];
          if (part == kStalled && batch->step() == 3) {
            held.count_down();
            release.wait();
          }
        }
      });
    held.wait();
    wait_until([&] {
      const Stats stats = loader.stats();
      return stats.waiting_for == kStalled && taken[0] == 4 + depth && taken[1] == 4 + depth &&
             taken[3] == 4 + depth;
    });
    // It is not that they have not got further yet: nothing is free for them to get.
    for (int k = 0; k < 50; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(loader.stats().waiting_for, kStalled);
    }
    EXPECT_EQ(taken[kStalled], 4);
    for (const std::size_t part : {0U, 1U, 3U}) EXPECT_EQ(taken[part], 4 + depth);
    EXPECT_EQ(loader.state().step, 4U);
    EXPECT_GT(loader.stats()[Stage::slot].wait_s, 0);
    release.count_down();
    consumers.clear();
    for (const auto& count : taken) EXPECT_EQ(count, 1000);
    EXPECT_EQ(loader.stats().waiting_for, std::nullopt);
  }
}

TEST(DeviceLoader, RaisesWhenItsOwnConsumerHoldsEverySlot) {
  Loader loader = plan(100, 4, 2, 2).loader();
  DeviceLoader device = loader.device(0);
  std::vector<DeviceBatch> held;
  for (int k = 0; k < 3; ++k) held.push_back(*device.next());
  EXPECT_THAT([&] { (void)device.next(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("all 3 batches"), HasSubstr("depth"))));
  held.pop_back();  // the other device has not taken its part of that step
  for (int k = 0; k < 3; ++k) (void)loader.device(1).next();
  EXPECT_EQ(device.next()->step(), 3U);
}

TEST(DeviceLoader, AFaultIsRaisedOnEveryConsumerAtItsStepAndAgain) {
  const auto source = fake(100);
  source->bad = {57};
  Loader loader =
      Dataset(source).batch(8).prefetch_to_devices(host_devices(4)).loader({.threads = 2});
  std::vector<std::jthread> consumers;
  for (std::size_t part = 0; part < 4; ++part)
    consumers.emplace_back([&, part] {
      DeviceLoader device = loader.device(part);
      for (int step = 0; step < 7; ++step) ASSERT_TRUE(device.next().has_value());
      for (int again = 0; again < 2; ++again)
        ASSERT_THAT([&] { (void)device.next(); }, ThrowsMessage<DataError>(HasSubstr("sample 57")));
    });
  consumers.clear();
  EXPECT_EQ(loader.state().step, 7U);
}

TEST(DeviceLoader, AStateCountsTheStepsThatAllDevicesHaveTaken) {
  const Dataset dataset = plan(80, 4, 2, 3);
  Loader loader = dataset.loader();
  DeviceLoader first = loader.device(0);
  DeviceLoader second = loader.device(1);
  for (int k = 0; k < 3; ++k) (void)first.next();
  (void)second.next();
  EXPECT_EQ(loader.state().step, 1U);
  EXPECT_THAT([&] { (void)loader.next(); },
              ThrowsMessage<std::logic_error>(AllOf(HasSubstr("device 1"), HasSubstr("step 1"))));
  Loader other = dataset.loader();
  other.restore(loader.state());
  EXPECT_EQ(other.device(0).next()->step(), 1U);
  EXPECT_EQ(other.device(1).next()->step(), 1U);
  EXPECT_EQ(other.next()->number(), 2U);  // all are at the same step: whole steps again
  // The one that was behind catches up, and so can the whole loader.
  (void)second.next();
  (void)second.next();
  EXPECT_EQ(loader.next()->number(), 3U);
}

TEST(DeviceLoader, StopWakesConsumersThatWait) {
  const auto source = fake(100);
  std::latch reading(1);
  std::atomic<bool> blocked = true;
  source->on_read = [&](std::uint64_t number) {
    if (number == 8) reading.count_down();
    while (number >= 8 && blocked) std::this_thread::yield();
  };
  Loader loader =
      Dataset(source).batch(4).prefetch_to_devices(host_devices(2)).loader({.threads = 1});
  std::vector<std::jthread> consumers;
  std::atomic<int> batches = 0;
  for (std::size_t part = 0; part < 2; ++part)
    consumers.emplace_back([&, part] {
      DeviceLoader device = loader.device(part);
      while (device.next()) ++batches;
    });
  reading.wait();
  wait_until([&] { return batches == 4; });
  std::jthread unblock([&] { blocked = false; });
  loader.stop();
  consumers.clear();
  EXPECT_GE(batches, 4);
  EXPECT_FALSE(loader.next().has_value());
  EXPECT_FALSE(loader.next_epoch().has_value());
}

// They waited for a step behind those that there are slots for, which no thread would ever take.
TEST(DeviceLoader, ConsumersThatWaitGoOnWhereARestoreLeadsThem) {
  const auto source = fake(100);
  std::latch reading(1);
  std::atomic<bool> blocks = true;
  source->on_read = [&](std::uint64_t number) {
    if (number != 40 || !blocks.exchange(false)) return;
    reading.count_down();
    while (!core::Interruption::is_requested()) std::this_thread::yield();
  };
  Loader loader =
      Dataset(source).batch(4).prefetch_to_devices(host_devices(2)).loader({.threads = 1});
  const LoaderState start = loader.state();
  std::array<std::vector<std::uint64_t>, 2> steps;
  std::atomic<int> batches = 0;
  std::vector<std::jthread> consumers;
  for (std::size_t part = 0; part < 2; ++part)
    consumers.emplace_back([&, part] {
      DeviceLoader device = loader.device(part);
      for (int k = 0; k < 12; ++k) {
        steps[part].push_back(device.next()->step());
        ++batches;
      }
    });
  reading.wait();
  wait_until([&] { return batches == 20; });
  loader.restore(start);
  consumers.clear();
  EXPECT_THAT(steps[0], testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1));
  EXPECT_EQ(steps[1], steps[0]);
}

// The bytes of a step depend on what was asked before it alone, and not on when another thread asked.
TEST(DeviceLoader, OtherThreadsMayRestoreAndChangeWeightsWhileConsumersTake) {
  constexpr std::uint64_t kChange = 20;  // the consumers may be past it: then it is refused
  const Dataset dataset =
      mix({Dataset(fake(70)).shuffle().repeat(), Dataset(fake(20)).repeat()}, {.weights = {3, 1}})
          .seed(7)
          .batch(8)
          .prefetch_to_devices(host_devices(2));
  const auto samples_of = [&](bool changed) {
    Loader loader = dataset.loader();
    if (changed) loader.set_weights(kChange, {1, 1});
    std::vector<std::vector<SampleId>> steps;
    for (int k = 0; k < 200; ++k) {
      const auto step = *loader.next();
      for (const DeviceBatch& part : step)
        steps.emplace_back(part.samples().begin(), part.samples().end());
    }
    return steps;
  };
  const std::array<std::vector<std::vector<SampleId>>, 2> expected{samples_of(false),
                                                                   samples_of(true)};
  Loader loader = dataset.loader({.threads = 2});
  const LoaderState start = loader.state();
  std::array<std::atomic<std::uint64_t>, 2> taken{};
  std::vector<std::jthread> consumers;
  for (std::size_t part = 0; part < 2; ++part)
    consumers.emplace_back([&, part] {
      DeviceLoader device = loader.device(part);
      std::uint64_t next = 0;
      while (const auto batch = device.next()) {
        ++taken[part];
        ASSERT_TRUE(batch->step() == next || batch->step() == 0) << batch->step() << ", " << next;
        next = batch->step() + 1;
        if (batch->step() >= 200) continue;
        const std::vector<SampleId> samples(batch->samples().begin(), batch->samples().end());
        const std::uint64_t at = 2 * batch->step() + part;
        ASSERT_TRUE(samples == expected[0][at] || samples == expected[1][at]) << batch->step();
        if (batch->step() < kChange) {
          ASSERT_EQ(samples, expected[0][at]);
        }
      }
    });
  const std::shared_ptr<void> stopped(nullptr, [&](void*) { loader.stop(); });  // also on a throw
  for (int k = 0; k < 60; ++k) {
    const std::uint64_t before = taken[0];
    wait_until([&] { return taken[0] > before + k % 7 || testing::Test::HasFailure(); });
    try {
      if (k % 3 != 0) loader.set_weights(kChange, {1, 1});
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("step 20 has been delivered"));
    }
    (void)loader.state();
    (void)loader.stats();
    if (k % 2 == 0) loader.restore(start);
  }
}

// It comes while set_weights() waits for the loader's threads, and another thread starts these again: no slot will come.
TEST(DeviceLoader, AConsumerThatHoldsAllSlotsGetsTheErrorAlsoWhileWeightsChange) {
  struct Blocking : StageObserver {
    std::latch draws{1};
    std::atomic<bool> blocks = true;
    void begin(Stage stage, std::uint64_t step, std::uint64_t) noexcept override {
      if (stage != Stage::slot || step != 3 || !blocks) return;
      draws.count_down();
      while (blocks) std::this_thread::yield();
    }
    void end(Stage, std::uint64_t, std::uint64_t) noexcept override {}
  } blocking;
  Loader loader = mix({Dataset(fake(70)).repeat(), Dataset(fake(20)).repeat()})
                      .seed(7)
                      .batch(8)
                      .prefetch_to_devices(host_devices(2))
                      .loader({.threads = 1, .observer = &blocking});
  DeviceLoader first = loader.device(0);
  DeviceLoader second = loader.device(1);
  std::vector<DeviceBatch> held;
  while (held.size() < 3) {
    held.push_back(*first.next());
    (void)second.next();
  }
  blocking.draws.wait();
  std::jthread changing([&] {
    loader.set_weights(3, {1, 3});
    loader.start();
  });
  // Long enough for either thread to come to where it waits; else the test proves less, and passes.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::atomic<bool> has_thrown = false;
  std::jthread consumer([&] {
    EXPECT_THROW((void)first.next(), Error);
    has_thrown = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  blocking.blocks = false;
  changing.join();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  wait_until([&] { return has_thrown || std::chrono::steady_clock::now() > limit; });
  EXPECT_TRUE(has_thrown);
  loader.stop();
}

TEST(DeviceLoader, OneThatIsBehindGetsItsStepsAlsoWhenAnotherHasSeenTheEndOrAnError) {
  const auto source = fake(24);
  for (const bool fails : {false, true}) {
    if (fails) source->bad = {18};
    Loader loader = Dataset(source).batch(8).prefetch_to_devices(host_devices(2)).loader();
    const std::uint64_t steps = fails ? 2 : 3;
    const auto expect_the_end = [&](DeviceLoader& device) {
      if (fails)
        EXPECT_THROW((void)device.next(), DataError);
      else
        EXPECT_FALSE(device.next());
    };
    DeviceLoader first = loader.device(0);
    DeviceLoader second = loader.device(1);
    for (std::uint64_t step = 0; step < steps; ++step) ASSERT_EQ(first.next()->step(), step);
    expect_the_end(first);
    for (std::uint64_t step = 0; step < steps; ++step) {
      EXPECT_EQ(loader.state().step, step);
      ASSERT_EQ(second.next()->step(), step);
    }
    expect_the_end(second);
    expect_the_end(first);
    EXPECT_EQ(loader.state().step, steps);
  }
}

TEST(DeviceLoader, StopEndsTheDataAlsoWhereDevicesAreApart) {
  Loader loader = plan(100, 4, 2).loader();
  (void)loader.device(1).next();
  loader.stop();
  EXPECT_FALSE(loader.next().has_value());
  EXPECT_FALSE(loader.next_epoch().has_value());
}

TEST(DeviceLoader, HasNoMoreDataWhenItsLoaderIsGone) {
  std::optional<DeviceLoader> device;
  std::optional<DeviceBatch> batch;
  {
    Loader loader = plan(100, 4, 2).loader();
    device = loader.device(1);
    batch = device->next();
  }
  EXPECT_FALSE(device->next().has_value());
  EXPECT_EQ((*batch)["number"].data<std::uint64_t>()[0], 2U);
  EXPECT_EQ(device->device().to_string(), "host:1");
}

TEST(DeviceLoader, ALoaderMayGoWhileConsumersWait) {
  for (int run = 0; run < 200; ++run) {
    std::vector<std::jthread> consumers;
    Loader loader =
        Dataset(fake(1000)).repeat().batch(8).prefetch_to_devices(host_devices(4)).loader();
    for (std::size_t part = 0; part < 4; ++part)
      consumers.emplace_back([device = loader.device(part)]() mutable {
        while (device.next()) {
        }
      });
    (void)loader.stats();
  }
}

TEST(DeviceLoader, ThereIsOneForEachDevice) {
  Loader loader = plan(10, 2, 2).loader();
  EXPECT_THAT([&] { (void)loader.device(2); },
              ThrowsMessage<std::out_of_range>(HasSubstr("has 2 devices")));
}

TEST(DeviceLoader, WaitsOfAllConsumersAddUpToTheWallTime) {
  Loader loader = plan(4000, 4, 2).loader();
  std::vector<std::jthread> consumers;
  for (std::size_t part = 0; part < 2; ++part)
    consumers.emplace_back([&, part] { (void)take_all(loader.device(part)); });
  consumers.clear();
  const Stats stats = loader.stats();
  EXPECT_NEAR(stats.consume_s + stats.wait_s(), stats.seconds, 0.01 * stats.seconds);
}

}  // namespace
}  // namespace penstock
