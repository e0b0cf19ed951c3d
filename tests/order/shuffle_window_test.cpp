#include <algorithm>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/order/draws.hpp"
#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<std::uint64_t>;

order::OrderPtr window(std::uint64_t size, std::uint64_t seed, std::uint64_t buffer,
                       bool reshuffle = true) {
  return order::shuffle_window(order::range(size), RandomKey(seed, 1), buffer, reshuffle);
}

TEST(ShuffleWindow, IsAPermutationInWhichNoInputComesMoreThanABufferEarly) {
  const Numbers order = numbers(read(window(10'000, 7, 100), 20'000));
  ASSERT_EQ(order.size(), 10'000);
  std::uint64_t earliest = 0;
  for (std::uint64_t position = 0; position < order.size(); ++position) {
    ASSERT_LE(order[position], position + 99);
    if (order[position] == position + 99) ++earliest;
  }
  EXPECT_GT(earliest, 0) << "the bound is never reached";
  Numbers all = order;
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, numbers(read(order::range(10'000), 10'000)));
  EXPECT_NE(all, order);
}

TEST(ShuffleWindow, EpochsDifferWithReshuffleAndAgreeWithout) {
  const order::OrderPtr anew = window(10'000, 7, 100);
  const order::OrderPtr same = window(10'000, 7, 100, false);
  EXPECT_NE(numbers(read(anew, 10'000, 0)), numbers(read(anew, 10'000, 1)));
  EXPECT_EQ(numbers(read(same, 10'000, 0)), numbers(read(same, 10'000, 1)));
  EXPECT_EQ(numbers(read(same, 10'000, 1)), numbers(read(anew, 10'000, 0)));
  EXPECT_EQ(read(same, 1, 1)[0].epoch, 1);
}

TEST(ShuffleWindow, AfterRepeatMixesTheSeamBetweenEpochs) {
  const order::OrderPtr order =
      order::shuffle_window(order::repeat(order::range(1000), 3), RandomKey(7, 1), 100);
  const reference::Samples all = read(order, 4000);
  ASSERT_EQ(all.size(), 3000);
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    std::size_t last_of_this = 0;
    std::size_t first_of_next = all.size();
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k].epoch == epoch) last_of_this = k;
      if (all[k].epoch == epoch + 1) first_of_next = std::min(first_of_next, k);
    }
    EXPECT_LT(first_of_next, last_of_this) << "epoch " << epoch;
  }
}

// A window's permutation is decided by its picks, each one uniform among the places in use; so
// going through all sequences of picks gives every permutation's exact probability.
void spread(std::vector<std::uint64_t> buffer, std::uint64_t next, std::uint64_t size,
            const Numbers& out, double probability, std::map<Numbers, double>& total) {
  if (buffer.empty()) {
    total[out] += probability;
    return;
  }
  for (std::size_t pick = 0; pick < buffer.size(); ++pick) {
    std::vector<std::uint64_t> rest = buffer;
    Numbers longer = out;
    longer.push_back(rest[pick]);
    if (next < size)
      rest[pick] = next;
    else
      rest.erase(rest.begin() + static_cast<long>(pick));
    spread(rest, next + 1, size, longer, probability / static_cast<double>(buffer.size()), total);
  }
}

TEST(ShuffleWindow, GivesEveryPermutationAsOftenAsItsPicksDo) {
  constexpr double kWindowSeeds = 240'000;
  for (const auto& [size, places] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {3, 2}, {4, 2}, {4, 3}, {5, 2}, {5, 3}, {2, 2}, {3, 3}, {4, 4}, {4, 9}, {5, 5}}) {
    std::vector<std::uint64_t> buffer;
    for (std::uint64_t n = 0; n < std::min(size, places); ++n) buffer.push_back(n);
    std::map<Numbers, double> expected;
    spread(buffer, buffer.size(), size, {}, 1, expected);

    std::map<Numbers, int> seen;
    for (std::uint64_t seed = 0; seed < kWindowSeeds; ++seed)
      ++seen[numbers(read(window(size, seed, places), size))];
    ChiSquare fit;
    for (const auto& [order, probability] : expected)
      fit.add(seen[order], probability * kWindowSeeds);
    EXPECT_EQ(seen.size(), expected.size());
    EXPECT_LT(fit.z(), kOnceIn10000) << size << " in a window of " << places;
    EXPECT_GT(fit.z(), -kOnceIn10000) << size << " in a window of " << places;
  }
}

TEST(ShuffleWindow, AgreesWithThePlainBufferAlsoAcrossChunks) {
  for (const auto& [size, places] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {5000, 100}, {5000, 1}, {5000, 4999}, {5000, 5000}, {5000, 9000}, {1, 1}, {1, 5}}) {
    const RandomKey key(7, 1);
    const auto expected =
        reference::shuffle_window(reference::range(size), key, places, true)(0, size);
    EXPECT_EQ(read(window(size, 7, places), size + 1), expected) << size << " of " << places;
  }
}

TEST(ShuffleWindow, OfOnePlaceKeepsTheOrder) {
  EXPECT_EQ(read(window(1000, 7, 1), 1000), read(order::range(1000), 1000));
}

TEST(ShuffleWindow, ResumesAnywhereAsIfItHadNeverStopped) {
  const order::OrderPtr order = window(10'000, 7, 100);
  const reference::Samples whole = read(order, 10'000);
  for (std::uint64_t position = 0; position < 10'000; position += 37) {
    const std::size_t rest = 10'000 - position;
    EXPECT_EQ(read(*order->open(), 0, position, 1, rest),
              reference::Samples(whole.begin() + static_cast<long>(position), whole.end()))
        << "from position " << position;
  }
}

TEST(ShuffleWindow, ResumesFarOutInAnEndlessInputAndOverAnotherWindow) {
  const RandomKey key(7, 1);
  const order::OrderPtr endless = order::repeat(order::shuffle(order::range(1'000'003), key));
  const order::OrderPtr inner = order::shuffle_window(endless, RandomKey(8, 1), 300);
  for (const order::OrderPtr& input : {endless, inner}) {
    const order::OrderPtr order = order::shuffle_window(input, RandomKey(9, 1), 1000);
    for (const std::uint64_t far : {1'000'000ULL, 123'456'789'012ULL}) {
      const reference::Samples all = read(*order->open(), 0, far, 1, 30'000);
      for (const std::uint64_t ahead : {1ULL, 511ULL, 1000ULL, 29'000ULL}) {
        const std::size_t rest = 30'000 - ahead;
        EXPECT_EQ(read(*order->open(), 0, far + ahead, 1, rest),
                  reference::Samples(all.begin() + static_cast<long>(ahead), all.end()))
            << far << " + " << ahead;
      }
    }
  }
}

TEST(ShuffleWindow, AShardAboveItStepsOverWhatOthersKeep) {
  const order::OrderPtr order = window(20'000, 7, 50);
  const Numbers whole = numbers(read(order, 20'000));
  for (const std::uint64_t shards : {2, 7, 1000, 19'999}) {  // short of the walk back, and beyond
    Numbers expected;
    for (std::size_t k = 1; k < whole.size(); k += shards) expected.push_back(whole[k]);
    EXPECT_EQ(numbers(read(order::shard(order, static_cast<std::int64_t>(shards), 1), 20'000)),
              expected)
        << shards << " shards";
  }
}

TEST(ShuffleWindow, HoldsAsManyNumbersAsItsBufferAndSaysSo) {
  const auto cursor = window(1'000'000, 7, 10'000)->open();
  (void)read(*cursor, 0, 0, 1, 1);
  EXPECT_GE(cursor->memory_bytes(), 10'000 * sizeof(SampleId));
  EXPECT_LT(cursor->memory_bytes(), 10'000 * sizeof(SampleId) + 65'536);
  const std::size_t warm = cursor->memory_bytes();
  (void)read(*cursor, 0, 0, 1, 999'999);
  EXPECT_EQ(cursor->memory_bytes(), warm);
  const auto small = window(10, 7, UINT64_MAX)->open();
  EXPECT_EQ(read(*small, 0, 0, 1, 20).size(), 10);
  EXPECT_LT(small->memory_bytes(), 65'536);
}

// Users' saved runs depend on these: a change needs a new version of the saved state.
TEST(ShuffleWindow, PutsOutTheSameNumbersInEveryVersion) {
  EXPECT_THAT(numbers(read(window(1000, 7, 10), 12)),
              ElementsAre(2, 1, 4, 5, 8, 7, 11, 10, 14, 15, 13, 9));
  EXPECT_THAT(numbers(read(*window(1'000'000'000'000, 7, 100)->open(), 0, 999'999'999'000, 1, 4)),
              ElementsAre(999'999'999'098, 999'999'999'071, 999'999'998'876, 999'999'999'074));
}

TEST(ShuffleWindow, RefusesABufferOfNothing) {
  EXPECT_THAT(message_of<std::invalid_argument>([] { (void)window(5, 7, 0); }),
              HasSubstr("range(5).shuffle(buffer=0): expected a buffer of at least 1, found 0"));
}

TEST(ShuffleWindow, DescribesItself) {
  EXPECT_EQ(window(400, 7, 100)->describe(), "range(400).shuffle(buffer=100)");
  EXPECT_EQ(window(400, 7, 100, false)->describe(),
            "range(400).shuffle(buffer=100, reshuffle=false)");
}

TEST(Draws, AgreeWithPhiloxOneAtATime) {
  const RandomKey key(7, 1);
  order::Draws draws(key);
  for (const std::uint64_t first :
       {0ULL, 1ULL, 6ULL, (1ULL << 33) - 9, (1ULL << 40) + 1, ~0ULL - 600})
    for (const std::size_t count : {1, 2, 3, 15, 16, 17, 511, 512}) {
      const auto got = draws.at(5, first, count);
      ASSERT_EQ(got.size(), count);
      for (std::size_t k = 0; k < count; ++k)
        ASSERT_EQ(got[k], reference::window_draw(key, 5, first + k)) << first << " + " << k;
    }
}

}  // namespace
}  // namespace penstock
