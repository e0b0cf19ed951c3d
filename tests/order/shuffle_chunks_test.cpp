#include <memory>
#include <random>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

using testing::HasSubstr;
using Begins = std::vector<std::uint64_t>;

std::shared_ptr<const Begins> share(Begins begins) {
  return std::make_shared<const Begins>(std::move(begins));
}

TEST(ShuffleChunks, EachChunkComesAsAWhole) {
  const order::OrderPtr order =
      order::shuffle_chunks(order::range(6), share({0, 2, 3}), RandomKey(1, 0));
  EXPECT_EQ(order->size(), 6);
  EXPECT_EQ(order->epochs(), 1);
  EXPECT_EQ(order->describe(), "range(6).shuffle_chunks(3 chunks)");
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint32_t epoch = 0; epoch < 200; ++epoch) {
    std::vector<std::uint64_t> numbers;
    for (const SampleId& sample : read(*order->open(), epoch, 0, 1, 10)) {
      EXPECT_EQ(sample.epoch, epoch);
      numbers.push_back(sample.number);
    }
    orders.insert(numbers);
  }
  EXPECT_EQ(orders, (std::set<std::vector<std::uint64_t>>{{0, 1, 2, 3, 4, 5},
                                                          {0, 1, 3, 4, 5, 2},
                                                          {2, 0, 1, 3, 4, 5},
                                                          {2, 3, 4, 5, 0, 1},
                                                          {3, 4, 5, 0, 1, 2},
                                                          {3, 4, 5, 2, 0, 1}}));
  EXPECT_EQ(order::shuffle_chunks(order::range(0), share({}), RandomKey(1, 0))->size(), 0);
}

// Any positions, at any stride, of any chunks.
TEST(ShuffleChunks, ReadsAnywhereAsTheModelDoes) {
  std::mt19937_64 random(1);
  const RandomKey key(7, 0);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    Begins begins{0};
    const std::uint64_t size = 1 + random() % 3000;
    const std::uint64_t longest = 1 + random() % 20;
    while (begins.back() < size) begins.push_back(begins.back() + 1 + random() % longest);
    begins.pop_back();
    const bool reshuffle = random() % 3 != 0;
    const auto iteration = static_cast<std::uint32_t>(random() % 3);
    const auto chunk_of = [&](std::uint64_t number) {
      return std::ranges::upper_bound(begins, number) - begins.begin();
    };
    const reference::Samples all = reference::shuffle_chunks(reference::range(size), chunk_of, key,
                                                             reshuffle)(iteration, size + 1);
    ASSERT_EQ(all.size(), size);
    const auto cursor =
        order::shuffle_chunks(order::range(size), share(begins), key, reshuffle)->open();
    const std::uint64_t first = random() % size;
    const std::uint64_t stride = 1 + random() % 13;
    reference::Samples expected;
    for (std::uint64_t p = first; p < size; p += stride) expected.push_back(all[p]);
    EXPECT_EQ(read(*cursor, iteration, first, stride, size), expected);
    std::vector<std::uint64_t> positions(20);
    for (std::uint64_t& position : positions) position = random() % size;
    expected.clear();
    for (const std::uint64_t position : positions) expected.push_back(all[position]);
    reference::Samples found(positions.size());
    cursor->read_at(iteration, positions, found);
    EXPECT_EQ(found, expected);
    EXPECT_GE(cursor->memory_bytes(), 16 * begins.size());
  }
}

TEST(ShuffleChunks, RefusesChunksThatDoNotFit) {
  const auto refused = [](const order::OrderPtr& input, Begins begins) {
    return message_of<std::invalid_argument>(
        [&] { (void)order::shuffle_chunks(input, share(std::move(begins)), RandomKey(1, 0)); });
  };
  for (const Begins& begins : {Begins{}, {1}, {0, 5}, {0, 2, 2}, {0, 3, 1}})
    EXPECT_THAT(refused(order::range(5), begins),
                HasSubstr("expected chunks that begin at ascending positions, the first of them at "
                          "0, below 5"));
  EXPECT_THAT(refused(order::range(0), {0}), HasSubstr("below 0"));
  EXPECT_THAT(refused(order::repeat(order::range(5)), {0}), HasSubstr("put it before repeat"));
}

}  // namespace
}  // namespace penstock
