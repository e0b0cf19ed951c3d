// The simulated NCCL: ends, faults, what it refuses, and several processes.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/simulated_cuda/simulated_cuda.hpp"
#include "testing/simulated_nccl/simulated_nccl.hpp"
#include "tests/simulated_nccl/ranks.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using test::as_threads;
using test::in_group;
using test::new_id;
using test::ok;
using test::RankOf;
using test::Values;
using testing::Each;
using testing::Ne;

class SimulatedNcclFaults : public test::NcclTest {};
using SimulatedNcclDeathTest = SimulatedNcclFaults;

ncclResult_t sum(const RankOf& own, const Values<float>& values, std::size_t count) {
  return own.finished(ncclAllReduce(values.data(), values.data(), count, ncclFloat32, ncclSum,
                                    own.comm(), own.stream()));
}

// That it does not wait could only be seen: a busy machine may hide it, and never makes this wrong.
bool is_waiting(const RankOf& own) {
  std::this_thread::sleep_for(30ms);
  return cudaStreamQuery(own.stream()) == cudaErrorNotReady;
}

TEST_F(SimulatedNcclFaults, AbortEndsWhatWaitsAndLeavesGarbage) {
  simulated_nccl::be_absent(1, 2);
  as_threads(2, [](RankOf& own) {
    const Values<float> first(std::vector<float>(1000, 1.0F));
    const Values<float> second(std::vector<float>(1000, 1.0F));
    const Values<float> third(std::vector<float>(1000, 1.0F));
    for (const auto* values : {&first, &second, &third})
      EXPECT_EQ(sum(own, *values, 1000), ncclSuccess);
    EXPECT_TRUE(is_waiting(own));
    ncclResult_t state = ncclInProgress;
    ok(ncclCommGetAsyncError(own.comm(), &state));
    EXPECT_EQ(state, ncclSuccess);  // it knows of nothing
    std::jthread([&] { own.abort(); }).join();
    own.wait();
    EXPECT_THAT(first.get(), Each(2.0F));
    EXPECT_THAT(second.get(), Each(testing::AllOf(Ne(1.0F), Ne(2.0F))));
    EXPECT_THAT(third.get(), Each(testing::AllOf(Ne(1.0F), Ne(2.0F))));
  });
}

TEST_F(SimulatedNcclFaults, OneThatStopsInTheMiddleIsWaitedForByThoseWhoNeedItsData) {
  simulated_nccl::stop_in_the_middle(0, 1);
  as_threads(2, [](RankOf& own) {
    const Values<float> values(std::vector<float>(1000, 1.0F));
    EXPECT_EQ(sum(own, values, 1000), ncclSuccess);
    EXPECT_EQ(sum(own, values, 1000), ncclSuccess);
    EXPECT_TRUE(is_waiting(own));
    own.abort();
  });
}

TEST_F(SimulatedNcclFaults, AnAsynchronousErrorIsToldWhenItsOperationBegins) {
  simulated_nccl::fail(0, 3, ncclRemoteError);
  as_threads(2, [](RankOf& own) {
    const Values<float> values(std::vector<float>(10, 1.0F));
    EXPECT_EQ(sum(own, values, 10), ncclSuccess);
    EXPECT_EQ(sum(own, values, 10), ncclSuccess);
    own.wait();
    (void)sum(own, values, 10);
    ncclResult_t state = ncclSuccess;
    const auto patience = std::chrono::steady_clock::now() + (own.rank() == 0 ? 300s : 0s);
    do ok(ncclCommGetAsyncError(own.comm(), &state));
    while (state == ncclSuccess && std::chrono::steady_clock::now() < patience);
    EXPECT_EQ(state, own.rank() == 0 ? ncclRemoteError : ncclSuccess);
    EXPECT_TRUE(is_waiting(own));
    own.abort();
  });
}

TEST_F(SimulatedNcclFaults, ASlowRankIsWaitedFor) {
  simulated_nccl::slow_down(1, 100'000);
  const auto begin = std::chrono::steady_clock::now();
  as_threads(2, [begin](RankOf& own) {
    const Values<float> values(std::vector<float>(10, 1.0F));
    EXPECT_EQ(sum(own, values, 10), ncclSuccess);
    own.wait();
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
    EXPECT_THAT(values.get(), Each(2.0F));
  });
}

// By another thread.
[[noreturn]] void until_the_program_ends() {
  for (;;) ::pause();
}

TEST_F(SimulatedNcclFaults, ALostDeviceIsAnAsynchronousError) {
  EXPECT_EXIT(
      {
        as_threads(2, [](RankOf& own) {
          if (own.rank() == 0) {
            Values<float> values(10);
            (void)sum(own, values, 10);
            simulated_cuda::lose_device(0, cudaErrorIllegalAddress);
            ncclResult_t state = ncclSuccess;
            while (state == ncclSuccess || state == ncclInProgress)
              (void)ncclCommGetAsyncError(own.comm(), &state);
            ::_exit(state == ncclUnhandledCudaError ? 0 : 1);
          }
          until_the_program_ends();
        });
      },
      testing::ExitedWithCode(0), "");
}

// ---- what ends the program ----

void two(const std::function<void(RankOf&)>& body) {
  as_threads(2, [&](RankOf& own) {
    body(own);
    until_the_program_ends();  // by the executor
  });
}

TEST_F(SimulatedNcclDeathTest, CallsThatDifferAreTold) {
  EXPECT_DEATH(
      two([](RankOf& own) {
        const Values<float> values(11);
        (void)sum(own, values, 10);
        (void)sum(own, values, own.rank() == 0 ? 10 : 11);
        own.wait();
      }),
      "collective 2 of a communicator differs: rank . calls all_reduce\\(sum, f32 \\[1[01]\\]\\), "
      "rank . calls all_reduce\\(sum, f32 \\[1[01]\\]\\)");
  EXPECT_DEATH(two([](RankOf& own) {
                 const Values<float> values(10);
                 (void)ncclBroadcast(values.data(), values.data(), 10, ncclFloat32, own.rank(),
                                     own.comm(), own.stream());
                 (void)own.finished(ncclInProgress);
                 own.wait();
               }),
               "collective 1 of a communicator differs: .*broadcast\\(f32 \\[10\\], from ");
  EXPECT_DEATH(
      two([](RankOf& own) {
        const Values<float> values(10);
        if (own.rank() == 0)
          (void)own.finished(ncclSend(values.data(), 10, ncclFloat32, 1, own.comm(), own.stream()));
        else
          (void)own.finished(ncclRecv(values.data(), 10, ncclInt32, 0, own.comm(), own.stream()));
        own.wait();
      }),
      "rank 0 sends f32 \\[10\\] to rank 1, which receives i32 \\[10\\]");
}

TEST_F(SimulatedNcclDeathTest, CommunicatorsAreNotUsedAfterTheirEnd) {
  EXPECT_DEATH(two([](RankOf& own) {
                 const Values<float> values(10);
                 ncclComm_t comm = own.comm();
                 own.abort();
                 (void)ncclAllReduce(values.data(), values.data(), 10, ncclFloat32, ncclSum, comm,
                                     own.stream());
               }),
               "ncclAllReduce was given a communicator that is destroyed or aborted");
}

TEST_F(SimulatedNcclDeathTest, CommunicatorsAreNotDestroyedWhileTheyWork) {
  EXPECT_DEATH(two([](RankOf& own) {
                 const Values<float> values(10);
                 if (own.rank() == 1) return;
                 (void)sum(own, values, 10);
                 (void)ncclCommDestroy(own.comm());
               }),
               "ncclCommDestroy while operations are in streams");
}

TEST_F(SimulatedNcclDeathTest, CommunicatorsAreNotLeftAtTheEnd) {
  EXPECT_DEATH(
      {
        ncclComm_t comm = nullptr;
        (void)ncclCommInitRankConfig(&comm, 1, new_id(), 0, nullptr);
        std::exit(0);
      },
      "1 communicators of NCCL, neither destroyed nor aborted");
}

TEST_F(SimulatedNcclDeathTest, StreamsAndMemoryAreTheDevices) {
  EXPECT_DEATH(two([](RankOf& own) {
                 ok(cudaSetDevice(1 - own.rank()));
                 const Values<float> values(10);
                 (void)sum(own, values, 10);
               }),
               "ncclAllReduce of a communicator on cuda:. was given memory of cuda:");
  EXPECT_DEATH(two([](RankOf& own) {
                 cudaStream_t other = nullptr;
                 ok(cudaSetDevice(1 - own.rank()));
                 ok(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
                 ok(cudaSetDevice(own.rank()));
                 const Values<float> values(10);
                 (void)ncclAllReduce(values.data(), values.data(), 10, ncclFloat32, ncclSum,
                                     own.comm(), other);
               }),
               "was given a stream of cuda:");
  EXPECT_DEATH(two([](RankOf& own) {
                 std::vector<float> values(10);
                 (void)ncclAllReduce(values.data(), values.data(), 10, ncclFloat32, ncclSum,
                                     own.comm(), own.stream());
               }),
               "was given memory of the host");
  EXPECT_DEATH(two([](RankOf& own) {
                 const Values<float> values(10);
                 (void)sum(own, values, 11);
               }),
               "44 bytes at offset 0 of an allocation of 40 bytes");
}

TEST_F(SimulatedNcclDeathTest, WhatIsGivenIsLeftAloneUntilTheEnd) {
  EXPECT_DEATH(two([](RankOf& own) {
                 // Changed before the other comes. If the stream has not begun with it by then, it is
                 // too early to be seen: then again, with a longer pause.
                 static std::atomic<int> changed = 0;
                 for (int times = 1; times <= 12; ++times) {
                   while (own.rank() == 1 && changed < times) std::this_thread::sleep_for(1ms);
                   Values<float> in(std::vector<float>(10, 1.0F));
                   const Values<float> out(10);
                   (void)own.finished(ncclAllReduce(in.data(), out.data(), 10, ncclFloat32, ncclSum,
                                                    own.comm(), own.stream()));
                   if (own.rank() == 0) {
                     std::this_thread::sleep_for(10ms * (1 << times));
                     in.set(std::vector<float>(10, 2.0F));
                     changed = times;
                   }
                   own.wait();
                 }
                 if (own.rank() == 0) ::_exit(0);  // it was not seen
               }),
               "what rank 0 gives to all_reduce.* was changed before it was over");
}

TEST_F(SimulatedNcclDeathTest, MemoryIsNotFreedBeforeTheEnd) {
  EXPECT_DEATH(two([](RankOf& own) {
                 static std::atomic<bool> freed = false;  // before the other comes
                 while (own.rank() == 1 && !freed) std::this_thread::sleep_for(1ms);
                 auto values = std::make_unique<Values<float>>(std::vector<float>(10, 1.0F));
                 (void)sum(own, *values, 10);
                 if (own.rank() == 0) values.reset();
                 freed = true;
                 until_the_program_ends();  // rank 1 frees nothing
               }),
               "all_reduce.*freed");
}

// ---- several processes, with several ranks each ----

constexpr const char* kChild = "PENSTOCK_NCCL_TEST_CHILD";

/// This program once more, for the test `name`, with an id.
class Child {
 public:
  Child(const std::string& name, const ncclUniqueId& id) {
    std::string hex;
    for (const char byte : id.internal)
      hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    const std::string filter = "--gtest_filter=" + name;
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::setenv(kChild, hex.c_str(), 1);
    ::unsetenv("PENSTOCK_SIMULATED_SEEDS");  // its parent repeats it
    ::execl("/proc/self/exe", "child", filter.c_str(), "--gtest_also_run_disabled_tests",
            "--gtest_brief=1", nullptr);
    ::_exit(97);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) (void)kill();
  }
  int kill() {
    ::kill(pid_, SIGKILL);
    return join();
  }
  int join() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }

 private:
  pid_t pid_ = 0;
};

ncclUniqueId given_id() {
  ncclUniqueId id{};
  const std::string hex = std::getenv(kChild);
  for (std::size_t k = 0; k < sizeof id.internal; ++k)
    id.internal[k] = static_cast<char>(std::stoi(hex.substr(2 * k, 2), nullptr, 16));
  return id;
}

// Ranks `first` to first + 1 of 4, which sum and send to each other in a ring, in a half of their own too.
void run_two_of_four(const ncclUniqueId& id, int first) {
  std::vector<std::jthread> threads;
  for (int k = 0; k < 2; ++k)
    threads.emplace_back([&, rank = first + k] {
      RankOf own(id, rank, 4, rank);
      for (int round = 0; round < 20; ++round) {
        const Values<float> values(std::vector<float>(30'000, static_cast<float>(rank + round)));
        ASSERT_EQ(sum(own, values, 30'000), ncclSuccess);
        own.wait();
        ASSERT_THAT(values.get(), Each(static_cast<float>(6 + 4 * round)));
      }
      const Values<float> out(std::vector<float>(70'000, static_cast<float>(rank)));
      const Values<float> in(70'000);
      ok(ncclGroupStart());
      in_group(ncclSend(out.data(), 70'000, ncclFloat32, (rank + 1) % 4, own.comm(), own.stream()));
      in_group(ncclRecv(in.data(), 70'000, ncclFloat32, (rank + 3) % 4, own.comm(), own.stream()));
      own.call(ncclGroupEnd());
      own.wait();
      EXPECT_THAT(in.get(), Each(static_cast<float>((rank + 3) % 4)));
      ncclComm_t half = nullptr;
      own.call(ncclCommSplit(own.comm(), rank % 2, rank, &half, nullptr));
      ASSERT_EQ(RankOf::finished(ncclAllReduce(out.data(), in.data(), 70'000, ncclFloat32, ncclSum,
                                               half, own.stream()),
                                 half),
                ncclSuccess);
      own.wait();
      EXPECT_THAT(in.get(), Each(static_cast<float>(2 * (rank % 2) + 2)));
      ASSERT_EQ(RankOf::finished(ncclCommFinalize(half), half), ncclSuccess);
      ok(ncclCommDestroy(half));
    });
}

class SimulatedNcclProcesses : public test::NcclTest {
 protected:
  void SetUp() override {
    NcclTest::SetUp();
    if (test::devices() < 4) GTEST_SKIP() << "fewer than 4 simulated GPUs";
  }
};

TEST_F(SimulatedNcclProcesses, DISABLED_ChildHasTwoOfFour) { run_two_of_four(given_id(), 2); }

TEST_F(SimulatedNcclProcesses, HaveSeveralRanksEach) {
  const ncclUniqueId id = new_id();
  Child child("SimulatedNcclProcesses.DISABLED_ChildHasTwoOfFour", id);
  run_two_of_four(id, 0);
  EXPECT_EQ(child.join(), 0);
}

TEST_F(SimulatedNcclProcesses, DISABLED_ChildSumsForEver) {
  RankOf own(given_id(), 1, 2, 1);
  const Values<float> values(std::vector<float>(1000, 0.0F));
  for (;;) {
    (void)sum(own, values, 1000);
    own.wait();
  }
}

// Waits for one who is killed; with deaths told, gets an error.
void expect_of_a_killed_one(ncclResult_t expected) {
  const ncclUniqueId id = new_id();
  Child child("SimulatedNcclProcesses.DISABLED_ChildSumsForEver", id);
  RankOf own(id, 0, 2, 0);
  const Values<float> values(std::vector<float>(1000, 0.0F));
  for (int k = 0; k < 20; ++k) {
    ASSERT_EQ(sum(own, values, 1000), ncclSuccess);
    own.wait();
  }
  EXPECT_TRUE(WIFSIGNALED(child.kill()));
  for (int k = 0; k < 2; ++k) (void)sum(own, values, 1000);  // it may have come to one more
  const bool waits = is_waiting(own);
  if (expected == ncclSuccess) {
    EXPECT_TRUE(waits);
  }
  // A death that is told will be; else nothing comes, however long one looks.
  ncclResult_t state = ncclInProgress;
  const auto patience =
      std::chrono::steady_clock::now() + (expected == ncclSuccess ? 50ms : 300'000ms);
  do ok(ncclCommGetAsyncError(own.comm(), &state));
  while ((state == ncclSuccess || state == ncclInProgress) &&
         std::chrono::steady_clock::now() < patience);
  EXPECT_EQ(state, expected);
  own.abort();
  own.wait();
}

TEST_F(SimulatedNcclProcesses, AKilledOneIsWaitedFor) { expect_of_a_killed_one(ncclSuccess); }

TEST_F(SimulatedNcclProcesses, AKilledOneIsARemoteErrorWhereDeathsAreTold) {
  simulated_nccl::tell_deaths(true);
  expect_of_a_killed_one(ncclRemoteError);
}

TEST_F(SimulatedNcclProcesses, DISABLED_ChildTakesTheSameDevice) {
  RankOf own(given_id(), 1, 2, 0);
  const Values<float> values(std::vector<float>(10, 1.0F));
  EXPECT_EQ(sum(own, values, 10), ncclSuccess);
  own.wait();
}

// As NCCL, it takes processes with different NCCL_HOSTIDs for different machines.
TEST_F(SimulatedNcclProcesses, HaveTheSameDeviceNumbersOnOtherMachines) {
  const ncclUniqueId id = new_id();
  ::setenv("NCCL_HOSTID", "other", 1);
  Child child("SimulatedNcclProcesses.DISABLED_ChildTakesTheSameDevice", id);
  ::unsetenv("NCCL_HOSTID");
  {  // whose end each waits for
    RankOf own(id, 0, 2, 0);
    const Values<float> values(std::vector<float>(10, 1.0F));
    EXPECT_EQ(sum(own, values, 10), ncclSuccess);
    own.wait();
    EXPECT_THAT(values.get(), Each(2.0F));
  }
  EXPECT_EQ(child.join(), 0);
}

}  // namespace
}  // namespace penstock
