// Starts several processes of the worker, by mpirun and with torchrun's variables.
#include "tests/sync/processes/processes.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using test::Clock;
using test::Process;
using testing::AnyOf;
using testing::HasSubstr;

constexpr int kNoticed = 3;  // what the worker exits with when another one has died

class SyncProcesses : public test::ProcessesTest {
 protected:
  /// Runs the worker's tests under mpirun.
  void expect_mpi_passes(int count, const std::string& filter = "*",
                         const std::string& transport = "mpi") {
#ifndef PENSTOCK_HAVE_MPI
    GTEST_SKIP() << "built without MPI: " << count << " processes of " << filter;
#endif
    if (std::system("command -v mpirun >/dev/null") != 0)
      GTEST_SKIP() << "mpirun is missing; install openmpi-bin";
    Process mpirun(
        {"mpirun", "-np", std::to_string(count), PENSTOCK_WORKER, transport, "--gtest_brief=1",
         "--gtest_filter=" + filter},
        {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
         "OMPI_MCA_rmaps_base_oversubscribe=1", "PENSTOCK_TEST_FOLDER=" + folder_.string(),
         // Heads of a few processes are long, too: MPI sends those when they are asked for.
         "OMPI_MCA_btl_vader_eager_limit=512"},
        folder_ / "mpirun");
    EXPECT_EQ(mpirun.join(), 0) << mpirun.output();
  }

  /// What becomes of `count` processes of the worker's `how` under mpirun, within ten minutes.
  Process under_mpirun(int count, const std::string& how, const std::string& timeout_s) {
    return Process({"mpirun", "--timeout", "600", "-np", std::to_string(count), PENSTOCK_WORKER,
                    "mpi", how, timeout_s},
                   {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                    "OMPI_MCA_rmaps_base_oversubscribe=1"},
                   folder_ / "mpirun");
  }

  void expect_gloo_passes(int count, const std::string& filter = "*",
                          const std::string& transport = "gloo") {
#ifndef PENSTOCK_HAVE_GLOO
    GTEST_SKIP() << "built without Gloo: " << count << " processes of " << filter;
#endif
    auto workers = start(transport, count, {"--gtest_brief=1", "--gtest_filter=" + filter});
    for (Process& worker : workers) EXPECT_EQ(worker.join(), 0) << worker.output();
  }
};

TEST_F(SyncProcesses, TwoUnderMpirun) { expect_mpi_passes(2); }
TEST_F(SyncProcesses, FourUnderMpirun) { expect_mpi_passes(4); }
// Twelve on two cores: not the tests that measure time.
TEST_F(SyncProcesses, TwelveUnderMpirun) {
  expect_mpi_passes(
      12, "Collectives.*:Gradients.*:Mismatch.IsAnError*:ReplicasOfProcesses.AreNumbered*");
}
TEST_F(SyncProcesses, TwoOverGloo) { expect_gloo_passes(2); }
TEST_F(SyncProcesses, FourOverGloo) { expect_gloo_passes(4); }
TEST_F(SyncProcesses, ThreeInAnyOrderUnderMpirun) {
  expect_mpi_passes(3, "-Late.*", "mpi-any-order");
}
TEST_F(SyncProcesses, ThreeInAnyOrderOverGloo) {
  expect_gloo_passes(3, "-Late.*", "gloo-any-order");
}

// SEMANTICS proof 14.
TEST_F(SyncProcesses, AKilledPeerIsNamedByAllSurvivorsWithinTheTimeout) {
#ifndef PENSTOCK_HAVE_GLOO
  GTEST_SKIP() << "built without Gloo";
#endif
  for (const auto& [transport, count, victim] : {std::tuple{"gloo", 2, 1},
                                                 {"gloo", 4, 2},
                                                 {"gloo", 4, 0},
                                                 {"gloo-any-order", 4, 2},
                                                 {"gloo-any-order", 4, 0}}) {
    auto workers = start(transport, count, {"beat", "300"});
    wait_until_beating(workers);
    const auto begin = Clock::now();
    workers[static_cast<std::size_t>(victim)].signal(SIGKILL);
    for (int rank = 0; rank < count; ++rank) {
      Process& worker = workers[static_cast<std::size_t>(rank)];
      if (rank == victim) {
        EXPECT_EQ(worker.join(), -SIGKILL);
        continue;
      }
      EXPECT_EQ(worker.join(), kNoticed) << worker.output();
      EXPECT_THAT(worker.output(), HasSubstr(fmt::format("process {} has died", victim)));
    }
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(150));
  }
}

// Process 0 waits for process 1, which is well but does not come, when process 2 is killed.
TEST_F(SyncProcesses, WhoWaitsForASurvivorLearnsOfADeathAtOnce) {
#ifndef PENSTOCK_HAVE_GLOO
  GTEST_SKIP() << "built without Gloo";
#endif
  auto workers = start("gloo", 3, {"alone", "300"});
  wait_until_beating(workers);
  const auto begin = Clock::now();
  workers[2].signal(SIGKILL);
  EXPECT_EQ(workers[0].join(), kNoticed);
  EXPECT_THAT(workers[0].output(), HasSubstr("process 2 has died"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(150));
}

TEST_F(SyncProcesses, AStoppedPeerIsNamedByAllSurvivorsWithinTheTimeout) {
#ifndef PENSTOCK_HAVE_GLOO
  GTEST_SKIP() << "built without Gloo";
#endif
  // The last one is process 0, which concludes for all: then each says so for itself.
  for (const auto& [transport, count, victim] : {std::tuple{"gloo", 3, 1},
                                                 {"gloo", 4, 2},
                                                 {"gloo", 4, 2},
                                                 {"gloo-any-order", 4, 2},
                                                 {"gloo-any-order", 4, 2},
                                                 {"gloo", 3, 0}}) {
    auto workers = start(transport, count, {"beat", "4"});
    wait_until_beating(workers);
    workers[static_cast<std::size_t>(victim)].signal(SIGSTOP);
    for (int rank = 0; rank < count; ++rank) {
      Process& worker = workers[static_cast<std::size_t>(rank)];
      if (rank == victim) continue;
      EXPECT_EQ(worker.join(), kNoticed);
      EXPECT_THAT(worker.output(),
                  HasSubstr(fmt::format("process {} does not answer: it is stopped", victim)));
    }
  }
}

// MPI's own end waits for all processes, so the survivor must end without it.
TEST_F(SyncProcesses, ASurvivorOfAStoppedPeerEndsUnderMpirun) {
#ifndef PENSTOCK_HAVE_MPI
  GTEST_SKIP() << "built without MPI";
#endif
  if (std::system("command -v mpirun >/dev/null") != 0)
    GTEST_SKIP() << "mpirun is missing; install openmpi-bin";
  const auto begin = Clock::now();
  Process mpirun = under_mpirun(2, "freeze", "4");
  EXPECT_NE(mpirun.join(), 0);
  EXPECT_THAT(mpirun.output(), HasSubstr("process 1 did not come within 4 s"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(300)) << mpirun.output();
}

TEST_F(SyncProcesses, ACommunicatorMayEndAfterMain) {
  for (Process& worker : start("gloo", 2, {"keep", "300"}))
    EXPECT_EQ(worker.join(), 0) << worker.output();
  if (std::system("command -v mpirun >/dev/null") != 0)
    GTEST_SKIP() << "mpirun is missing; install openmpi-bin";
  Process mpirun = under_mpirun(2, "keep", "300");
  EXPECT_EQ(mpirun.join(), 0) << mpirun.output();
}

// Its second half: a restart at the same address finds nothing of the run that was killed.
TEST_F(SyncProcesses, TwelveAreKilledAndRestartedTwelveTimes) {
#ifndef PENSTOCK_HAVE_GLOO
  GTEST_SKIP() << "built without Gloo";
#endif
  for (int round = 0; round < 12; ++round) {
    auto workers = start("gloo", 12, {"beat", "300"}, fmt::format("round {}", round));
    // At another moment each time: while they meet, connect, or exchange.
    std::this_thread::sleep_for(std::chrono::milliseconds(40 * round));
    for (const Process& worker : workers) worker.signal(SIGKILL);
    // Those that are killed last may have noticed before.
    for (Process& worker : workers)
      EXPECT_THAT(worker.join(), AnyOf(-SIGKILL, kNoticed)) << worker.output();
  }
  auto workers =
      start("gloo", 12, {"--gtest_brief=1", "--gtest_filter=Collectives.HalvesAreAddedInF32"});
  for (Process& worker : workers) EXPECT_EQ(worker.join(), 0) << worker.output();
}

}  // namespace
}  // namespace penstock
