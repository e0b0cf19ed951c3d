#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <unistd.h>

#include "tests/loader/fakes.hpp"
#include "tests/sanitized.hpp"

namespace penstock {
namespace {

using test::kSanitized;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing_support::fake;
using testing_support::FakeSource;

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// What is allocated and not freed. Unlike what is resident, it does not depend on which thread got
/// which of malloc's arenas, nor on how large the kernel's pages are.
std::size_t allocated_bytes() {
#ifdef __GLIBC__
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

struct Memory {
  std::size_t allocated = allocated_bytes();
  std::size_t resident = resident_bytes();
};

/// The sanitizers' own memory grows, and LeakSanitizer looks for leaks itself.
void expect_no_growth(const Memory& settled) {
  if (kSanitized) return;
  const Memory now;
  EXPECT_LT(now.allocated, settled.allocated + (std::size_t{1} << 20));
  EXPECT_LT(now.resident, settled.resident + (std::size_t{16} << 20));  // and what is mapped
}

// SEMANTICS proof 15.
TEST(Lifetime, AThousandLoadersDestroyedMidStreamJoinPromptlyAndLeakNothing) {
  constexpr int kLoaders = 1'000;
  constexpr auto kUserCall = std::chrono::milliseconds(2);
  auto source = fake(10'000);
  source->on_read = [&](std::uint64_t number) {
    if (number % 50 == 0) std::this_thread::sleep_for(kUserCall);
  };
  std::mt19937 random(1);
  std::optional<Memory> settled;
  std::vector<std::chrono::steady_clock::duration> took;
  for (int run = 0; run < kLoaders; ++run) {
    std::optional<Loader> loader(
        Dataset(source)
            .shuffle({.seed = static_cast<std::uint64_t>(run), .buffer = 64})
            .repeat()
            .batch(16)
            .prefetch_to_devices(host_devices(1 << run % 3), {.depth = 1 + run % 4})
            .loader({.threads = 1 + run % 5}));
    std::optional<Step> held;
    loader->start();
    for (auto steps = random() % 4; steps > 0; --steps) {
      held.reset();
      held = loader->next();
    }
    if (run % 2 == 0) held.reset();
    const auto begin = std::chrono::steady_clock::now();
    loader.reset();
    took.push_back(std::chrono::steady_clock::now() - begin);
    if (run == kLoaders / 5) settled.emplace();
  }
  expect_no_growth(*settled);
  // Other programs can hold up some of them, but not half: a join takes a few switches of threads.
  std::ranges::sort(took);
  EXPECT_LT(took[kLoaders / 2], std::chrono::milliseconds(kSanitized ? 2'000 : 100) + kUserCall);
  EXPECT_LT(took.back(), std::chrono::seconds(30));
}

TEST(Lifetime, DestroysALoaderThatNeverRanOrHasEnded) {
  (void)Dataset(fake(10)).batch(4).loader();
  Loader started = Dataset(fake(10)).batch(4).loader();
  started.start();
  Loader moved = Dataset(fake(10)).batch(4).loader();
  ASSERT_TRUE(moved.next());
  moved = Dataset(fake(20)).batch(4).loader();
  EXPECT_EQ(testing_support::drain(moved).size(), 5U);
}

// Which samples come does not depend on the memory that a loader may take.
TEST(Budget, ARecordThatDoesNotFitRaisesUnderEveryPolicy) {
  class Large final : public FakeSource {
   public:
    using FakeSource::FakeSource;
    Result<void> read(std::uint64_t number, Record& record) const override {
      if (auto result = FakeSource::read(number, record); !result || number != 5) return result;
      auto& part = record.part(0);
      const auto room = part.allocate(std::size_t{8} << 20);
      if (room) return {};
      return Fault{.reason = room.fault().reason, .file = "five"};
    }
  };
  const Dataset plan = Dataset(std::make_shared<Large>(20)).batch(4);
  for (const OnFault policy : {OnFault::mask, OnFault::replace, OnFault::raise}) {
    Loader loader = plan.seed(1).loader(
        {.on_fault = policy, .threads = 2, .budget_bytes = std::size_t{8} << 20});
    ASSERT_TRUE(loader.next());
    EXPECT_THAT([&] { (void)loader.next(); },
                ThrowsMessage<DataError>(HasSubstr("share of the byte budget")));
  }
}

// A part that held much of one record leaves no less room for another part of the next one.
TEST(Budget, ARecordFitsWhateverItsPartsHeldBefore) {
  class OfParts final : public FakeSource {
   public:
    using FakeSource::FakeSource;
    Result<void> read(std::uint64_t number, Record& record) const override {
      if (auto result = FakeSource::read(number, record); !result) return result;
      for (std::size_t part = 0; part < 4; ++part) {
        const std::size_t bytes = part == number % 4 ? std::size_t{3} << 20 : 100;
        const auto room = record.part(part).allocate(bytes);
        if (!room) return Fault{.reason = room.fault().reason};
        std::ranges::fill(*room, std::byte{1});
      }
      return {};
    }
  };
  Loader loader = Dataset(std::make_shared<OfParts>(40))
                      .batch(4)
                      .loader({.threads = 1, .budget_bytes = std::size_t{6} << 20});
  EXPECT_EQ(testing_support::drain(loader).size(), 10U);
  EXPECT_LE(loader.stats().memory_peak_bytes, std::size_t{6} << 20);
}

TEST(Lifetime, MemoryStaysFlatAndWithinTheBudgetOverTenThousandSteps) {
  const std::size_t budget = std::size_t{16} << 20;
  Loader loader = Dataset(fake(100'000))
                      .shuffle({.seed = 1, .buffer = 10'000})
                      .repeat()
                      .batch(64)
                      .prefetch_to_devices(host_devices(2), {.depth = 4})
                      .loader({.digest = true, .threads = 2, .budget_bytes = budget});
  std::optional<Memory> settled;
  for (int step = 0; step < 10'000; ++step) {
    ASSERT_TRUE(loader.next());
    if (step == 500) settled.emplace();
  }
  expect_no_growth(*settled);
  EXPECT_LE(loader.stats().memory_peak_bytes, budget);
}

}  // namespace
}  // namespace penstock
