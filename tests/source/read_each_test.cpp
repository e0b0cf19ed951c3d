// Many records that are read at once: which fault is told.
#include "src/source/read_each.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/core/progress.hpp>

namespace penstock {
namespace {

// Whichever thread is the first to find one: each waits until all of them have a bad place.
TEST(ReadEach, TellsTheFaultOfTheFirstPlaceAndHasSeenThoseBeforeIt) {
  constexpr std::uint64_t kCount = 400;
  constexpr std::uint64_t kFirstBad = 101;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::atomic<int>> seen(kCount);
    std::atomic<int> bad = 0;
    const auto found = source::read_each("reading", kCount, 5, 4,
                                         [&](std::uint64_t place, Record&) -> Result<void> {
                                           ++seen[place];
                                           if (place < kFirstBad) return {};
                                           ++bad;
                                           while (bad < 3) std::this_thread::yield();  // of four
                                           return Fault{.reason = "bad " + std::to_string(place)};
                                         });
    ASSERT_TRUE(found);
    EXPECT_EQ(found->place, kFirstBad);
    EXPECT_EQ(found->fault.reason, "bad 101");
    for (std::uint64_t place = 0; place <= kFirstBad; ++place) EXPECT_EQ(seen[place], 1) << place;
  }
}

TEST(ReadEach, SeesEachPlaceOnceAndThrowsWhatIsThrown) {
  std::vector<std::atomic<int>> seen(1001);
  EXPECT_FALSE(
      source::read_each("reading", 1001, 10, 3, [&](std::uint64_t place, Record&) -> Result<void> {
        ++seen[place];
        return {};
      }));
  for (const auto& count : seen) EXPECT_EQ(count, 1);
  EXPECT_THROW((void)source::read_each("reading", 50, 5, 3,
                                       [](std::uint64_t place, Record&) -> Result<void> {
                                         if (place == 20) throw std::runtime_error("no");
                                         return {};
                                       }),
               std::runtime_error);
}

TEST(ReadEach, TellsHowFarItIs) {
  std::vector<Progress> told;
  with_progress([&](const Progress& progress) { told.push_back(progress); },
                [] {
                  (void)source::read_each("reading all", 1001, 10, 3,
                                          [](std::uint64_t, Record&) { return Result<void>(); });
                });
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().what, "reading all");
  EXPECT_EQ(told.back().unit, "samples");
  EXPECT_EQ(told.back().done, 1001U);
  EXPECT_EQ(told.back().total, 1001U);
  EXPECT_TRUE(told.back().has_ended);
}

}  // namespace
}  // namespace penstock
