#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/order/operations.hpp>

#include "tests/order/chi_square.hpp"
#include "tests/order/model.hpp"
#include "tests/order/reading.hpp"

namespace penstock::order {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

using Numbers = std::vector<std::uint64_t>;

// With fixed seeds a case that passes always passes; this is what a wrong one would have to hit.
constexpr double kImplausible = 1e-4;

Numbers sorted(Numbers values) {
  std::sort(values.begin(), values.end());
  return values;
}

Numbers first_numbers(std::uint64_t n) {
  Numbers out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST(Shuffle, PutsEverySampleExactlyOnce) {
  for (const std::uint64_t size : {0, 1, 2, 255, 256, 257, 300, 511, 512, 513, 4'097, 100'000})
    EXPECT_EQ(sorted(all_numbers(shuffle(range(size), RandomKey(7, 0)))), first_numbers(size))
        << size;
}

TEST(Shuffle, IsTheDescribedNetworkAtEverySize) {
  for (const std::uint64_t size : {3, 256, 257, 1'000, 1'024, 1'025, 40'000})
    for (const std::uint32_t iteration : {0U, 1U, 0xFFFFFFFFU})
      EXPECT_EQ(all_numbers(shuffle(range(size), RandomKey(9, 4)), iteration),
                model::permutation(size, RandomKey(9, 4), iteration))
          << size;
}

// SEMANTICS, proof 4: epochs differ with reshuffle, agree without.
TEST(Shuffle, IsAnotherPermutationEachEpochUnlessToldOtherwise) {
  for (const std::uint64_t size : {200, 1'000}) {
    const OrderPtr anew = shuffle(range(size), RandomKey(7, 0));
    const OrderPtr same = shuffle(range(size), RandomKey(7, 0), false);
    EXPECT_NE(all_numbers(anew, 0), all_numbers(anew, 1));
    EXPECT_EQ(all_numbers(same, 0), all_numbers(same, 1));
    EXPECT_EQ(all_numbers(same, 0), all_numbers(anew, 0));
    EXPECT_NE(all_numbers(anew), all_numbers(shuffle(range(size), RandomKey(8, 0))));
  }
}

// SEMANTICS, proof 5.
TEST(Shuffle, ThenRepeatKeepsEveryEpochAPermutation) {
  const OrderPtr order = repeat(shuffle(range(1'000), RandomKey(7, 0)), 3);
  std::set<Numbers> blocks;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto block = numbers(order, 1'000, 0, epoch * 1'000);
    EXPECT_EQ(sorted(block), first_numbers(1'000));
    blocks.insert(block);
  }
  EXPECT_EQ(blocks.size(), 3U);
}

// SEMANTICS, proof 4.
TEST(Shuffle, AllPermutationsOfAFewComeEquallyOften) {
  for (std::size_t n = 2; n <= 5; ++n) {
    const OrderPtr input = range(n);
    Numbers by_seed(factorial(n));
    Numbers by_epoch(factorial(n));
    const auto cursor = shuffle(input, RandomKey(7, 0))->open();
    std::array<SampleId, 5> ids;
    Numbers values(n);
    const auto index = [&] {
      for (std::size_t k = 0; k < n; ++k) values[k] = ids[k].number;
      return permutation_index(values);
    };
    for (std::uint32_t seed = 0; seed < 200'000; ++seed) {
      shuffle(input, RandomKey(seed, 0))->open()->read(0, 0, 1, ids);
      ++by_seed[index()];
      cursor->read(seed, 0, 1, ids);
      ++by_epoch[index()];
    }
    EXPECT_GT(evenness(by_seed), kImplausible) << n;
    EXPECT_GT(evenness(by_epoch), kImplausible) << n;
  }
}

// Beyond the sizes that are tables: what a network with too few or too weak rounds gets wrong.
TEST(Shuffle, IsUniformOverTheSeedsAtTheSizesOfTheNetwork) {
  for (const std::uint64_t size : {257, 300, 512}) {
    Numbers image(size);          // of position 0
    Numbers distance(size - 1);   // from one image to the next
    Numbers order(factorial(5));  // of five neighbours
    Numbers far(factorial(4));    // of four that differ in high bits
    for (std::uint64_t seed = 0; seed < 200'000; ++seed) {
      const auto cursor = shuffle(range(size), RandomKey(seed, 0))->open();
      std::array<std::uint64_t, 8> positions{0, 1, 2, 3, 4, 64, 128, 192};
      std::array<SampleId, 8> ids;
      cursor->read_at(0, positions, ids);
      std::array<std::uint64_t, 8> values;
      for (std::size_t k = 0; k < 8; ++k) values[k] = ids[k].number;
      ++image[values[0]];
      ++distance[(values[1] + size - values[0]) % size - 1];
      ++order[permutation_index(std::span(values).first(5))];
      ++far[permutation_index(std::array{values[0], values[5], values[6], values[7]})];
    }
    EXPECT_GT(evenness(image), kImplausible) << size;
    EXPECT_GT(evenness(distance), kImplausible) << size;
    EXPECT_GT(evenness(order), kImplausible) << size;
    EXPECT_GT(evenness(far), kImplausible) << size;
  }
}

// One long permutation, as a user would see it: neighbours know nothing of one another.
TEST(Shuffle, SpreadsTheNeighboursOfALargeSource) {
  constexpr std::uint64_t kSize = 1'000'000;
  const auto out = all_numbers(shuffle(range(kSize), RandomKey(7, 0)));
  Numbers pairs(64 * 64);
  Numbers differences(64 * 64);
  for (std::size_t k = 0; k + 4 < out.size(); k += 4) {
    ++pairs[out[k] * 64 / kSize * 64 + out[k + 1] * 64 / kSize];
    const std::uint64_t one = (out[k + 1] + kSize - out[k]) % kSize;
    const std::uint64_t next = (out[k + 2] + kSize - out[k + 1]) % kSize;
    ++differences[one * 64 / kSize * 64 + next * 64 / kSize];
  }
  EXPECT_GT(evenness(pairs), kImplausible);
  EXPECT_GT(evenness(differences), kImplausible);
}

TEST(Shuffle, OfABillionStartsAtOnceAndHoldsNothing) {
  const OrderPtr order = shuffle(range(1'000'000'000), RandomKey(7, 0));
  const auto start = std::chrono::steady_clock::now();
  const auto cursor = order->open();
  std::vector<SampleId> out(256);
  ASSERT_EQ(cursor->read(0, 0, 1, out), 256U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_LT(cursor->memory_bytes(), 1U << 20);
  std::set<std::uint64_t> different;
  for (const SampleId& id : out) {
    EXPECT_LT(id.number, 1'000'000'000U);
    different.insert(id.number);
  }
  EXPECT_EQ(different.size(), 256U);
}

TEST(Shuffle, WorksAtTheLargestSize) {
  const auto out =
      numbers(shuffle(range(model::kForEver), RandomKey(7, 0)), 100, 0, model::kForEver - 100);
  EXPECT_EQ(std::set<std::uint64_t>(out.begin(), out.end()).size(), 100U);
}

TEST(Shuffle, RefusesAnEndlessInputAndNamesTheRemedy) {
  EXPECT_THAT([] { (void)shuffle(repeat(range(5)), RandomKey(7, 0)); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("put shuffle before repeat, or give shuffle a buffer")));
}

// Saved positions name samples only as long as these numbers stay.
TEST(Shuffle, KeepsTheOrderOfEarlierVersions) {
  EXPECT_EQ(all_numbers(shuffle(range(10), RandomKey(7, 0))),
            (Numbers{5, 1, 6, 0, 3, 7, 8, 2, 4, 9}));
  EXPECT_EQ(numbers(shuffle(range(1'000), RandomKey(7, 0)), 8),
            (Numbers{795, 449, 260, 847, 407, 445, 336, 221}));
  EXPECT_EQ(numbers(shuffle(range(1'000), RandomKey(7, 0)), 8, 1),
            (Numbers{996, 540, 17, 712, 108, 628, 728, 251}));
  EXPECT_EQ(numbers(shuffle(range(1'000'000'000), RandomKey(7, 1)), 8),
            (Numbers{745454694, 728180716, 338176913, 37562465, 218207490, 763863458, 570884551,
                     277668665}));
}

}  // namespace
}  // namespace penstock::order
