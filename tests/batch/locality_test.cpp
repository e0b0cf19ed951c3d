#include "src/batch/locality.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using batch::Locality;
using batch::Slice;
using testing::ElementsAre;

using Numbers = std::vector<std::uint64_t>;

// The hash of a sample with a machine, by which it has a home.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
std::uint64_t hash_of(const SampleId& sample, std::uint64_t machine) {
  return mixed(mixed(mixed(sample.number) + sample.source) ^ mixed(machine));
}

// Which replica each row goes to, as SEMANTICS D13 says it, one row at a time: of those that are left, the one with the largest
// hash with its home goes there, else to the best machine that has room when no row is left that its home has room for.
std::vector<std::uint64_t> model(const Numbers& machines, const std::vector<SampleId>& samples,
                                 const std::vector<Slice>& slices) {
  std::map<std::uint64_t, std::uint64_t> room;
  for (std::size_t replica = 0; replica < machines.size(); ++replica)
    room[machines[replica]] += slices[replica].samples;
  std::vector<std::optional<std::uint64_t>> at(samples.size());
  for (const bool home : {true, false}) {
    using Wish = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;  // -hash, row, machine
    std::vector<Wish> wishes;
    for (std::uint64_t row = 0; row < samples.size(); ++row) {
      if (at[row]) continue;
      Wish wish{UINT64_MAX, row, machines[0]};
      for (const auto& [machine, left] : room)
        wish = std::min(wish, Wish{~hash_of(samples[row], machine), row, machine});
      wishes.push_back(wish);
    }
    std::ranges::sort(wishes);
    for (const auto& [_, row, wanted] : wishes) {
      std::optional<std::uint64_t> machine = wanted;
      if (!home) {
        machine.reset();
        for (const auto& [other, left] : room)
          if (left > 0 &&
              (!machine || hash_of(samples[row], other) > hash_of(samples[row], *machine)))
            machine = other;
      }
      if (room[*machine] == 0) continue;
      --room[*machine];
      at[row] = machine;
    }
  }
  // The places of a machine, by (round, replica): its j-th row takes place j.
  std::vector<std::uint64_t> replica_of(samples.size());
  for (const auto& [machine, left] : room) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
    for (std::uint64_t replica = 0; replica < slices.size(); ++replica)
      for (std::uint64_t round = 0; round < slices[replica].samples; ++round)
        if (machines[replica] == machine) places.emplace_back(round, replica);
    std::ranges::sort(places);
    std::size_t next = 0;
    for (std::uint64_t row = 0; row < samples.size(); ++row)
      if (at[row].value() == machine) replica_of[row] = places.at(next++).second;
  }
  return replica_of;
}

TEST(Locality, DividesRowsAsThePlainModel) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    const std::uint64_t replicas = 1 + below(12);
    const std::uint64_t batch = replicas + below(60);
    Numbers machines(replicas);
    const std::uint64_t kinds = 1 + below(replicas);
    for (std::uint64_t& machine : machines) machine = below(kinds) * 1'000'003;
    const bool pad = below(3) == 0;
    const batch::Slicing slicing(batch, replicas, pad ? Remainder::pad : Remainder::keep, true);
    const std::uint64_t count = below(2) == 0 ? batch : below(batch + 1);
    const auto slices = slicing.slices(below(100), count);
    std::vector<SampleId> samples(count);
    for (SampleId& sample : samples)
      sample = {.number = below(40),
                .epoch = static_cast<std::uint32_t>(below(3)),
                .source = static_cast<std::uint32_t>(below(2)),
                .draw = below(3)};

    const Locality locality(machines);
    const Numbers rows = locality.rows(samples, slices);
    const auto replica_of = model(machines, samples, slices);
    Numbers expected(count);
    std::iota(expected.begin(), expected.end(), 0);
    std::ranges::stable_sort(expected, {}, [&](std::uint64_t row) { return replica_of[row]; });
    ASSERT_EQ(rows, expected);

    // The most that can be at home.
    std::map<std::uint64_t, std::uint64_t> home;
    std::map<std::uint64_t, std::uint64_t> room;
    std::map<std::uint64_t, std::uint64_t> there;
    for (std::uint64_t row = 0; row < count; ++row) {
      const std::uint64_t machine = locality.home_of(samples[row]);
      ++home[machine];
      there[machine] += machines[replica_of[row]] == machine ? 1 : 0;
    }
    for (std::uint64_t replica = 0; replica < replicas; ++replica)
      room[machines[replica]] += slices[replica].samples;
    for (const auto& [machine, wanted] : home)
      ASSERT_EQ(there[machine], std::min(wanted, room[machine]));
  }
}

TEST(Locality, GivesEachMachineAboutItsShareOfTheSamples) {
  const Locality locality(Numbers{0, 1, 2, 3, 4, 5, 6, 7});
  std::map<std::uint64_t, int> homes;
  for (std::uint64_t number = 0; number < 80'000; ++number)
    ++homes[locality.home_of({.number = number})];
  ASSERT_EQ(homes.size(), 8U);
  for (const auto& [machine, count] : homes) EXPECT_NEAR(count, 10'000, 500) << machine;
}

TEST(Locality, MovesOnlyWhatAMachineGainsOrLeaves) {
  const auto homes = [](const Numbers& machines) {
    const Locality locality(machines);
    Numbers all;
    for (std::uint64_t number = 0; number < 20'000; ++number)
      all.push_back(locality.home_of({.number = number, .source = 3}));
    return all;
  };
  const Numbers eight = homes({0, 1, 2, 3, 4, 5, 6, 7});
  const Numbers nine = homes({0, 1, 2, 3, 4, 5, 6, 7, 8});
  const Numbers without_3 = homes({7, 6, 5, 4, 2, 1, 0, 0});
  int gained = 0;
  for (std::size_t i = 0; i < eight.size(); ++i) {
    if (nine[i] == 8)
      ++gained;
    else
      EXPECT_EQ(nine[i], eight[i]);
    if (eight[i] != 3) {
      EXPECT_EQ(without_3[i], eight[i]);
    }
  }
  EXPECT_NEAR(gained, 20'000 / 9, 150);
}

// Of every version: with other homes the caches of all machines would be filled again.
TEST(Locality, KeepsTheHomesThatItHad) {
  const Locality locality(Numbers{0, 1, 2});
  Numbers homes;
  for (std::uint64_t number = 0; number < 12; ++number)
    homes.push_back(locality.home_of({.number = number}));
  EXPECT_THAT(homes, ElementsAre(1, 2, 0, 1, 1, 1, 0, 0, 0, 1, 2, 0));
  EXPECT_EQ(Locality(Numbers{100, 1ULL << 40}).home_of({.number = 5, .source = 1}), 100U);
}

TEST(Locality, SendsAFewPercentElsewhere) {
  for (const std::uint64_t replicas : {8U, 64U}) {
    Numbers machines(replicas);
    std::iota(machines.begin(), machines.end(), 0);
    const Locality locality(machines);
    const batch::Slicing slicing(128 * replicas, replicas, Remainder::keep, false);
    std::mt19937_64 random(3);
    std::uint64_t elsewhere = 0;
    for (int step = 0; step < 40; ++step) {
      std::vector<SampleId> samples(128 * replicas);
      for (SampleId& sample : samples) sample.number = random() % 1'000'000;
      const auto rows = locality.rows(samples, slicing.slices(0, samples.size()));
      for (std::size_t place = 0; place < rows.size(); ++place)
        elsewhere += locality.home_of(samples[rows[place]]) != place / 128 ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(elsewhere) / static_cast<double>(40 * 128 * replicas), 0.034,
                0.006)
        << replicas;
  }
}

// A cache that keeps what its machine read in the first epoch: which rows stay at home is no matter of their order.
TEST(Locality, FindsRowsWhereTheyWereInTheEpochBefore) {
  constexpr std::uint64_t kReplicas = 64;
  constexpr std::uint64_t kBatch = 128 * kReplicas;
  Numbers machines(kReplicas);
  std::iota(machines.begin(), machines.end(), 0);
  const Locality locality(machines);
  const auto slices = batch::Slicing(kBatch, kReplicas, Remainder::keep, false).slices(0, kBatch);
  std::mt19937_64 random(5);
  std::vector<SampleId> order(4 * kBatch);
  for (std::uint64_t i = 0; i < order.size(); ++i) order[i].number = i;
  Numbers before(order.size(), UINT64_MAX);
  std::uint64_t moved = 0;
  for (const bool first : {true, false}) {
    std::ranges::shuffle(order, random);
    for (std::uint64_t begin = 0; begin < order.size(); begin += kBatch) {
      const auto batch = std::span(order).subspan(begin, kBatch);
      const Numbers rows = locality.rows(batch, slices);
      for (std::uint64_t place = 0; place < kBatch; ++place) {
        std::uint64_t& at = before[batch[rows[place]].number];
        moved += !first && at != place / 128 ? 1 : 0;
        at = place / 128;
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(moved) / static_cast<double>(order.size()), 0.055, 0.006);
}

}  // namespace
}  // namespace penstock
