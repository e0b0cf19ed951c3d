// Streams: what a known end allows must come out of an unknown one too, once and forwards.
#include <algorithm>
#include <random>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

using reference::Samples;
using testing::HasSubstr;
using Numbers = std::vector<std::uint64_t>;

/// A stream of `size` samples that all arrive as soon as a reader waits, and what was waited for.
struct Feed {
  explicit Feed(std::uint64_t all) : size(all) {}

  [[nodiscard]] order::OrderPtr order(std::uint32_t source = 0) {
    return order::arrivals(
        [this](std::uint64_t wanted) {
          if (fails) throw std::runtime_error("told to fail");
          most = std::max(most, wanted);
          return std::min(size, wanted);
        },
        source);
  }

  std::uint64_t size;
  std::uint64_t most = 0;
  bool fails = false;
};

TEST(Arrivals, AreEndlessAndEndWhereNoMoreArrive) {
  Feed feed(5);
  const order::OrderPtr order = feed.order(3);
  EXPECT_EQ(order->size(), std::nullopt);
  EXPECT_EQ(order->epochs(), 1);
  EXPECT_TRUE(order->is_stream());
  EXPECT_EQ(order->describe(), "arrivals(source=3)");
  const auto cursor = order->open();
  EXPECT_EQ(read(*cursor, 0, 0, 1, 2), (Samples{{0, 0, 3}, {1, 0, 3}}));
  EXPECT_EQ(feed.most, 2) << "no more is waited for than was asked";
  EXPECT_EQ(read(*cursor, 0, 2, 2, 9), (Samples{{2, 0, 3}, {4, 0, 3}}));
  EXPECT_TRUE(read(*cursor, 0, 5, 1, 9).empty());
  EXPECT_TRUE(read(*cursor, 0, 100, 1, 9).empty());
}

TEST(Arrivals, MoreThanWasWaitedForIsNoMoreThanWasAsked) {
  const order::OrderPtr order = order::arrivals([](std::uint64_t) { return std::uint64_t{1000}; });
  EXPECT_EQ(numbers(read(order, 3)), (Numbers{0, 1, 2}));
}

TEST(Arrivals, ANullFunctionIsRefused) {
  EXPECT_THROW((void)order::arrivals(nullptr), std::invalid_argument);
}

TEST(Arrivals, CannotBeReadAgainOrInASecondEpoch) {
  Feed feed(100);
  for (const order::OrderPtr& order :
       {feed.order(), order::shuffle_window(feed.order(), RandomKey(7, 1), 10),
        order::take(order::shard(feed.order(), 2, 0), 40)}) {
    const auto cursor = order->open();
    ASSERT_EQ(read(*cursor, 0, 0, 1, 20).size(), 20) << order->describe();
    for (const std::uint64_t back : {0, 10, 19})
      EXPECT_THAT(message_of<std::logic_error>([&] { (void)read(*cursor, 0, back, 1, 5); }),
                  HasSubstr("cannot be read again or resumed"))
          << order->describe();
    EXPECT_THAT(message_of<std::logic_error>([&] { (void)read(*cursor, 1, 20, 1, 5); }),
                HasSubstr("no second epoch"));
    EXPECT_EQ(read(*cursor, 0, 20, 1, 5).size(), 5) << "a refused read moves nothing";
  }
}

TEST(Arrivals, OperationsThatNeedThePastRefuseThemWithTheRemedy) {
  Feed feed(100);
  const RandomKey key(7, 1);
  for (const order::OrderPtr& order :
       {feed.order(), order::take(feed.order(), 50), order::skip(feed.order(), 2),
        order::shard(feed.order(), 2, 1), order::shuffle_window(feed.order(), key, 5),
        order::take(order::shuffle_window(feed.order(), key, 5), 50)}) {
    EXPECT_TRUE(order->is_stream()) << order->describe();
    EXPECT_THAT(message_of<std::invalid_argument>([&] { (void)order::shuffle(order, key); }),
                HasSubstr("give shuffle a buffer"));
    EXPECT_THAT(message_of<std::invalid_argument>([&] { (void)order::repeat(order, 2); }),
                HasSubstr("leave the repeat out"));
    EXPECT_THROW((void)order::repeat(order), std::invalid_argument);
  }
  EXPECT_FALSE(order::take(order::range(5), 3)->is_stream());
  EXPECT_FALSE(order::shuffle_window(order::range(5), key, 3)->is_stream());
}

TEST(Arrivals, ATakeOfAStreamThatEndsEarlyEndsWithIt) {
  Feed feed(7);
  const order::OrderPtr order = order::take(feed.order(), 10);
  EXPECT_EQ(order->size(), 10) << "the most there can be";
  EXPECT_EQ(numbers(read(order, 20)), (Numbers{0, 1, 2, 3, 4, 5, 6}));
}

TEST(StreamWindow, IsTheWindowOverAnInputOfKnownSize) {
  for (const std::uint64_t size : {0, 1, 2, 5, 99, 100, 101, 511, 512, 513, 3000})
    for (const std::uint64_t places : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{100},
                                       std::uint64_t{700}, std::uint64_t{5000}, UINT64_MAX}) {
      Feed feed(size);
      const RandomKey key(11, 2);
      const Samples expected = read(order::shuffle_window(order::range(size), key, places), 4000);
      EXPECT_EQ(read(order::shuffle_window(feed.order(), key, places), 4000), expected)
          << size << " in a window of " << places;
    }
}

TEST(StreamWindow, WaitsForNoMoreArrivalsThanAPositionNeeds) {
  Feed feed(1'000'000);
  const auto cursor = order::shuffle_window(feed.order(), RandomKey(7, 1), 100)->open();
  (void)read(*cursor, 0, 0, 1, 1);
  EXPECT_EQ(feed.most, 100);
  (void)read(*cursor, 0, 1, 1, 32);
  EXPECT_EQ(feed.most, 132);
  (void)read(*cursor, 0, 33, 1, 2000);
  EXPECT_EQ(feed.most, 2132);
  const auto one = order::shuffle_window(feed.order(), RandomKey(7, 1), 1)->open();
  feed.most = 0;
  (void)read(*one, 0, 0, 1, 4);
  EXPECT_EQ(feed.most, 4) << "a window of one place adds no waiting";
}

TEST(StreamWindow, AnInputThatThrowsLosesNothing) {
  Feed feed(5000);
  const RandomKey key(7, 1);
  const Samples expected = read(order::shuffle_window(order::range(5000), key, 300), 5000);
  const auto cursor = order::shuffle_window(feed.order(), key, 300)->open();
  Samples all;
  for (std::size_t wanted = 1; all.size() < expected.size(); wanted = wanted * 3 % 1500) {
    feed.fails = true;
    try {  // at the very end nothing is asked of the input any more
      const Samples some = read(*cursor, 0, all.size(), 1, wanted);
      EXPECT_GT(all.size() + some.size(), 5000 - 300);
      all.insert(all.end(), some.begin(), some.end());
    } catch (const std::runtime_error&) {
    }
    feed.fails = false;
    const Samples some = read(*cursor, 0, all.size(), 1, wanted);
    all.insert(all.end(), some.begin(), some.end());
  }
  EXPECT_EQ(all, expected);
}

TEST(StreamWindow, SaysWhatItHolds) {
  Feed feed(1'000'000);
  const auto cursor = order::shuffle_window(feed.order(), RandomKey(7, 1), 10'000)->open();
  (void)read(*cursor, 0, 0, 1, 256);
  EXPECT_GE(cursor->memory_bytes(), 10'000 * sizeof(SampleId));
  EXPECT_LT(cursor->memory_bytes(), 6 * 10'000 * sizeof(SampleId));
}

// take, skip, shard and windows over each other, with the same operations on a plain vector beside.
TEST(StreamPlan, ReadsAsTheReferenceDoesWhereverTheStreamEnds) {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    Feed feed(below(4) == 0 ? below(4) : below(700));
    order::OrderPtr order = feed.order(2);
    reference::Model model = reference::range(feed.size, 2);
    for (std::uint64_t left = below(5), operation = 0; left != 0; --left) {
      const RandomKey key(seed, static_cast<std::uint32_t>(++operation));
      const std::uint64_t count = below(below(2) == 0 ? 6 : 500);
      switch (below(4)) {
        case 0:
          order = order::take(order, count);
          model = reference::take(model, count);
          break;
        case 1:
          order = order::skip(order, count);
          model = reference::skip(model, count);
          break;
        case 2: {
          const std::uint64_t shards = 1 + below(5);
          const std::uint64_t index = below(shards);
          order = order::shard(order, static_cast<std::int64_t>(shards),
                               static_cast<std::int64_t>(index));
          model = reference::shard(model, shards, index);
          break;
        }
        default:
          order = order::shuffle_window(order, key, count + 1);
          model = reference::shuffle_window(model, key, count + 1, true);
      }
    }
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ": " << order->describe() << " of " << feed.size);
    const Samples expected = model(0, 1000);
    ASSERT_LE(expected.size(), order->size().value_or(SIZE_MAX));

    const auto cursor = order->open();
    Samples all;
    for (bool ended = false; !ended;) {
      const std::size_t wanted = 1 + below(90);
      const Samples some = read(*cursor, 0, all.size(), 1, wanted);
      ended = some.size() < wanted;
      all.insert(all.end(), some.begin(), some.end());
    }
    ASSERT_EQ(all, expected);
    ASSERT_TRUE(read(*cursor, 0, all.size(), 1, 5).empty()) << "an end stays the end";
    ASSERT_TRUE(read(*cursor, 0, all.size() + 10, 1, 5).empty());

    // Forwards with gaps and strides.
    const auto other = order->open();
    for (std::uint64_t first = below(20); first < expected.size() + 20; first += below(40)) {
      const std::uint64_t stride = 1 + below(7);
      const std::size_t wanted = 1 + below(30);
      Samples answer;
      for (std::uint64_t p = first; p < expected.size() && answer.size() < wanted; p += stride)
        answer.push_back(expected[p]);
      ASSERT_EQ(read(*other, 0, first, stride, wanted), answer) << "from position " << first;
      first += wanted * stride;
    }
  }
}

}  // namespace
}  // namespace penstock
