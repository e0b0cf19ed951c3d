#include <limits>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/order/operations.hpp>

#include "tests/order/reading.hpp"

namespace penstock::order {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

std::vector<std::uint32_t> epochs_of(const OrderPtr& order, std::uint64_t count,
                                     std::uint32_t iteration = 0) {
  std::vector<SampleId> samples(count);
  samples.resize(order->open()->read(iteration, 0, 1, samples));
  std::vector<std::uint32_t> out;
  for (const SampleId& sample : samples) out.push_back(sample.epoch);
  return out;
}

TEST(Repeat, GoesThroughItsInputSoManyTimesAndCountsEpochs) {
  const OrderPtr order = repeat(range(2), 3);
  EXPECT_THAT(all_numbers(order), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(epochs_of(order, 6), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(epochs_of(order, 6, 2), ElementsAre(6, 6, 7, 7, 8, 8));
  EXPECT_THAT(all_numbers(repeat(range(2), 0)), IsEmpty());
}

TEST(Repeat, CountsTheEpochsOfNestedRepeatsTogether) {
  const OrderPtr order = repeat(repeat(range(1), 2), 3);
  EXPECT_EQ(order->epochs(), 6U);
  EXPECT_THAT(epochs_of(order, 9), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Repeat, ForEverOverNothingEndsAtOnce) {
  const OrderPtr order = repeat(range(0));
  EXPECT_EQ(order->size(), 0U);
  EXPECT_THAT(numbers(order, 3), IsEmpty());
  EXPECT_THAT(numbers(order, 3, 5), IsEmpty());
  EXPECT_THAT(numbers(repeat(order, 2), 3, 1), IsEmpty());
}

TEST(Repeat, ForEverHasOnlyOneIteration) {
  const OrderPtr order = repeat(range(2));
  EXPECT_EQ(order->size(), std::nullopt);
  EXPECT_EQ(order->epochs(), std::nullopt);
  EXPECT_THAT(epochs_of(order, 5), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_THAT([&] { (void)numbers(order, 1, 1); },
              ThrowsMessage<std::out_of_range>(HasSubstr("only iteration 0, but iteration 1")));
}

TEST(Repeat, SaysSoWhenTheEpochsRunOut) {
  const OrderPtr order = repeat(range(2));
  constexpr std::uint64_t kLast = (std::uint64_t{1} << 33) - 1;
  EXPECT_THAT(numbers(order, 1, 0, kLast), ElementsAre(1));
  EXPECT_THAT([&] { (void)numbers(order, 1, 0, kLast + 1); },
              ThrowsMessage<std::out_of_range>(HasSubstr("position 8589934592")));
  EXPECT_THAT([&] { (void)numbers(repeat(range(2), 3), 1, 0xFFFFFFFF); },
              ThrowsMessage<std::out_of_range>(HasSubstr("epochs are counted in 32 bits")));
}

TEST(Repeat, RefusesWhatCannotBeCounted) {
  const auto refused = [](const OrderPtr& input, std::optional<std::int64_t> times,
                          const char* why) {
    EXPECT_THAT([=] { (void)repeat(input, times); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
  };
  refused(range(2), -1, "range(2).repeat(-1): expected 0 or more times, found -1");
  refused(repeat(range(2)), 3, "endless already");
  refused(repeat(range(2)), {}, "endless already");
  refused(take(repeat(range(2)), 5), 3, "give the inner repeat a number of times");
  refused(range(2), std::int64_t{1} << 32, "fewer than 2^32 epochs");
  refused(repeat(range(1), 1 << 20), 1 << 12, "fewer than 2^32 epochs");
  refused(range(std::numeric_limits<std::uint64_t>::max() / 2), 3, "fewer than 2^64 positions");
}

}  // namespace
}  // namespace penstock::order
