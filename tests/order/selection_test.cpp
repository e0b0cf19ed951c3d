#include <limits>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/order/operations.hpp>

#include "tests/order/reading.hpp"

namespace penstock::order {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(Range, NumbersTheSamplesOfItsSourceAndCountsEpochs) {
  const auto cursor = range(3, 5)->open();
  std::vector<SampleId> out(4);
  ASSERT_EQ(cursor->read(7, 0, 1, out), 3U);
  EXPECT_EQ(out[2], (SampleId{.number = 2, .epoch = 7, .source = 5}));
  EXPECT_EQ(cursor->read(0, 3, 1, out), 0U);
  EXPECT_THAT(all_numbers(range(0)), IsEmpty());
}

TEST(Range, StridesToItsVeryEndWithoutOverflow) {
  std::vector<SampleId> out(3);
  const auto cursor = range(kMost)->open();
  ASSERT_EQ(cursor->read(0, kMost - 1, kMost, out), 1U);
  EXPECT_EQ(out[0].number, kMost - 1);
  EXPECT_EQ(cursor->read(0, kMost, 1, out), 0U);
  ASSERT_EQ(cursor->read(0, 1, kMost / 2, out), 2U);
  EXPECT_EQ(out[1].number, kMost / 2 + 1);
}

TEST(Take, KeepsTheFirstOrAll) {
  EXPECT_THAT(all_numbers(take(range(9), 2)), ElementsAre(0, 1));
  EXPECT_THAT(all_numbers(take(range(2), 9)), ElementsAre(0, 1));
  EXPECT_THAT(all_numbers(take(range(2), 0)), IsEmpty());
  EXPECT_THAT(all_numbers(take(repeat(range(2)), 3)), ElementsAre(0, 1, 0));
}

TEST(Skip, LeavesTheRestOrNothing) {
  EXPECT_THAT(all_numbers(skip(range(4), 2)), ElementsAre(2, 3));
  EXPECT_THAT(all_numbers(skip(range(4), 9)), IsEmpty());
  EXPECT_EQ(skip(repeat(range(2)), 3)->size(), std::nullopt);
  EXPECT_THAT(numbers(skip(repeat(range(2)), 3), 3), ElementsAre(1, 0, 1));
  EXPECT_THAT(numbers(skip(repeat(range(2)), kMost), 3), IsEmpty());
}

TEST(Shard, KeepsEveryNthPositionAndTheFirstOnesGetOneMore) {
  EXPECT_THAT(all_numbers(shard(range(5), 2, 0)), ElementsAre(0, 2, 4));
  EXPECT_THAT(all_numbers(shard(range(5), 2, 1)), ElementsAre(1, 3));
  EXPECT_THAT(all_numbers(shard(range(2), 5, 4)), IsEmpty());
  EXPECT_THAT(numbers(shard(repeat(range(3)), 2, 1), 4), ElementsAre(1, 0, 2, 1));
}

TEST(Shard, StacksWithoutOverflow) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const OrderPtr order = shard(shard(range(kMost), kHuge, 3), kHuge, 0);
  EXPECT_EQ(order->size(), 1U);
  EXPECT_THAT(numbers(order, 5), ElementsAre(3));
}

TEST(Shard, RefusesWhatIsNoShard) {
  const auto refused = [](std::int64_t shards, std::int64_t index, const char* found) {
    EXPECT_THAT(
        [=] { (void)shard(range(5), shards, index); },
        ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("expected"), HasSubstr(found))))
        << shards << ", " << index;
  };
  refused(0, 0, "found 0");
  refused(-3, 0, "found -3");
  refused(4, 4, "an index from 0 to 3, found 4");
  refused(4, -1, "an index from 0 to 3, found -1");
}

}  // namespace
}  // namespace penstock::order
