#include <algorithm>
#include <map>
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

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Numbers = std::vector<std::uint64_t>;

constexpr double kImplausible = 1e-4;

// SEMANTICS, proof 4.
TEST(ShuffleWindow, NeverPutsAnInputEarlierThanTheBufferReaches) {
  const Numbers out = all_numbers(shuffle_window(range(10'000), RandomKey(7, 0), 100));
  ASSERT_EQ(out.size(), 10'000U);
  std::uint64_t earliest = 0;  // how far before its own place an input came, at most
  for (std::uint64_t p = 0; p < out.size(); ++p) {
    ASSERT_LE(out[p], p + 99) << p;
    if (out[p] > p) earliest = std::max(earliest, out[p] - p);
  }
  EXPECT_EQ(earliest, 99U);
  EXPECT_EQ(std::set(out.begin(), out.end()).size(), 10'000U);
}

TEST(ShuffleWindow, DiffersFromEpochToEpochUnlessToldOtherwise) {
  const OrderPtr anew = shuffle_window(range(10'000), RandomKey(7, 0), 100);
  const OrderPtr same = shuffle_window(range(10'000), RandomKey(7, 0), 100, false);
  EXPECT_NE(all_numbers(anew, 0), all_numbers(anew, 1));
  EXPECT_EQ(all_numbers(same, 0), all_numbers(same, 1));
  EXPECT_EQ(all_numbers(same, 0), all_numbers(anew, 0));
  EXPECT_NE(all_numbers(anew), all_numbers(shuffle_window(range(10'000), RandomKey(8, 0), 100)));
}

TEST(ShuffleWindow, OfOneChangesNothing) {
  EXPECT_THAT(all_numbers(shuffle_window(range(4), RandomKey(7, 0), 1)), ElementsAre(0, 1, 2, 3));
}

/// How often each order came over 200,000 seeds, and how often it should: the naive buffer with
/// every sequence of picks, each as likely as its picks.
void expect_the_buffers_distribution(std::uint64_t size, std::uint64_t buffer) {
  const OrderPtr input = range(size);
  Numbers samples = all_numbers(input);

  std::map<Numbers, double> likely;
  const auto choices = [&](std::uint64_t position) {
    return std::min({buffer, size, size - position});
  };
  Numbers picks(size);
  for (bool more = true; more;) {
    double chance = 1;
    for (std::uint64_t p = 0; p < size; ++p) chance /= static_cast<double>(choices(p));
    likely[model::window(samples, buffer,
                         [&](std::uint64_t p, std::uint64_t) { return picks[p]; })] += chance;
    more = false;
    for (std::uint64_t p = 0; p < size && !more; ++p) {
      more = ++picks[p] < choices(p);
      if (!more) picks[p] = 0;
    }
  }

  constexpr std::uint32_t kSeeds = 200'000;
  std::map<Numbers, std::uint64_t> counts;
  std::vector<SampleId> ids(size);
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    shuffle_window(input, RandomKey(seed, 0), buffer)->open()->read(0, 0, 1, ids);
    for (std::uint64_t p = 0; p < size; ++p) samples[p] = ids[p].number;
    ++counts[samples];
  }

  double x = 0;
  for (const auto& [order, count] : counts) ASSERT_TRUE(likely.contains(order));
  for (const auto& [order, chance] : likely) {
    const double off = static_cast<double>(counts[order]) - chance * kSeeds;
    x += off * off / (chance * kSeeds);
  }
  EXPECT_GT(chi_square_p(x, static_cast<double>(likely.size()) - 1), kImplausible)
      << size << " samples, a buffer of " << buffer;
  if (buffer >= size) {
    EXPECT_EQ(likely.size(), factorial(size));
    for (const auto& [order, chance] : likely)
      EXPECT_NEAR(chance, 1 / static_cast<double>(factorial(size)), 1e-12);
  }
}

// SEMANTICS, proof 4.
TEST(ShuffleWindow, OrdersComeAsOftenAsTfDatasBufferGivesThem) {
  expect_the_buffers_distribution(4, 2);
  expect_the_buffers_distribution(5, 3);
  expect_the_buffers_distribution(2, 2);
  expect_the_buffers_distribution(3, 3);
  expect_the_buffers_distribution(4, 4);
  expect_the_buffers_distribution(4, 9);
}

// SEMANTICS, proof 5.
TEST(ShuffleWindow, AfterRepeatMixesTheSeam) {
  const OrderPtr order = shuffle_window(repeat(range(1'000), 3), RandomKey(7, 0), 100);
  std::vector<SampleId> out(3'000);
  ASSERT_EQ(order->open()->read(0, 0, 1, out), 3'000U);
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>>
      places;  // first and last of an epoch
  std::map<std::uint64_t, int> times;
  for (std::size_t p = 0; p < out.size(); ++p) {
    places.try_emplace(out[p].epoch, p, p).first->second.second = p;
    ++times[out[p].number];
  }
  for (const std::uint32_t epoch : {0U, 1U}) {
    const std::size_t next_starts = places[epoch + 1].first;
    EXPECT_LT(next_starts, places[epoch].second);
    EXPECT_GE(next_starts, 1'000U * (epoch + 1) - 99);
  }
  EXPECT_EQ(times.size(), 1'000U);
  for (const auto& [number, count] : times) EXPECT_EQ(count, 3) << number;
}

// Restoring is opening a cursor far inside: the buffer is rebuilt from the picks alone.
TEST(ShuffleWindow, OpensFarInsideAndAtTheEnd) {
  const OrderPtr order = shuffle_window(range(50'000), RandomKey(7, 0), 1'000);
  const Numbers all = all_numbers(order);
  for (const std::uint64_t first :
       {1U, 999U, 1'000U, 11'000U, 30'001U, 48'999U, 49'000U, 49'001U, 49'990U, 49'999U})
    EXPECT_EQ(numbers(order, 50'000, 0, first),
              Numbers(all.begin() + static_cast<std::ptrdiff_t>(first), all.end()))
        << first;
}

TEST(ShuffleWindow, NestsAndRunsOverEndlessInputs) {
  const OrderPtr order = shuffle_window(shuffle_window(repeat(range(1'000)), RandomKey(7, 0), 50),
                                        RandomKey(7, 1), 70);
  const Numbers all = numbers(order, 20'000);
  for (const std::uint64_t first : {1U, 69U, 5'000U, 19'999U})
    EXPECT_EQ(numbers(order, 20'000 - first, 0, first),
              Numbers(all.begin() + static_cast<std::ptrdiff_t>(first), all.end()))
        << first;
  // A million epochs in, nothing of what came before is computed.
  EXPECT_EQ(numbers(order, 10, 0, 1'000'000'000).size(), 10U);
}

/// Fails when it is told to.
class Failing final : public Order {
 public:
  explicit Failing(const bool* fails) : fails_(fails) {}
  std::optional<std::uint64_t> size() const noexcept override { return 1'000; }
  std::optional<std::uint32_t> epochs() const noexcept override { return 1; }
  std::string describe() const override { return "failing"; }
  std::unique_ptr<OrderCursor> open() const override { return std::make_unique<Cursor>(fails_); }

 private:
  class Cursor final : public OrderCursor {
   public:
    explicit Cursor(const bool* fails) : fails_(fails) {}
    std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                     std::span<SampleId> out) override {
      if (*fails_) throw std::runtime_error("told to fail");
      return input_->read(iteration, first, stride, out);
    }
    std::size_t memory_bytes() const noexcept override { return sizeof(*this); }

   private:
    const bool* fails_;
    std::unique_ptr<OrderCursor> input_ = range(1'000)->open();
  };
  const bool* fails_;
};

TEST(ShuffleWindow, IsRightAgainAfterItsInputThrew) {
  bool fails = false;
  const OrderPtr order = shuffle_window(std::make_shared<Failing>(&fails), RandomKey(7, 0), 30);
  const Numbers all = all_numbers(order);
  const auto cursor = order->open();
  std::vector<SampleId> out(100);
  std::uint64_t first = 0;
  for (int k = 0; k < 40; ++k) {
    fails = true;
    EXPECT_THROW(cursor->read(0, first, 1, out), std::runtime_error) << first;
    fails = false;
    ASSERT_EQ(cursor->read(0, first, 1, out), 100U);
    for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(out[i].number, all[first + i]);
    first = (first + 370) % 850;
  }
}

TEST(ShuffleWindow, HoldsAsManyNumbersAsItsBufferAndNoMoreThanThereAre) {
  const auto held = [](std::uint64_t size, std::uint64_t buffer) {
    const auto cursor = shuffle_window(range(size), RandomKey(7, 0), buffer)->open();
    std::vector<SampleId> out(1);
    cursor->read(0, 0, 1, out);
    return cursor->memory_bytes();
  };
  EXPECT_EQ(held(100'000, 10'000) - held(100'000, 5'000), 5'000 * sizeof(SampleId));
  EXPECT_EQ(held(1'000, model::kForEver), held(1'000, 1'000));
}

TEST(ShuffleWindow, RefusesABufferOfNothing) {
  EXPECT_THAT(
      [] { (void)shuffle_window(range(5), RandomKey(7, 0), 0); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("expected a buffer of at least 1, found 0")));
}

// Saved positions name samples only as long as these numbers stay.
TEST(ShuffleWindow, KeepsTheOrderOfEarlierVersions) {
  EXPECT_EQ(all_numbers(shuffle_window(range(10), RandomKey(7, 0), 4)),
            (Numbers{0, 4, 3, 6, 7, 2, 5, 8, 9, 1}));
  const OrderPtr order = shuffle_window(repeat(range(1'000)), RandomKey(7, 0), 100);
  EXPECT_EQ(numbers(order, 8), (Numbers{3, 17, 75, 102, 85, 74, 11, 24}));
  EXPECT_EQ(numbers(order, 8, 0, 1'000'000), (Numbers{29, 92, 983, 783, 936, 932, 93, 9}));
  EXPECT_EQ(numbers(shuffle_window(range(1'000), RandomKey(7, 0), 100), 8, 1),
            (Numbers{98, 96, 46, 51, 88, 3, 92, 19}));
}

}  // namespace
}  // namespace penstock::order
