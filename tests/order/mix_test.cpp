// What a mix promises; that every number of it is where the plain model has it is in plan_test.
#include "src/order/mix.hpp"

#include <map>
#include <numeric>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/order/mix_phases.hpp"
#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const RandomKey kMixKey(7, 1);

std::vector<order::OrderPtr> ranges(std::vector<std::uint64_t> sizes) {
  std::vector<order::OrderPtr> out;
  for (const std::uint64_t size : sizes)
    out.push_back(order::range(size, static_cast<std::uint32_t>(out.size())));
  return out;
}

std::map<std::uint32_t, std::uint64_t> shares(const reference::Samples& samples) {
  std::map<std::uint32_t, std::uint64_t> out;
  for (const SampleId& id : samples) ++out[id.source];
  return out;
}

TEST(Mix, SharesAreExactInEveryBlock) {
  const order::OrderPtr mix =
      order::mix(ranges({1'000'000, 1'000'000, 1'000'000}), {{0, {0.7, 0.2, 0.1}}}, kMixKey);
  const auto cursor = mix->open();
  for (std::uint64_t block = 0; block < 50; ++block)
    EXPECT_THAT(shares(read(*cursor, 0, block * 70, 1, 70)),
                ElementsAre(std::pair(0, 49), std::pair(1, 14), std::pair(2, 7)));
}

TEST(Mix, ReadsEveryInputInItsOwnOrderWithoutGaps) {
  const auto samples = read(order::mix(ranges({500, 300}), {{0, {3, 2}}}, kMixKey), 800);
  std::map<std::uint32_t, std::uint64_t> next;
  for (const SampleId& id : samples) EXPECT_EQ(id.number, next[id.source]++);
}

TEST(Mix, TurnsAreShuffled) {
  const auto samples = read(order::mix(ranges({1000, 1000}), {{0, {1, 1}}}, kMixKey), 64);
  std::uint64_t changes = 0;
  for (std::size_t k = 1; k < samples.size(); ++k)
    changes += samples[k].source != samples[k - 1].source ? 1 : 0;
  // 31.5 on average, with a stddev of 4.
  EXPECT_GT(changes, 12);
  EXPECT_LT(changes, 52);
}

TEST(Mix, EndsWhenTheFirstInputDoesWithNothingOfItLost) {
  const auto mix = order::mix(ranges({1000, 37}), {{0, {1, 1}}}, kMixKey);
  const auto samples = read(mix, 2000);
  EXPECT_EQ(mix->size(), 74);
  EXPECT_THAT(shares(samples), ElementsAre(std::pair(0, 37), std::pair(1, 37)));
}

TEST(Mix, GoesOnUntilAllInputsHaveEnded) {
  const auto mix = order::mix(ranges({1000, 37, 0, 111}), {{0, {1, 2, 1, 0.5}}}, kMixKey,
                              MixUntil::all_exhausted);
  EXPECT_EQ(mix->size(), 1148);
  EXPECT_THAT(shares(read(mix, 3000)),
              ElementsAre(std::pair(0, 1000), std::pair(1, 37), std::pair(3, 111)));
}

TEST(Mix, LeavesOutAnInputWithoutWeightAndDoesNotEndWithIt) {
  const auto mix = order::mix(ranges({100, 0}), {{0, {1, 0}}}, kMixKey);
  EXPECT_EQ(mix->size(), 100);
}

TEST(Mix, IsEndlessWhereAllItsInputsAre) {
  const auto inputs = ranges({10, 20});
  const auto mix =
      order::mix({order::repeat(inputs[0]), order::repeat(inputs[1])}, {{0, {1, 1}}}, kMixKey);
  EXPECT_EQ(mix->size(), std::nullopt);
  EXPECT_EQ(mix->epochs(), std::nullopt);
  EXPECT_EQ(read(*mix->open(), 0, 10'000'000'000, 1, 5).size(), 5);
}

TEST(Mix, WeightsChangeAtTheirPositionAndLeaveWhatIsBeforeAsItWas) {
  const auto inputs = ranges({100'000, 100'000});
  const auto before = read(order::mix(inputs, {{0, {1, 1}}}, kMixKey), 1000);
  const auto after = read(order::mix(inputs, {{0, {1, 1}}, {500, {9, 1}}}, kMixKey), 2100);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 500, after.begin()));
  EXPECT_THAT(shares({after.begin() + 500, after.begin() + 500 + 70 * 10}),
              ElementsAre(std::pair(0, 630), std::pair(1, 70)));
  std::map<std::uint32_t, std::uint64_t> next;
  for (const SampleId& id : after) EXPECT_EQ(id.number, next[id.source]++);
}

TEST(Mix, DrawsAnewInEveryIteration) {
  const auto mix = order::mix(ranges({64, 64}), {{0, {1, 1}}}, kMixKey);
  const auto sources = [&](std::uint32_t iteration) {
    std::vector<std::uint32_t> out;
    for (const SampleId& id : read(mix, 128, iteration)) out.push_back(id.source);
    return out;
  };
  EXPECT_NE(sources(0), sources(1));
  EXPECT_EQ(sources(1), sources(1));
}

TEST(Mix, HoldsNoPoolHoweverManyInputsThereAre) {
  const auto mix = order::mix(ranges(std::vector<std::uint64_t>(500, 1'000'000'000)),
                              {{0, std::vector<double>(500, 1)}}, kMixKey);
  const auto cursor = mix->open();
  read(*cursor, 0, 123'456'789'012, 1, 1000);
  EXPECT_LT(cursor->memory_bytes(), 400'000);
}

TEST(Mix, QuotasAreTheLeastExactOnesOrTheNearest) {
  EXPECT_THAT(order::mix_quotas(std::vector{1.0, 2.0}), ElementsAre(22, 44));
  EXPECT_THAT(order::mix_quotas(std::vector{0.25, 0.0, 0.75}), ElementsAre(16, 0, 48));
  EXPECT_THAT(order::mix_quotas(std::vector{1.0, 1e-9}), ElementsAre(1023, 1));
  const auto rounded = order::mix_quotas(std::vector{3.14159265, 2.71828182, 1.41421356});
  EXPECT_EQ(std::accumulate(rounded.begin(), rounded.end(), 0U), 1024);
  EXPECT_NEAR(rounded[0], 1024 * 3.14159265 / 7.27408803, 1);
}

TEST(Mix, SaysWhatIsWrongWithItsWeights) {
  const auto mix = [](std::vector<order::MixWeights> weights) {
    return message_of<std::invalid_argument>([&] {
      (void)order::mix(ranges({5, 5}), std::move(weights), kMixKey);
    });
  };
  EXPECT_THAT(mix({{0, {1}}}), HasSubstr("one weight for each of 2 inputs, found 1"));
  EXPECT_THAT(mix({{0, {1, -2}}}), HasSubstr("weight 1 is -2"));
  EXPECT_THAT(mix({{0, {0, 0}}}), HasSubstr("all weights are 0"));
  EXPECT_THAT(
      mix({{0, {1, 1e-6}}}),
      HasSubstr("weight 1 is 1e-06, a share of 1e-06, and the smallest share is 1/1024: give it "
                "0.000977 or more, or 0"));
  EXPECT_NO_THROW((void)order::mix(ranges({5, 5}), {{0, {1, 1.0 / 2000}}}, kMixKey));
  std::vector<double> many(1001, 0.0011);
  many[0] = 1;
  EXPECT_THAT(message_of<std::invalid_argument>([&] {
                (void)order::mix(ranges(std::vector<std::uint64_t>(1001, 5)), {{0, many}}, kMixKey);
              }),
              HasSubstr("need a block of 1487 places, more than 1024"));
  EXPECT_THAT(mix({{5, {1, 1}}}), HasSubstr("the first at 0"));
  EXPECT_THAT(mix({{0, {1, 1}}, {9, {1, 1}}, {8, {1, 1}}}), HasSubstr("in the order"));
  EXPECT_THROW((void)order::mix({}, {{0, {}}}, kMixKey), std::invalid_argument);
}

TEST(Concatenate, RefusesWhatNothingCanFollow) {
  const auto input = order::range(3);
  EXPECT_THAT(message_of<std::invalid_argument>([&] {
                (void)order::concatenate({order::repeat(input), input});
              }),
              HasSubstr("input 0 (range(3).repeat()) is endless"));
  EXPECT_EQ(order::concatenate({input, order::repeat(input)})->size(), std::nullopt);
  EXPECT_EQ(order::concatenate({})->size(), 0);
}

TEST(Pick, NamesThePositionThatIsNotThere) {
  EXPECT_THAT(message_of<std::invalid_argument>([] {
                (void)order::pick(order::range(3), std::vector<std::uint64_t>{0, 3});
              }),
              HasSubstr("select: position 1 of the list is 3, and the input has 3 samples"));
}

TEST(Sample, DrawsInProportionToTheWeights) {
  const std::vector<double> weights{1, 0, 2.5, 10, 0.5, 1e-12};
  const double sum = 14;
  constexpr std::uint64_t kDraws = 1'000'000;
  const auto samples = read(order::sample(order::range(6), weights, kDraws, kMixKey), kDraws);
  std::map<std::uint64_t, double> seen;
  for (const SampleId& id : samples) ++seen[id.number];
  ChiSquare test;
  for (const std::size_t k : {0, 2, 3, 4}) test.add(seen[k], kDraws * weights[k] / sum);
  EXPECT_LT(test.z(), kOnceIn10000);
  EXPECT_EQ(seen.count(1), 0);
  EXPECT_EQ(seen.count(5), 0);
}

TEST(Sample, ReadsAlikeHoweverItIsAsked) {
  std::vector<double> weights(1000);
  std::iota(weights.begin(), weights.end(), 0);
  const auto order = order::sample(order::range(1000), weights, 5000, kMixKey);
  const auto whole = read(order, 6000);
  ASSERT_EQ(whole.size(), 5000);
  const auto cursor = order->open();
  for (std::uint64_t first = 0; first < 5000; first += 37) {
    const auto some = read(*cursor, 0, first, 7, 20);
    for (std::size_t k = 0; k < some.size(); ++k) ASSERT_EQ(some[k], whole[first + 7 * k]);
  }
  EXPECT_NE(read(order, 100, 1), read(order, 100, 0));
  EXPECT_EQ(numbers(read(order::sample(order::range(1000), weights, 99, kMixKey, false), 99, 0)),
            numbers(read(order::sample(order::range(1000), weights, 99, kMixKey, false), 99, 1)));
}

TEST(Sample, SaysWhatIsWrongWithItsWeights) {
  const auto sample = [](const order::OrderPtr& input, std::vector<double> weights) {
    return message_of<std::invalid_argument>(
        [&] { (void)order::sample(input, weights, 5, kMixKey); });
  };
  EXPECT_THAT(sample(order::range(3), {1, 1}), HasSubstr("each of 3 samples, found 2"));
  EXPECT_THAT(sample(order::range(2), {1, NAN}), HasSubstr("weight 1 is nan"));
  EXPECT_THAT(sample(order::range(2), {0, 0}), HasSubstr("all weights are 0"));
  EXPECT_THAT(sample(order::repeat(order::range(2)), {1, 1}), HasSubstr("sample before repeat"));
  EXPECT_EQ(order::sample(order::range(0), {}, 0, kMixKey)->size(), 0);
}

}  // namespace
}  // namespace penstock
