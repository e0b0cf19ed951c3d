#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::fake;
using testing_support::numbers_of;
using testing_support::Seen;

Dataset split_plan(Split split, std::uint64_t samples, std::uint64_t batch, int devices,
                   Remainder remainder = Remainder::keep) {
  return Dataset(fake(samples))
      .shuffle({.seed = 7})
      .batch(batch, {.remainder = remainder})
      .prefetch_to_devices(host_devices(devices), {.split = split});
}

TEST(RoundRobin, DeliversTheGlobalBatchesOfScatter) {
  Loader scatter = split_plan(Split::scatter, 100, 16, 4).loader({.digest = true});
  Loader robin = split_plan(Split::round_robin, 100, 16, 4).loader({.digest = true});
  EXPECT_EQ(numbers_of(drain(robin)), numbers_of(drain(scatter)));
  EXPECT_EQ(robin.digest(), scatter.digest());
}

// SEMANTICS proof 2, on the step iterator: batch k of g/R rows is part k mod R of step k div R,
// whatever the consumer does meanwhile.
TEST(RoundRobin, BatchKReachesDeviceKModEightWhateverTheTiming) {
  constexpr std::uint64_t kDevices = 8;
  std::mt19937 random(1);
  for (int run = 0; run < 200; ++run) {
    Loader loader = Dataset(fake(160))
                        .batch(16)
                        .prefetch_to_devices(host_devices(kDevices),
                                             {.depth = 1 + run % 3, .split = Split::round_robin})
                        .loader({.threads = 1 + run % 4});
    while (const auto step = loader.next()) {
      if (random() % 16 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      for (std::uint64_t part = 0; part < kDevices; ++part) {
        const std::uint64_t k = step->number() * kDevices + part;
        ASSERT_EQ((*step)[part].replica(), k % kDevices);
        ASSERT_EQ((*step)[part].samples()[0].number, 2 * k);
        ASSERT_EQ((*step)[part].samples()[1].number, 2 * k + 1);
      }
    }
  }
}

TEST(ShardEarly, GivesEachReplicaTheSamplesOfItsShard) {
  constexpr int kDevices = 4;
  Loader loader = split_plan(Split::shard_early, 103, 16, kDevices).loader();
  std::map<std::uint32_t, std::vector<std::uint64_t>> by_replica;
  std::vector<std::vector<std::uint64_t>> rows;
  while (const auto step = loader.next()) {
    rows.emplace_back();
    for (const DeviceBatch& part : *step) {
      rows.back().push_back(part.size());
      for (std::uint64_t row = 0; row < part.size(); ++row) {
        ASSERT_EQ(part["number"].data<std::uint64_t>()[2 * row], part.samples()[row].number);
        by_replica[part.replica()].push_back(part.samples()[row].number);
      }
    }
  }
  // 26, 26, 26 and 25 samples in batches of 4: every replica gets seven steps.
  ASSERT_EQ(rows.size(), 7U);
  EXPECT_THAT(rows.front(), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(rows.back(), ElementsAre(2, 2, 2, 1));
  for (std::uint32_t replica = 0; replica < kDevices; ++replica) {
    auto& numbers = by_replica[replica];
    EXPECT_FALSE(std::ranges::is_sorted(numbers));
    std::ranges::sort(numbers);
    std::vector<std::uint64_t> expected;
    for (std::uint64_t number = replica; number < 103; number += kDevices)
      expected.push_back(number);
    EXPECT_THAT(numbers, ElementsAreArray(expected));
  }
}

TEST(ShardEarly, PadsDropsAndRepeatsByTheStep) {
  const auto steps = [](const Dataset& dataset) {
    Loader loader = dataset.loader();
    return drain(loader);
  };
  // 3, 3, 2 and 2 samples in batches of 2.
  EXPECT_THAT(steps(split_plan(Split::shard_early, 10, 8, 4, Remainder::pad)).back().rows,
              ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(steps(split_plan(Split::shard_early, 10, 8, 4, Remainder::pad)).size(), 2U);
  EXPECT_EQ(steps(split_plan(Split::shard_early, 10, 8, 4, Remainder::drop)).size(), 1U);
  const auto repeated =
      steps(Dataset(fake(10))
                .shuffle({.seed = 7})
                .batch(8)
                .repeat(3)
                .prefetch_to_devices(host_devices(4), {.split = Split::shard_early}));
  EXPECT_EQ(repeated.size(), 6U);
  EXPECT_THAT(repeated[5].rows, ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(repeated[5].epoch, 2U);
}

TEST(ShardEarly, ReplacesFromTheReplicasOwnShard) {
  auto source = fake(400);
  for (std::uint64_t number = 0; number < 400; number += 3) source->bad.insert(number);
  Loader loader = Dataset(source)
                      .seed(1)
                      .batch(8)
                      .prefetch_to_devices(host_devices(4), {.split = Split::shard_early})
                      .loader({.on_fault = OnFault::replace});
  while (const auto step = loader.next())
    for (const DeviceBatch& part : *step)
      for (const SampleId& id : part.samples()) ASSERT_EQ(id.number % 4, part.replica());
}

TEST(ShardEarly, IsResumedByTheSameWorldOnly) {
  const auto plan = [](int devices) {
    return Dataset(fake(200))
        .shuffle({.seed = 7})
        .batch(8)
        .repeat()
        .prefetch_to_devices(host_devices(devices), {.split = Split::shard_early});
  };
  Loader whole = plan(4).loader({.digest = true});
  const auto expected = drain(whole, 60);
  Loader loader = plan(4).loader({.digest = true});
  for (std::size_t at = 0; at < 60; ++at) {
    Loader resumed = plan(4).loader({.digest = true});
    resumed.restore(LoaderState::from_json(loader.state().to_json()));
    ASSERT_EQ(drain(resumed, 60 - at),
              std::vector(expected.begin() + static_cast<std::ptrdiff_t>(at), expected.end()));
    (void)loader.next();
  }
  EXPECT_THAT([&] { plan(2).loader().restore(loader.state()); },
              ThrowsMessage<Error>(HasSubstr("4 orders for 4 replicas")));
}

}  // namespace
}  // namespace penstock
