#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string refused(const order::OrderPtr& input, std::optional<std::int64_t> times) {
  return message_of<std::invalid_argument>([&] { (void)order::repeat(input, times); });
}

TEST(Repeat, CountsTheEpochUpEachTime) {
  const order::OrderPtr order = order::repeat(order::range(2), 3);
  EXPECT_EQ(read(order, 10), (reference::Samples{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}}));
  EXPECT_EQ(order->size(), 6);
  EXPECT_EQ(order->epochs(), 3);
  EXPECT_EQ(order->describe(), "range(2).repeat(3)");
}

TEST(Repeat, NestedRepeatsMultiplyAndNeverGiveAnEpochTwice) {
  const order::OrderPtr order = order::repeat(order::repeat(order::range(1), 2), 3);
  EXPECT_EQ(read(order, 10), (reference::Samples{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}}));
  EXPECT_EQ(order->epochs(), 6);
  EXPECT_EQ(read(order, 1, 7), (reference::Samples{{0, 42}}));
}

TEST(Repeat, WithoutANumberNeverEnds) {
  const order::OrderPtr order = order::repeat(order::range(3));
  EXPECT_EQ(order->size(), std::nullopt);
  EXPECT_EQ(order->epochs(), std::nullopt);
  EXPECT_EQ(order->describe(), "range(3).repeat()");
  EXPECT_EQ(read(*order->open(), 0, 3'000'000'001, 1, 2),
            (reference::Samples{{1, 1'000'000'000}, {2, 1'000'000'000}}));
}

TEST(Repeat, ForEverOverNothingEndsAtOnce) {
  const order::OrderPtr order = order::repeat(order::range(0));
  EXPECT_EQ(order->size(), 0);
  EXPECT_THAT(read(order, 10), IsEmpty());
  EXPECT_THAT(read(order::repeat(order, 5), 10), IsEmpty());
  EXPECT_THAT(read(order::repeat(order::take(order::range(5), 0)), 10), IsEmpty());
}

TEST(Repeat, NoTimesAtAllIsEmpty) {
  const order::OrderPtr order = order::repeat(order::range(5), 0);
  EXPECT_EQ(order->size(), 0);
  EXPECT_THAT(read(order, 10), IsEmpty());
}

TEST(Repeat, RefusesAnImpossibleNumberOfTimes) {
  EXPECT_THAT(refused(order::range(5), -1),
              HasSubstr("range(5).repeat(-1): expected 0 or more times, found -1"));
  EXPECT_THAT(refused(order::repeat(order::range(5), 1 << 20), 1 << 12),
              HasSubstr("expected fewer than 2^32 epochs, found 4096 times 1048576"));
  EXPECT_THAT(refused(order::range(5), INT64_MAX), HasSubstr("expected fewer than 2^32 epochs"));
  EXPECT_THAT(refused(order::range(std::uint64_t{1} << 40), 1 << 24),
              HasSubstr("expected fewer than 2^64 positions"));
}

TEST(Repeat, RefusesAnEndlessInputAlsoBehindATake) {
  const order::OrderPtr endless = order::repeat(order::range(5));
  EXPECT_THAT(refused(endless, {}), HasSubstr("range(5).repeat().repeat(): the input is endless"));
  EXPECT_THAT(refused(endless, 3), HasSubstr("repeat it once only"));
  EXPECT_THAT(refused(order::take(endless, 7), 3),
              HasSubstr("give the inner repeat a number of times"));
}

TEST(Repeat, SaysWhenTheEpochsRunOut) {
  const auto cursor = order::repeat(order::range(2))->open();
  const std::uint64_t last = (std::uint64_t{1} << 33) - 1;
  EXPECT_EQ(read(*cursor, 0, last, 1, 1), (reference::Samples{{1, UINT32_MAX}}));
  EXPECT_THAT(message_of<std::out_of_range>([&] { (void)read(*cursor, 0, last, 1, 2); }),
              HasSubstr("epochs are counted in 32 bits, and position 8589934592"));
  const auto finite = order::repeat(order::range(2), 1 << 20)->open();
  EXPECT_THAT(message_of<std::out_of_range>([&] { (void)read(*finite, 1 << 12, 0, 1, 1); }),
              HasSubstr("epochs are counted in 32 bits"));
}

TEST(Repeat, AnEndlessOneHasNoSecondIteration) {
  const auto cursor = order::repeat(order::range(2))->open();
  EXPECT_THAT(message_of<std::out_of_range>([&] { (void)read(*cursor, 1, 0, 1, 1); }),
              HasSubstr("only iteration 0"));
}

}  // namespace
}  // namespace penstock
