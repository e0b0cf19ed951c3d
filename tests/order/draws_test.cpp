// Which draw of a sample is which: SampleId::draw through every order.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

using reference::Samples;
using testing::Each;
using testing::ElementsAre;

const RandomKey kKey(7, 1);

std::vector<std::uint64_t> draws(const Samples& samples) {
  std::vector<std::uint64_t> out;
  for (const SampleId& id : samples) out.push_back(id.draw);
  return out;
}

order::OrderPtr drawn(std::uint64_t count) {
  return order::sample(order::range(3), std::vector<double>{1, 1, 1}, count, kKey);
}

TEST(Draws, ASampleCountsItsDrawsAnewInEachIteration) {
  for (std::uint32_t iteration = 0; iteration < 3; ++iteration)
    EXPECT_THAT(draws(read(drawn(5), 9, iteration)), ElementsAre(1, 2, 3, 4, 5));
  const auto cursor = drawn(1000)->open();
  EXPECT_THAT(draws(read(*cursor, 0, 700, 100, 9)), ElementsAre(701, 801, 901));
  std::vector<std::uint64_t> positions{999, 0, 5, 5};
  Samples found(4);
  cursor->read_at(0, positions, found);
  EXPECT_THAT(draws(found), ElementsAre(1000, 1, 6, 6));
}

TEST(Draws, APickCountsThemWhereAPositionComesAgain) {
  const auto picked = [](std::vector<std::uint64_t> positions) {
    return draws(read(order::pick(order::range(2'000'000), std::move(positions)), 9));
  };
  EXPECT_THAT(picked({4, 0, 4}), ElementsAre(1, 2, 3));
  EXPECT_THAT(picked({0, 4, 4}), ElementsAre(1, 2, 3));
  EXPECT_THAT(picked({1'999'999, 4, 1'999'999}), ElementsAre(1, 2, 3));
  EXPECT_THAT(picked({4, 0, 3}), Each(0));
  EXPECT_THAT(picked({1'999'999, 4, 1'999'998}), Each(0));
  EXPECT_THAT(picked({0, 3, 4}), Each(0));
  const auto cursor = order::pick(order::range(9), {7, 7, 2})->open();
  EXPECT_THAT(draws(read(*cursor, 0, 0, 2, 9)), ElementsAre(1, 3));
  std::vector<std::uint64_t> positions{2, 0};
  Samples found(2);
  cursor->read_at(0, positions, found);
  EXPECT_EQ(found, (Samples{{2, 0, 0, 3}, {7, 0, 0, 1}}));
}

TEST(Draws, GoThroughWhatComesLater) {
  const Samples all = read(drawn(50), 50);
  for (const order::OrderPtr& later :
       {order::shuffle(drawn(50), kKey), order::shuffle_window(drawn(50), kKey, 7),
        order::shard(drawn(50), 3, 1), order::skip(order::take(drawn(50), 30), 5),
        order::pick(drawn(50), {40, 3, 17}), order::concatenate({drawn(50), order::range(5, 1)}),
        order::mix({drawn(50), order::range(50, 1)}, {{0, {1, 1}}}, kKey)})
    for (const SampleId& id : read(later, 100)) {
      if (id.source == 0)
        ASSERT_EQ(id, all.at(id.draw - 1)) << later->describe();
      else
        ASSERT_EQ(id.draw, 0) << later->describe();
    }
}

TEST(Draws, TheOutermostIsWhatCounts) {
  const order::OrderPtr inner = order::shuffle(drawn(50), kKey);
  EXPECT_THAT(draws(read(order::pick(inner, {8, 30, 8}), 9)), ElementsAre(1, 2, 3));
  EXPECT_THAT(draws(read(order::sample(inner, std::vector<double>(50, 1), 4, kKey), 9)),
              ElementsAre(1, 2, 3, 4));
}

TEST(Draws, AreNoneWhereNothingIsDrawnTwice) {
  EXPECT_THAT(draws(read(order::repeat(order::shuffle(order::range(50), kKey), 3), 200)), Each(0));
}

}  // namespace
}  // namespace penstock
