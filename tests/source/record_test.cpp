#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/source.hpp>

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(Record, PutsZerosBehindEachBlock) {
  Record record;
  for (const std::size_t size : {0U, 1U, 100U, 10'000U, 3U}) {
    record.reset(0);
    const std::span<std::byte> bytes = *record.allocate(size);
    ASSERT_EQ(bytes.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 16, 0U);
    std::fill(bytes.begin(), bytes.end(), std::byte{1});
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(bytes.data()[size + i], std::byte{});
  }
}

TEST(Record, AnswersWithAFaultWhatIsOverItsLimit) {
  Record record;
  record.set_limit(1000);
  record.reset(0);
  EXPECT_TRUE(record.allocate(1000 - 64));
  record.reset(0);
  auto over = record.allocate(1000 - 63);
  ASSERT_FALSE(over);
  EXPECT_THAT(over.fault().reason, HasSubstr("raise the budget"));
  record.reset(0);
  EXPECT_FALSE(record.allocate(SIZE_MAX - 3));
  record.reset(0);
  EXPECT_TRUE(record.allocate(10)) << "a fault leaves the record fit for the next";
}

TEST(Record, ForgetsWithTheNextSampleWhatItsPartsRefused) {
  Record record;
  record.set_limit(1000);
  record.reset(0);
  EXPECT_FALSE(record.part(1).part(0).allocate(2000));
  EXPECT_TRUE(record.is_over_limit());
  record.reset(0);
  EXPECT_FALSE(record.is_over_limit());
}

TEST(Record, NeverHoldsMoreThanItsLimit) {
  Record record;
  record.set_limit(1000);
  for (std::size_t size = 0; size < 900; size += 7) {
    record.reset(0);
    ASSERT_TRUE(record.allocate(size));
    EXPECT_LE(record.memory_bytes(), 1000U);
  }
}

// The blocks of an earlier record are worth keeping only while there is room.
TEST(Record, GivesUpIdleBlocksRatherThanARecordThatFits) {
  Record record;
  record.set_limit(10'000);
  record.reset(0);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(record.allocate(700));
  record.reset(0);
  auto large = record.allocate(9'000);
  ASSERT_TRUE(large);
  EXPECT_EQ(large->size(), 9'000U);
  EXPECT_LE(record.memory_bytes(), 10'000U);
}

}  // namespace
}  // namespace penstock
