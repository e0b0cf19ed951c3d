// Two ranks of NCCL on one GPU, each in a process that calls itself another machine: good for
// correctness, never for speed.
#include <chrono>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/device/device.hpp>

#include "tests/sync/processes/processes.hpp"

namespace penstock {
namespace {

using test::Clock;
using test::Process;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class NcclProcessesGpu : public test::ProcessesTest {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
    ProcessesTest::SetUp();
  }
  /// By the survivor, long before the timeout of 300 s.
  void expect_a_killed_peer_is_named(const std::string& transport, const std::string& mode) {
    auto workers = start(transport, 2, {mode, "300"});
    wait_until_beating(workers);
    const auto begin = Clock::now();
    workers[1].signal(SIGKILL);
    EXPECT_EQ(workers[1].join(), -SIGKILL);
    EXPECT_EQ(workers[0].join(), 3) << workers[0].output();
    EXPECT_THAT(workers[0].output(), HasSubstr("process 1 has died"));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(150));
  }
};

TEST_F(NcclProcessesGpu, TwoReduceTheirGradients) {
  auto workers =
      start("nccl", 2,
            {"--gtest_brief=1",
             "--gtest_filter=OnDevices.*:Gradients.BucketsChangeNothing:"
             "Gradients.MicroStepsEqualOneBigBatch:Gradients.SixteenBitsOnTheWireStayNear:"
             "Gradients.DifferentListsAreAnErrorThatNamesBoth"});
  for (Process& worker : workers) EXPECT_EQ(worker.join(), 0) << worker.output();
}

// SEMANTICS proof 14.
TEST_F(NcclProcessesGpu, AKilledPeerIsNamedByTheSurvivorWithinTheTimeout) {
  expect_a_killed_peer_is_named("nccl", "beat");
}

TEST_F(NcclProcessesGpu, AStoppedPeerIsNamedByTheSurvivorWithinTheTimeout) {
  auto workers = start("nccl", 2, {"beat", "5"});
  wait_until_beating(workers);
  workers[1].signal(SIGSTOP);
  EXPECT_EQ(workers[0].join(), 3) << workers[0].output();
  // It may have queued its part of the same call, which ends nowhere without it.
  EXPECT_THAT(workers[0].output(),
              AnyOf(HasSubstr("replica 1 is at"), HasSubstr("process 1 does not answer")));
}

#ifdef PENSTOCK_HAVE_GLOO
TEST_F(NcclProcessesGpu, AKilledProcessOfTwoGpusIsNamedByTheSurvivor) {
  if (gpu_count() < 2) GTEST_SKIP() << "one GPU here";
  expect_a_killed_peer_is_named("gloo", "replicas");
}

// Replicas 0 and 1 are here, 2 and 3 in the other process.
TEST_F(NcclProcessesGpu, OfTwoProcessesOfTwoGpusTheStoppedOneIsBlamed) {
  if (gpu_count() < 2) GTEST_SKIP() << "one GPU here";
  auto workers = start("gloo", 2, {"replicas", "5"});
  wait_until_beating(workers);
  workers[1].signal(SIGSTOP);
  EXPECT_EQ(workers[0].join(), 3) << workers[0].output();
  EXPECT_THAT(workers[0].output(), AnyOf(HasSubstr("replica 2 is at"), HasSubstr("replica 3 is at"),
                                         HasSubstr("process 1 does not answer")));
  EXPECT_THAT(workers[0].output(), Not(HasSubstr("has made none")));
}
#endif

}  // namespace
}  // namespace penstock
