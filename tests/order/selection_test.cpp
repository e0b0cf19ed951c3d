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

TEST(Range, NumbersEverySampleOfItsSourceAndCallsTheIterationItsEpoch) {
  const order::OrderPtr order = order::range(3, 9);
  EXPECT_EQ(read(order, 10, 5), (reference::Samples{{0, 5, 9}, {1, 5, 9}, {2, 5, 9}}));
  EXPECT_EQ(order->size(), 3);
  EXPECT_EQ(order->epochs(), 1);
  EXPECT_EQ(order->describe(), "range(3, source=9)");
  EXPECT_EQ(order::range(400)->describe(), "range(400)");
}

TEST(Range, OfNothingIsEmpty) { EXPECT_THAT(read(order::range(0), 10), IsEmpty()); }

TEST(Cursor, StopsAtTheEndAndFillsNothingBeyondIt) {
  const auto cursor = order::range(10)->open();
  EXPECT_THAT(numbers(read(*cursor, 0, 7, 1, 10)), ElementsAre(7, 8, 9));
  EXPECT_THAT(numbers(read(*cursor, 0, 1, 4, 10)), ElementsAre(1, 5, 9));
  EXPECT_THAT(numbers(read(*cursor, 0, 1, 4, 2)), ElementsAre(1, 5));
  EXPECT_THAT(read(*cursor, 0, 10, 1, 10), IsEmpty());
  EXPECT_THAT(read(*cursor, 0, UINT64_MAX, UINT64_MAX, 10), IsEmpty());
  EXPECT_THAT(numbers(read(*cursor, 0, 9, UINT64_MAX, 10)), ElementsAre(9));
  EXPECT_THAT(read(*cursor, 0, 0, 1, 0), IsEmpty());
}

TEST(Take, KeepsTheFirstAndAllOfAShorterInput) {
  EXPECT_THAT(numbers(read(order::take(order::range(9), 2), 10)), ElementsAre(0, 1));
  EXPECT_THAT(numbers(read(order::take(order::range(2), 9), 10)), ElementsAre(0, 1));
  EXPECT_THAT(read(order::take(order::range(9), 0), 10), IsEmpty());
  EXPECT_EQ(order::take(order::range(2), 9)->size(), 2);
}

TEST(Take, EndsAnEndlessInput) {
  const order::OrderPtr order = order::take(order::repeat(order::range(2)), 5);
  EXPECT_THAT(numbers(read(order, 10)), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_EQ(order->size(), 5);
  EXPECT_EQ(order->describe(), "range(2).repeat().take(5)");
}

TEST(Skip, LeavesOutTheFirstAndAllOfAShorterInput) {
  EXPECT_THAT(numbers(read(order::skip(order::range(4), 2), 10)), ElementsAre(2, 3));
  EXPECT_THAT(read(order::skip(order::range(4), 4), 10), IsEmpty());
  EXPECT_THAT(read(order::skip(order::range(4), UINT64_MAX), 10), IsEmpty());
  EXPECT_EQ(order::skip(order::range(4), UINT64_MAX)->size(), 0);
  EXPECT_EQ(order::skip(order::range(4), 2)->describe(), "range(4).skip(2)");
}

TEST(Skip, OfAnEndlessInputIsEndless) {
  const order::OrderPtr order = order::skip(order::repeat(order::range(3)), 4);
  EXPECT_EQ(order->size(), std::nullopt);
  EXPECT_THAT(numbers(read(order, 4)), ElementsAre(1, 2, 0, 1));
}

TEST(Shard, GivesTheFirstShardsOneMore) {
  EXPECT_THAT(numbers(read(order::shard(order::range(5), 3, 0), 10)), ElementsAre(0, 3));
  EXPECT_THAT(numbers(read(order::shard(order::range(5), 3, 1), 10)), ElementsAre(1, 4));
  EXPECT_THAT(numbers(read(order::shard(order::range(5), 3, 2), 10)), ElementsAre(2));
  EXPECT_EQ(order::shard(order::range(5), 3, 1)->size(), 2);
  EXPECT_EQ(order::shard(order::range(5), 3, 2)->size(), 1);
  EXPECT_EQ(order::shard(order::range(5), 3, 2)->describe(), "range(5).shard(3, 2)");
}

TEST(Shard, ShardsAreDisjointAndComplete) {
  for (std::int64_t shards = 1; shards <= 7; ++shards) {
    std::vector<std::uint64_t> all;
    for (std::int64_t index = 0; index < shards; ++index)
      for (const std::uint64_t n :
           numbers(read(order::shard(order::range(23), shards, index), 100)))
        all.push_back(n);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, numbers(read(order::range(23), 100))) << shards << " shards";
  }
}

TEST(Shard, OfAnEndlessInputIsEndlessAndStaysInsideTheCountOfPositions) {
  const order::OrderPtr order = order::shard(order::repeat(order::range(1'000'000'007)), 1000, 999);
  EXPECT_EQ(order->size(), std::nullopt);
  const auto cursor = order->open();
  EXPECT_THAT(numbers(read(*cursor, 0, 0, 1, 3)), ElementsAre(999, 1999, 2999));
  // Positions that would need inner positions of 2^64 and more are not there.
  EXPECT_THAT(read(*cursor, 0, UINT64_MAX / 1000 + 1, 1, 3), IsEmpty());
  EXPECT_EQ(read(*cursor, 0, 5, UINT64_MAX / 2, 3).size(), 1);
}

TEST(Shard, RefusesWhatIsNoShard) {
  const auto refused = [](std::int64_t shards, std::int64_t index) {
    return message_of<std::invalid_argument>(
        [&] { (void)order::shard(order::range(5), shards, index); });
  };
  EXPECT_THAT(refused(0, 0), HasSubstr("shard(0, 0): expected at least one shard, found 0"));
  EXPECT_THAT(refused(-2, 0), HasSubstr("expected at least one shard, found -2"));
  EXPECT_THAT(refused(3, 3), HasSubstr("shard(3, 3): expected an index from 0 to 2, found 3"));
  EXPECT_THAT(refused(3, -1), HasSubstr("expected an index from 0 to 2, found -1"));
}

}  // namespace
}  // namespace penstock
