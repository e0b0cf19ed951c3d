#include <random>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(RepeatEach, PutsEachSampleInARowAndNumbersItsDraws) {
  const order::OrderPtr order = order::repeat_each(order::range(2), 3);
  EXPECT_EQ(
      read(order, 10),
      (reference::Samples{
          {0, 0, 0, 1}, {0, 0, 0, 2}, {0, 0, 0, 3}, {1, 0, 0, 4}, {1, 0, 0, 5}, {1, 0, 0, 6}}));
  EXPECT_EQ(order->size(), 6);
  EXPECT_EQ(order->epochs(), 1);
  EXPECT_EQ(order->describe(), "range(2).repeat_each(3)");
  EXPECT_EQ(order::repeat_each(order::repeat(order::range(2)), 3)->size(), std::nullopt);
  EXPECT_EQ(order::repeat_each(order::range(0), 3)->size(), 0);
}

// Any positions, at any stride, over any input.
TEST(RepeatEach, ReadsAnywhereAsTheModelDoes) {
  std::mt19937_64 random(1);
  const RandomKey key(7, 0);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const std::uint64_t size = 1 + random() % 300;
    const std::uint64_t times = 1 + random() % 5;
    const bool windowed = random() % 2 == 0;
    const order::OrderPtr input = windowed ? order::shuffle_window(order::range(size), key, 20)
                                           : order::shuffle(order::range(size), key);
    const reference::Model model =
        windowed ? reference::shuffle_window(reference::range(size), key, 20, true)
                 : reference::shuffle(reference::range(size), key, true);
    const auto iteration = static_cast<std::uint32_t>(random() % 3);
    const reference::Samples all =
        reference::repeat_each(model, times)(iteration, size * times + 1);
    ASSERT_EQ(all.size(), size * times);
    const auto cursor = order::repeat_each(input, static_cast<std::int64_t>(times))->open();
    const std::uint64_t first = random() % all.size();
    const std::uint64_t stride = 1 + random() % 13;
    reference::Samples expected;
    for (std::uint64_t p = first; p < all.size(); p += stride) expected.push_back(all[p]);
    EXPECT_EQ(read(*cursor, iteration, first, stride, all.size()), expected);
    std::vector<std::uint64_t> positions(20);
    for (std::uint64_t& position : positions) position = random() % all.size();
    expected.clear();
    for (const std::uint64_t position : positions) expected.push_back(all[position]);
    reference::Samples found(positions.size());
    cursor->read_at(iteration, positions, found);
    EXPECT_EQ(found, expected);
  }
}

TEST(RepeatEach, RefusesAnImpossibleNumberOfTimes) {
  const auto refused = [](const order::OrderPtr& input, std::int64_t times) {
    return message_of<std::invalid_argument>([&] { (void)order::repeat_each(input, times); });
  };
  EXPECT_THAT(refused(order::range(5), 0),
              HasSubstr("range(5).repeat_each(0): expected 1 or more times, found 0"));
  EXPECT_THAT(refused(order::range(std::uint64_t{1} << 40), std::int64_t{1} << 40),
              HasSubstr("fewer than 2^64 positions"));
}

}  // namespace
}  // namespace penstock
