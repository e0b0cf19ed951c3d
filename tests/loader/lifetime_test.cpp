#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/loader/fakes.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PENSTOCK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PENSTOCK_SANITIZED 1
#endif
#endif

namespace penstock {
namespace {

using testing_support::fake;

#ifdef PENSTOCK_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
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
  std::size_t settled = 0;
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
    const auto took = std::chrono::steady_clock::now() - begin;
    ASSERT_LT(took, std::chrono::milliseconds(kSanitized ? 2'000 : 100) + kUserCall)
        << "loader " << run;
    if (run == kLoaders / 5) settled = resident_bytes();
  }
  if (!kSanitized) {
    EXPECT_LT(resident_bytes(), settled + (std::size_t{8} << 20));
  }
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

TEST(Lifetime, MemoryStaysFlatAndWithinTheBudgetOverTenThousandSteps) {
  const std::size_t budget = std::size_t{16} << 20;
  Loader loader = Dataset(fake(100'000))
                      .shuffle({.seed = 1, .buffer = 10'000})
                      .repeat()
                      .batch(64)
                      .prefetch_to_devices(host_devices(2), {.depth = 4})
                      .loader({.digest = true, .threads = 2, .budget_bytes = budget});
  std::size_t settled = 0;
  for (int step = 0; step < 10'000; ++step) {
    ASSERT_TRUE(loader.next());
    if (step == 500) settled = resident_bytes();
  }
  if (!kSanitized) {
    EXPECT_LT(resident_bytes(), settled + (std::size_t{2} << 20));
  }
  EXPECT_LE(loader.stats().memory_peak_bytes, budget);
}

}  // namespace
}  // namespace penstock
