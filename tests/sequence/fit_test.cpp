// Which row each length goes into, against the plainest program that does the same.
#include "src/sequence/fit.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::sequence {
namespace {

using ::testing::ElementsAre;

using Numbers = std::vector<std::uint32_t>;

Numbers plain_best_fit(const Numbers& lengths, std::uint32_t capacity) {
  struct Row {
    std::uint32_t room;
    std::uint64_t touched;
  };
  Numbers order(lengths.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return lengths[a] > lengths[b]; });
  std::vector<Row> rows;
  Numbers of(lengths.size());
  std::uint64_t touched = 0;
  for (const std::uint32_t i : order) {
    if (lengths[i] == 0) continue;
    std::size_t best = rows.size();
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (rows[row].room < lengths[i]) continue;
      if (best == rows.size() || rows[row].room < rows[best].room ||
          (rows[row].room == rows[best].room && rows[row].touched > rows[best].touched))
        best = row;
    }
    if (best == rows.size()) rows.push_back({capacity, 0});
    rows[best].room -= lengths[i];
    rows[best].touched = ++touched;
    of[i] = static_cast<std::uint32_t>(best);
  }
  return of;
}

Numbers plain_first_fit(const Numbers& lengths, std::uint32_t capacity) {
  Numbers room, of(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0) continue;
    std::size_t row = 0;
    while (row < room.size() && room[row] < lengths[i]) ++row;
    if (row == room.size()) room.push_back(capacity);
    room[row] -= lengths[i];
    of[i] = static_cast<std::uint32_t>(row);
  }
  return of;
}

std::uint32_t rows_in(const Numbers& lengths, const Numbers& rows) {
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] > 0) count = std::max(count, rows[i] + 1);
  return count;
}

TEST(Fit, IsWhatThePlainProgramsDo) {
  std::mt19937_64 random(7);
  BestFit best_fit;  // one for all, as in a thread: what one run leaves must not reach the next
  FirstFit first_fit;
  for (int round = 0; round < 3000; ++round) {
    const std::uint32_t capacity =
        static_cast<std::uint32_t>(round % 7 == 0 ? kTabledRoom + random() % 100
                                                  : 1 + random() % (round % 4 == 0 ? 9000 : 70));
    Numbers lengths(random() % 60);
    const std::uint64_t most = 1 + (round % 3 == 0 ? capacity : capacity / 3);
    for (auto& length : lengths) length = static_cast<std::uint32_t>(random() % most);
    Numbers rows(lengths.size());
    const Numbers best = plain_best_fit(lengths, capacity);
    ASSERT_EQ(best_fit(lengths, capacity, rows), rows_in(lengths, best)) << round;
    ASSERT_EQ(rows, best) << round;
    std::ranges::fill(rows, 0U);
    const Numbers first = plain_first_fit(lengths, capacity);
    ASSERT_EQ(first_fit(lengths, capacity, rows), rows_in(lengths, first)) << round;
    ASSERT_EQ(rows, first) << round;
  }
}

TEST(Fit, AnExample) {
  Numbers rows(5);
  EXPECT_EQ(BestFit()(Numbers{4, 6, 3, 5, 2}, 10, rows), 2U);
  EXPECT_THAT(rows, ElementsAre(0, 0, 1, 1, 1));
}

}  // namespace
}  // namespace penstock::sequence
