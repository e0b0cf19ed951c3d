// What parallel loops do when no thread can be started, and when their bodies throw.
#include "src/core/parallel_for.hpp"

#include <atomic>
#include <stdexcept>

#include <gmock/gmock.h>

#include <penstock/core/error.hpp>

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ParallelFor, CallsTheBodyOnceForEachNumber) {
  std::atomic<std::size_t> sum = 0;
  core::parallel_for("adding", 1000, [&](std::size_t i) { sum += i; });
  EXPECT_EQ(sum, 499'500U);
}

// oneTBB's own message names a system call and no remedy.
TEST(ParallelFor, NamesTheLimitWhereAThreadCannotBeStarted) {
  const auto loop = [] {
    core::parallel_for("sorting", 1, [](std::size_t) {
      throw std::runtime_error("pthread_create has failed: Resource temporarily unavailable");
    });
  };
  EXPECT_THAT(loop, ThrowsMessage<Error>(HasSubstr("cannot start a thread for sorting: ")));
  EXPECT_THAT(loop, ThrowsMessage<Error>(HasSubstr("ulimit -v")));
}

TEST(ParallelFor, PassesOtherErrorsOn) {
  EXPECT_THAT(
      [] {
        core::parallel_for("sorting", 1, [](std::size_t) { throw std::runtime_error("damaged"); });
      },
      ThrowsMessage<std::runtime_error>("damaged"));
}

}  // namespace
}  // namespace penstock
