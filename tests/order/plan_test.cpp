// Thousands of random plans against the plain model: whatever the operations and however they are
// read, the answers are those of one sequence.
#include <gtest/gtest.h>

#include "tests/order/model.hpp"

namespace penstock::order {

namespace {

using model::Plan;
using model::Samples;

constexpr model::Scale kSmall{.size = 24, .times = 4, .count = 12, .shards = 3};
constexpr model::Scale kLarge{.size = 700, .times = 3, .count = 90, .shards = 3};

/// One plan, its order, and what the model says of its first iterations.
struct Case {
  Case(std::uint64_t seed, const model::Scale& scale, std::uint64_t limit)
      : plan(model::random_plan(seed, scale)), order(model::build(plan)) {
    const std::size_t depth = plan.ops.size();
    // An endless repeat has no second iteration.
    const std::uint32_t iterations = model::epochs(plan, depth) ? 3 : 1;
    for (std::uint32_t i = 0; i < iterations; ++i)
      expected.push_back(model::samples(plan, depth, i, limit));
    all_there = model::size(plan, depth) <= limit;
  }

  Plan plan;
  OrderPtr order;
  std::vector<Samples> expected;  ///< by iteration, up to the limit
  bool all_there;                 ///< whether the order ends before the limit
};

/// Reads `wanted` samples and holds them against the model's.
void expect_slice(const Case& c, OrderCursor& cursor, std::uint32_t iteration, std::uint64_t first,
                  std::uint64_t stride, std::uint64_t wanted) {
  const Samples& all = c.expected[iteration];
  Samples slice;
  for (std::uint64_t p = first; p < all.size() && slice.size() < wanted; p += stride)
    slice.push_back(all[p]);
  if (!c.all_there) wanted = slice.size();  // beyond the limit the model says nothing
  Samples read(wanted);
  read.resize(cursor.read(iteration, first, stride, read));
  ASSERT_EQ(read, slice) << "iteration " << iteration << ", first " << first << ", stride "
                         << stride << ", wanted " << wanted;
}

#define SCOPED_PLAN(seed, c) \
  SCOPED_TRACE("plan " + std::to_string(seed) + ": " + (c).order->describe())

TEST(Plan, SizeAndEpochsAreExact) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const Plan plan = model::random_plan(seed, kSmall);
    const OrderPtr order = model::build(plan);
    SCOPED_TRACE("plan " + std::to_string(seed) + ": " + order->describe());
    ASSERT_EQ(order->size().value_or(model::kForEver), model::size(plan, plan.ops.size()));
    ASSERT_EQ(order->epochs(), model::epochs(plan, plan.ops.size()));
  }
}

// The plans below would prove little if most of them were empty.
TEST(Plan, RandomOnesAreMostlyLongEnoughToTell) {
  int empty = 0;
  int single = 0;
  int telling = 0;
  int endless = 0;
  for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
    const Plan plan = model::random_plan(seed, kSmall);
    const std::uint64_t size = model::size(plan, plan.ops.size());
    empty += size == 0;
    single += size == 1;
    telling += size >= 8;
    endless += size == model::kForEver;
  }
  EXPECT_GT(empty, 50);
  EXPECT_GT(single, 50);
  EXPECT_GT(telling, 1'500);
  EXPECT_GT(endless, 200);
}

TEST(Plan, IsTheModelsSequenceHoweverItIsRead) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const Case c(seed, kSmall, 120);
    SCOPED_PLAN(seed, c);
    std::mt19937_64 random(seed);
    const auto cursor = c.order->open();
    for (std::uint32_t i = 0; i < c.expected.size(); ++i) {
      const std::uint64_t size = c.expected[i].size();
      ASSERT_NO_FATAL_FAILURE(expect_slice(c, *cursor, i, 0, 1, size + 3));
      // In pieces, as the loader reads.
      for (std::uint64_t first = 0; first < size;) {
        const std::uint64_t piece = 1 + random() % 9;
        ASSERT_NO_FATAL_FAILURE(expect_slice(c, *cursor, i, first, 1, piece));
        first += piece;
      }
    }
    // Back and forth, through all iterations.
    for (int k = 0; k < 20; ++k) {
      const auto i = static_cast<std::uint32_t>(random() % c.expected.size());
      const std::uint64_t first = random() % (c.expected[i].size() + 2);
      ASSERT_NO_FATAL_FAILURE(
          expect_slice(c, *cursor, i, first, 1 + random() % 7, 1 + random() % 40));
    }
  }
}

// SEMANTICS, proof 9.
TEST(Plan, AFreshCursorGoesOnFromEveryPosition) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    const Case c(seed, kSmall, 60);
    SCOPED_PLAN(seed, c);
    for (std::uint32_t i = 0; i < c.expected.size(); ++i)
      for (std::uint64_t first = 0; first <= c.expected[i].size(); ++first)
        ASSERT_NO_FATAL_FAILURE(
            expect_slice(c, *c.order->open(), i, first, 1, c.expected[i].size() - first + 1));
  }
}

TEST(Plan, LargeOnesGoOnFromRandomPositions) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Case c(seed, kLarge, 2'500);
    SCOPED_PLAN(seed, c);
    std::mt19937_64 random(seed);
    const auto kept = c.order->open();
    for (int k = 0; k < 6; ++k) {
      const auto i = static_cast<std::uint32_t>(random() % c.expected.size());
      const std::uint64_t first = random() % (c.expected[i].size() + 2);
      const std::uint64_t stride = 1 + random() % (k % 2 == 0 ? 3 : 700);
      ASSERT_NO_FATAL_FAILURE(expect_slice(c, *c.order->open(), i, first, 1, 600));
      ASSERT_NO_FATAL_FAILURE(expect_slice(c, *kept, i, first, stride, 300));
    }
  }
}

TEST(Plan, ReadsScatteredPositions) {
  for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
    const Case c(seed, kSmall, 120);
    SCOPED_PLAN(seed, c);
    std::mt19937_64 random(seed);
    for (std::uint32_t i = 0; i < c.expected.size(); ++i) {
      if (c.expected[i].empty()) continue;
      std::vector<std::uint64_t> positions(random() % 30);
      Samples wanted;
      for (std::uint64_t& position : positions) {
        position = random() % c.expected[i].size();
        wanted.push_back(c.expected[i][position]);
      }
      Samples read(positions.size());
      c.order->open()->read_at(i, positions, read);
      ASSERT_EQ(read, wanted);
    }
  }
}

TEST(Plan, CursorsOfOneOrderAreIndependent) {
  const OrderPtr order =
      shuffle_window(repeat(shuffle(range(300), RandomKey(1, 0)), 4), RandomKey(1, 1), 20);
  const auto one = order->open();
  const auto other = order->open();
  Samples whole(1'200);
  ASSERT_EQ(order->open()->read(0, 0, 1, whole), 1'200U);
  for (std::uint64_t p = 0; p < 1'200; ++p) {
    Samples a(1);
    Samples b(1);
    one->read(0, p, 1, a);
    other->read(0, 1'199 - p, 1, b);
    ASSERT_EQ(a[0], whole[p]);
    ASSERT_EQ(b[0], whole[1'199 - p]);
  }
}

TEST(Plan, DescribesItselfOperationByOperation) {
  const RandomKey key(1, 0);
  EXPECT_EQ(shuffle_window(repeat(shuffle(range(400), key), 3), key, 100)->describe(),
            "range(400).shuffle().repeat(3).shuffle(buffer=100)");
  EXPECT_EQ(repeat(shard(skip(take(range(400, 2), 90), 7), 4, 1))->describe(),
            "range(400, source=2).take(90).skip(7).shard(4, 1).repeat()");
  EXPECT_EQ(shuffle(shuffle_window(range(5), key, 2, false), key, false)->describe(),
            "range(5).shuffle(buffer=2, reshuffle=false).shuffle(reshuffle=false)");
}

}  // namespace
}  // namespace penstock::order
