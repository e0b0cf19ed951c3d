#include <algorithm>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Numbers = std::vector<std::uint64_t>;

constexpr std::uint64_t kSeeds = 240'000;

Numbers shuffled(std::uint64_t size, std::uint64_t seed, std::size_t limit) {
  return numbers(read(order::shuffle(order::range(size), RandomKey(seed, 1)), limit));
}

Numbers sorted(Numbers values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST(Shuffle, IsAPermutationOfTheWholeInputForEverySize) {
  for (std::uint64_t size :
       {0, 1, 2, 3, 100, 255, 256, 257, 511, 512, 513, 1000, 65'537, 100'003}) {
    const Numbers all = shuffled(size, 7, size + 1);
    EXPECT_EQ(sorted(all), numbers(read(order::range(size), size))) << "size " << size;
    if (size >= 100) {
      EXPECT_NE(sorted(all), all);
    }
  }
}

TEST(Shuffle, AgreesWithThePlainOneNumberAtATimePermutation) {
  for (std::uint64_t size : {2, 256, 257, 300, 1024, 1025, 70'000})
    for (std::uint32_t iteration : {0U, 1U, UINT32_MAX}) {
      const RandomKey key(size, 3);
      EXPECT_EQ(numbers(read(order::shuffle(order::range(size), key), size, iteration)),
                reference::permutation(size, key, iteration))
          << "size " << size << ", iteration " << iteration;
    }
}

TEST(Shuffle, EpochsDifferWithReshuffleAndAgreeWithout) {
  const RandomKey key(7, 1);
  for (std::uint64_t size : {200, 10'000}) {
    const order::OrderPtr anew = order::shuffle(order::range(size), key);
    const order::OrderPtr same = order::shuffle(order::range(size), key, false);
    EXPECT_NE(numbers(read(anew, size, 0)), numbers(read(anew, size, 1)));
    EXPECT_EQ(numbers(read(same, size, 0)), numbers(read(same, size, 1)));
    EXPECT_EQ(numbers(read(anew, size, 0)), numbers(read(same, size, 1)));
    EXPECT_EQ(read(same, 1, 1)[0].epoch, 1);
  }
}

TEST(Shuffle, DiffersWithTheSeed) {
  EXPECT_NE(shuffled(1000, 7, 1000), shuffled(1000, 8, 1000));
  EXPECT_NE(shuffled(100, 7, 100), shuffled(100, 8, 100));
}

// Users' saved runs depend on these: a change needs a new version of the saved state.
TEST(Shuffle, PutsOutTheSameNumbersInEveryVersion) {
  EXPECT_THAT(shuffled(10, 7, 10), ElementsAre(3, 5, 7, 4, 6, 1, 2, 9, 0, 8));
  EXPECT_THAT(shuffled(1000, 7, 8), ElementsAre(668, 583, 990, 793, 10, 313, 344, 619));
  EXPECT_THAT(shuffled(1'000'000'000'000, 7, 4),
              ElementsAre(736'009'638'303, 811'529'612'528, 199'081'872'894, 995'262'724'615));
}

TEST(Shuffle, GivesEveryPermutationOfUpToFiveEquallyOften) {
  for (std::uint64_t size = 2; size <= 5; ++size) {
    std::map<Numbers, int> seen;
    Numbers identity(size);
    for (std::uint64_t n = 0; n < size; ++n) identity[n] = n;
    double permutations = 0;
    do {
      seen[identity] = 0;
      ++permutations;
    } while (std::next_permutation(identity.begin(), identity.end()));
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) ++seen[shuffled(size, seed, size)];

    ChiSquare fit;
    for (const auto& [permutation, count] : seen) fit.add(count, kSeeds / permutations);
    EXPECT_EQ(seen.size(), permutations);
    EXPECT_LT(fit.z(), kOnceIn10000) << "size " << size;
    EXPECT_GT(fit.z(), -kOnceIn10000) << "too even to be random: size " << size;
  }
}

TEST(Shuffle, PutsEveryNumberInEveryPlaceEquallyOften) {
  // 300 goes through the Feistel network in a domain of 512, and 257 in nearly twice its size.
  for (std::uint64_t size : {10, 100, 257, 300}) {
    const std::uint64_t seeds = size <= 10 ? kSeeds : kSeeds / 4;
    std::vector<int> seen(size * size);
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const Numbers order = shuffled(size, seed, size);
      for (std::uint64_t place = 0; place < size; ++place) ++seen[place * size + order[place]];
    }
    ChiSquare fit;
    for (const int count : seen) fit.add(count, static_cast<double>(seeds) / size);
    const double freedom = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(fit.z(freedom), kOnceIn10000) << "size " << size;
    EXPECT_GT(fit.z(freedom), -kOnceIn10000) << "size " << size;
  }
}

TEST(Shuffle, OrdersAnyFiveOfManyInEveryWayEquallyOften) {
  const std::vector<std::vector<std::uint64_t>> choices = {
      {0, 1, 2, 3, 4}, {0, 32, 64, 96, 128}, {0, 1, 32, 33, 250}, {7, 90, 91, 200, 256}};
  for (const std::uint64_t size : {257, 1000, 1024})
    for (const auto& places : choices) {
      std::map<Numbers, int> seen;
      for (std::uint64_t seed = 0; seed < kSeeds / 4; ++seed) {
        const Numbers order = shuffled(size, seed, 257);
        Numbers ranks;
        for (const std::uint64_t a : places)
          ranks.push_back(std::count_if(places.begin(), places.end(),
                                        [&](std::uint64_t b) { return order[b] < order[a]; }));
        ++seen[ranks];
      }
      ChiSquare fit;
      for (const auto& [ranks, count] : seen) fit.add(count, kSeeds / 4 / 120.0);
      EXPECT_EQ(seen.size(), 120);
      EXPECT_LT(fit.z(), kOnceIn10000) << "size " << size << ", places from " << places[1];
    }
}

TEST(Shuffle, NeighboursLandAnyDistanceApart) {
  constexpr std::uint64_t kSize = 1 << 20;
  constexpr int kCells = 64;
  std::vector<int> seen(kCells);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Numbers order = shuffled(kSize, seed, 10'001);
    for (std::size_t k = 0; k < 10'000; ++k)
      ++seen[(order[k + 1] + kSize - order[k]) % kSize * kCells / kSize];
  }
  ChiSquare fit;
  for (const int count : seen) fit.add(count, 1e6 / kCells);
  EXPECT_LT(fit.z(), kOnceIn10000);
}

TEST(Shuffle, FollowedByRepeatKeepsTheEpochsApart) {
  const order::OrderPtr order =
      order::repeat(order::shuffle(order::range(1000), RandomKey(7, 1)), 3);
  const reference::Samples all = read(order, 4000);
  ASSERT_EQ(all.size(), 3000);
  std::vector<Numbers> blocks;
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    Numbers block;
    for (std::size_t k = 0; k < 1000; ++k) {
      EXPECT_EQ(all[epoch * 1000 + k].epoch, epoch);
      block.push_back(all[epoch * 1000 + k].number);
    }
    EXPECT_EQ(sorted(block), numbers(read(order::range(1000), 1000))) << "epoch " << epoch;
    blocks.push_back(block);
  }
  EXPECT_NE(blocks[0], blocks[1]);
  EXPECT_NE(blocks[1], blocks[2]);
}

// What goes through all numbers before it begins does not end within the test's time limit.
TEST(Shuffle, OfATrillionStartsAtOnceInUnderAKilobyte) {
  for (const std::uint64_t size : {1'000'000'000ULL, 1'000'000'000'000ULL, ~0ULL - 1}) {
    const auto cursor = order::shuffle(order::range(size), RandomKey(7, 1))->open();
    const Numbers batch = sorted(numbers(read(*cursor, 0, size - 256, 1, 300)));
    EXPECT_EQ(batch.size(), 256);
    EXPECT_EQ(std::adjacent_find(batch.begin(), batch.end()), batch.end());
    EXPECT_LT(batch.back(), size);
    EXPECT_LT(cursor->memory_bytes(), 1024);
  }
}

TEST(Shuffle, OfTooFewToShuffleChangesNothing) {
  EXPECT_THAT(shuffled(0, 7, 10), IsEmpty());
  EXPECT_THAT(shuffled(1, 7, 10), ElementsAre(0));
}

TEST(Shuffle, RefusesAnEndlessInputAndNamesTheRemedy) {
  EXPECT_THAT(message_of<std::invalid_argument>(
                  [] { (void)order::shuffle(order::repeat(order::range(5)), RandomKey(7, 1)); }),
              testing::AllOf(HasSubstr("range(5).repeat().shuffle()"),
                             HasSubstr("put shuffle before repeat, or give shuffle a buffer")));
}

TEST(Shuffle, DescribesItselfWithoutItsSeed) {
  const order::OrderPtr range = order::range(400);
  EXPECT_EQ(order::shuffle(range, RandomKey(7, 1))->describe(), "range(400).shuffle()");
  EXPECT_EQ(order::shuffle(range, RandomKey(8, 1), false)->describe(),
            "range(400).shuffle(reshuffle=false)");
}

}  // namespace
}  // namespace penstock
