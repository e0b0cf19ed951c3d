// What PageCache keeps of pages within its budget.
#include "src/source/page_cache.hpp"

#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace penstock {
namespace {

using source::CachedBytes;
using source::PageCache;

class ParquetPageCache : public ::testing::Test {
 protected:
  // Whether page `number` had to be made, which takes so many bytes.
  bool makes(PageCache<int>& cache, std::uint64_t number, const CachedBytes& bytes) {
    bool was_made = false;
    const auto found = cache.get(
        {0, number},
        [&]() -> Result<std::shared_ptr<const int>> {
          was_made = true;
          return std::make_shared<const int>(static_cast<int>(number));
        },
        [&](const int&) { return bytes; });
    EXPECT_TRUE(found && **found == static_cast<int>(number));
    return was_made;
  }
};

TEST_F(ParquetPageCache, APageLargerThanTheBudgetLeavesTheOthers) {
  PageCache<int> cache(100);
  EXPECT_TRUE(makes(cache, 1, {40}));
  EXPECT_TRUE(makes(cache, 2, {40}));
  EXPECT_TRUE(makes(cache, 3, {101}));
  EXPECT_TRUE(makes(cache, 4, {50, this, 51}));
  EXPECT_FALSE(makes(cache, 1, {40}));
  EXPECT_FALSE(makes(cache, 2, {40}));
  EXPECT_TRUE(makes(cache, 3, {101}));
  EXPECT_FALSE(makes(cache, 3, {101}));  // the last of them stays for the rows behind
}

TEST(PageCacheOfResults, KeepsAFaultUnlessItMayPass) {
  PageCache<source::Decoded<int>> cache(1000);
  int made = 0;
  const auto reason = [&](std::uint64_t number, const Fault& fault) {
    const auto found = cache.get(
        {0, number},
        [&] {
          ++made;
          return source::decoded(Result<int>(fault));
        },
        [](const source::Decoded<int>& kept) {
          return CachedBytes{source::bytes_of_fault(kept.fault)};
        });
    return found ? (*found)->fault.reason : "not kept: " + found.fault().reason;
  };
  EXPECT_EQ(reason(1, {.reason = "damaged"}), "damaged");
  EXPECT_EQ(reason(1, {.reason = "damaged"}), "damaged");
  EXPECT_EQ(made, 1);
  EXPECT_EQ(reason(2, {.reason = "away", .transient = true}), "not kept: away");
  EXPECT_EQ(reason(3, {.reason = "full", .out_of_memory = true}), "not kept: full");
  EXPECT_EQ(reason(2, {.reason = "damaged"}), "damaged");
  EXPECT_EQ(reason(3, {.reason = "damaged"}), "damaged");
  EXPECT_EQ(made, 5);
}

TEST_F(ParquetPageCache, WhatWasUsedLongestAgoGoes) {
  PageCache<int> cache(100);
  EXPECT_TRUE(makes(cache, 1, {40}));
  EXPECT_TRUE(makes(cache, 2, {40}));
  EXPECT_FALSE(makes(cache, 1, {40}));
  EXPECT_TRUE(makes(cache, 3, {40}));
  EXPECT_FALSE(makes(cache, 1, {40}));
  EXPECT_TRUE(makes(cache, 2, {40}));
}

TEST_F(ParquetPageCache, WhatPagesShareCountsOnceUntilTheLastOfThemGoes) {
  PageCache<int> cache(100);
  const CachedBytes shared{10, this, 60};
  for (std::uint64_t page = 1; page <= 4; ++page) EXPECT_TRUE(makes(cache, page, shared));
  for (std::uint64_t page = 1; page <= 4; ++page) EXPECT_FALSE(makes(cache, page, shared));
  EXPECT_TRUE(makes(cache, 5, {70}));  // in place of all four, which share 60 bytes
  EXPECT_TRUE(makes(cache, 6, {30}));
  EXPECT_FALSE(makes(cache, 5, {70}));
  EXPECT_FALSE(makes(cache, 6, {30}));
  EXPECT_TRUE(makes(cache, 1, shared));
}

TEST_F(ParquetPageCache, AFaultIsMadeAgain) {
  PageCache<int> cache(100);
  const auto found = cache.get(
      {0, 1},
      []() -> Result<std::shared_ptr<const int>> {
        return Fault{.reason = "no", .file = {}, .offset = 0};
      },
      [](const int&) { return CachedBytes{1}; });
  EXPECT_FALSE(found);
  EXPECT_TRUE(makes(cache, 1, {40}));
  EXPECT_FALSE(makes(cache, 1, {40}));
}

}  // namespace
}  // namespace penstock
