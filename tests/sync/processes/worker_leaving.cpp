// What the others learn of a process that leaves a communicator, or holds it up, and stays alive.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <penstock/sync/communicator.hpp>

#include "tests/asleep.hpp"
#include "tests/sync/processes/worker.hpp"

namespace penstock {
namespace {

using test::connect;
using test::said_by;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// Far from the timeouts that these tests give, and from what a busy machine needs.
constexpr std::chrono::seconds kAtOnce(150);
constexpr double kTimeout = 300;

// A folder of the test that has started all of us: tells the others something without any communicator.
class Board {
 public:
  Board(std::string test, const Communicator& all)
      : test_(std::move(test)), rank_(all.rank()), size_(all.size()) {}

  void write() const { std::ofstream(place(rank_)) << rank_; }
  /// Waits for all others to have written, for so long.
  [[nodiscard]] bool read(std::chrono::seconds patience) const {
    for (std::uint32_t rank = 0; rank < size_; ++rank)
      if (rank != rank_ && !read_of(rank, patience)) return false;
    return true;
  }
  [[nodiscard]] bool read_of(std::uint32_t rank, std::chrono::seconds patience) const {
    const auto deadline = Clock::now() + patience;
    while (!std::filesystem::exists(place(rank))) {
      if (Clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

 private:
  [[nodiscard]] std::filesystem::path place(std::uint32_t rank) const {
    const char* const folder = std::getenv("PENSTOCK_TEST_FOLDER");
    if (folder == nullptr) throw std::runtime_error("PENSTOCK_TEST_FOLDER is not set");
    return std::filesystem::path(folder) / fmt::format("{} {}", test_, rank);
  }
  std::string test_;
  std::uint32_t rank_;
  std::uint32_t size_;
};

// Process 1 waits in a collective of `aside` to which nobody else comes, and leaves it.
void wait_and_leave(Communicator& aside, std::vector<float>& values) {
  std::atomic<pid_t> thread = 0;
  std::jthread waits([&] {
    thread = ::gettid();
    (void)said_by([&] { aside.all_reduce(view_of(values)); });
  });
  while (thread == 0) std::this_thread::yield();
  test::await_asleep(thread);
  aside.leave("it gave up");
}

// Process 1 leaves a duplicate while it waits there for what the others are about to do.
TEST(Leaving, ADuplicateBeforeTheOthersComeSparesTheOtherCommunicators) {
  const auto all = connect(kTimeout);
  auto aside = all->duplicate();
  const auto begin = Clock::now();
  std::vector<float> values(10);
  if (all->rank() == 1) {
    wait_and_leave(*aside, values);
    aside.reset();
  }
  all->barrier();
  if (all->rank() != 1) {
    // What it had sent may be enough for the first one.
    EXPECT_THAT(said_by([&] {
                  for (int i = 0; i < 3; ++i) aside->all_reduce(view_of(values));
                }),
                HasSubstr("it gave up"));
  }
  std::vector<float> many(300'000, 1);
  all->all_reduce(view_of(many));
  EXPECT_EQ(many.back(), static_cast<float>(all->size()));
  EXPECT_LT(Clock::now() - begin, kAtOnce);
}

// Its data are under way, it stays alive, and so do its connections as far as it can help it.
TEST(Leaving, ADuplicateInTheMiddleOfItsDataIsToldToAllAtOnce) {
  const auto all = connect(kTimeout);
  const auto aside = all->duplicate();
  const Board noticed("middle", *all);
  const auto begin = Clock::now();
  std::vector<float> values(2'000'000);
  std::atomic<int> reduced = 0;
  std::atomic<bool> over = false;
  const auto reduces = [&] {
    const std::string said = said_by([&] {
      for (;; ++reduced) aside->all_reduce(view_of(values));
    });
    over = true;
    return said;
  };
  if (all->rank() == 1) {
    std::jthread thread([&] { (void)reduces(); });
    // From then on it is in the middle of one of them.
    while (reduced < 3 && !over) std::this_thread::yield();
    EXPECT_FALSE(over);
    aside->leave("it gave up");
    thread.join();
    EXPECT_TRUE(noticed.read(kAtOnce));
  } else {
    EXPECT_THAT(reduces(), HasSubstr("it gave up"));
    noticed.write();
    EXPECT_LT(Clock::now() - begin, kAtOnce);
  }
}

// One that comes to its data, and finds that process 1 has left before.
TEST(Leaving, WhoComesLaterToDataThatNobodySendsIsToldAtOnce) {
  const auto all = connect(kTimeout);
  const auto aside = all->duplicate();
  const Board left("left", *all);
  const Board noticed("later", *all);
  std::vector<float> values(100'000);
  if (all->rank() == 1) {
    wait_and_leave(*aside, values);
    left.write();
    EXPECT_TRUE(noticed.read(3 * kAtOnce));
    return;
  }
  EXPECT_TRUE(left.read_of(1, kAtOnce));
  const auto begin = Clock::now();
  EXPECT_THAT(said_by([&] { aside->all_reduce(view_of(values)); }), HasSubstr("it gave up"));
  EXPECT_LT(Clock::now() - begin, kAtOnce);
  noticed.write();
}

TEST(Late, CallsOfDifferentCommunicatorsThatWaitForEachOtherAreNamed) {
  const auto all = connect(6);
  const auto aside = all->duplicate();
  std::vector<float> values(10);
  const std::string said = said_by([&] {
    if (all->rank() == 0)
      all->all_reduce(view_of(values));
    else
      aside->barrier();
  });
  if (test::transport == "gloo")
    EXPECT_THAT(said, AllOf(HasSubstr("wait for each other in calls of different communicators"),
                            HasSubstr("process 0 in all_reduce(sum, f32 [10])")));
  else
    EXPECT_THAT(said, AnyOf(HasSubstr("6 s"), HasSubstr("makes no more")));
}

TEST(Late, AProcessIsNamedWithinTheTimeout) {
  const auto all = connect(6);
  const Board noticed("named", *all);
  all->barrier();
  if (all->rank() == 1) {  // makes no call until all others have noticed
    EXPECT_TRUE(noticed.read(2 * kAtOnce));
    return;
  }
  const auto begin = Clock::now();
  std::vector<float> values(100'000);
  const std::string said = said_by([&] { all->all_reduce(view_of(values)); });
  EXPECT_LT(Clock::now() - begin, kAtOnce);
  noticed.write();
  if (test::transport == "gloo")
    EXPECT_THAT(said, HasSubstr("process 1 makes no call"));
  else
    EXPECT_THAT(said, AllOf(HasSubstr("6 s"), HasSubstr("or a process that it waits for")));
}

// Process 0's own time is over; it keeps its communicator while it saves what it has.
TEST(Late, WhoGivesUpSaysSoBeforeItsCommunicatorEnds) {
  const auto all = connect(test::launch_rank() == 0 ? 5 : kTimeout);
  const Board noticed("gives-up", *all);
  all->barrier();
  if (all->rank() == 1) {  // makes no call until all others have noticed
    noticed.write();
    EXPECT_TRUE(noticed.read(2 * kAtOnce));
    return;
  }
  const std::string said = said_by([&] { all->barrier(); });
  EXPECT_THAT(said,
              AnyOf(HasSubstr("did not come within 5 s"), HasSubstr("process 1 makes no call")));
  noticed.write();
  EXPECT_TRUE(noticed.read(kAtOnce));
}

}  // namespace
}  // namespace penstock
