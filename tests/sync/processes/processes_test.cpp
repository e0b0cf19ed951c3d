// Starts several processes of the worker, by mpirun and with torchrun's variables.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/sync/tcp.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// A process whose output goes to a file.
class Process {
 public:
  Process(const std::vector<std::string>& command, const std::vector<std::string>& variables,
          const fs::path& output)
      : output_(output) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    for (const std::string& variable : variables) ::putenv(const_cast<char*>(variable.c_str()));
    if (std::freopen(output.c_str(), "w", stdout) == nullptr) ::_exit(98);
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& argument : command)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(97);
  }
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), output_(std::move(other.output_)) {}
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)join();
  }

  void signal(int number) const { ::kill(pid_, number); }
  /// Exit status; minus the signal where one ended it.
  int join() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  [[nodiscard]] std::string output() const {
    std::ifstream file(output_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  pid_t pid_ = 0;
  fs::path output_;
};

class SyncProcesses : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  /// Runs the worker's tests under mpirun.
  void expect_mpi_passes(int count, const std::string& filter = "*") {
#ifndef PENSTOCK_HAVE_MPI
    GTEST_SKIP() << "built without MPI: " << count << " processes of " << filter;
#endif
    if (std::system("command -v mpirun >/dev/null") != 0)
      GTEST_SKIP() << "mpirun is missing; install openmpi-bin";
    Process mpirun({"mpirun", "-np", std::to_string(count), PENSTOCK_WORKER, "mpi",
                    "--gtest_brief=1", "--gtest_filter=" + filter},
                   {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                    "OMPI_MCA_rmaps_base_oversubscribe=1"},
                   folder_ / "mpirun");
    EXPECT_EQ(mpirun.join(), 0) << mpirun.output();
  }

  /// Processes with torchrun's variables, all on this machine.
  std::vector<Process> start_gloo(int count, const std::vector<std::string>& arguments,
                                  const std::string& run_id = "test") {
    std::vector<Process> workers;
    for (int rank = 0; rank < count; ++rank) {
      std::vector<std::string> command{PENSTOCK_WORKER, "gloo"};
      command.insert(command.end(), arguments.begin(), arguments.end());
      workers.emplace_back(
          command,
          std::vector<std::string>{fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank),
                                   fmt::format("WORLD_SIZE={}", count),
                                   fmt::format("LOCAL_WORLD_SIZE={}", count),
                                   "MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", port_),
                                   "TORCHELASTIC_RUN_ID=" + run_id},
          folder_ / fmt::format("rank{}", rank));
    }
    return workers;
  }
  void expect_gloo_passes(int count, const std::string& filter = "*") {
#ifndef PENSTOCK_HAVE_GLOO
    GTEST_SKIP() << "built without Gloo: " << count << " processes of " << filter;
#endif
    auto workers = start_gloo(count, {"--gtest_brief=1", "--gtest_filter=" + filter});
    for (Process& worker : workers) EXPECT_EQ(worker.join(), 0) << worker.output();
  }

  /// Waits until all say that they are in the middle of it.
  static void wait_until_beating(const std::vector<Process>& workers) {
    const auto patience = Clock::now() + std::chrono::seconds(60);
    for (const Process& worker : workers)
      while (worker.output().find("beating") == std::string::npos) {
        ASSERT_LT(Clock::now(), patience) << worker.output();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("penstock-sync-{}", ::getpid());
  std::uint16_t port_ = detail::port_of(*detail::listen_at("127.0.0.1", 0));
};

TEST_F(SyncProcesses, TwoUnderMpirun) { expect_mpi_passes(2); }
TEST_F(SyncProcesses, FourUnderMpirun) { expect_mpi_passes(4); }
// Twelve on two cores: not the tests that measure time.
TEST_F(SyncProcesses, TwelveUnderMpirun) {
  expect_mpi_passes(12, "Collectives.*:Gradients.*:Mismatch.IsAnError*:ReplicasOfProcesses.AreNumbered*");
}
TEST_F(SyncProcesses, TwoOverGloo) { expect_gloo_passes(2); }
TEST_F(SyncProcesses, FourOverGloo) { expect_gloo_passes(4); }

// SEMANTICS proof 14.
TEST_F(SyncProcesses, AKilledPeerIsNamedByAllSurvivorsWithinTheTimeout) {
#ifndef PENSTOCK_HAVE_GLOO
  GTEST_SKIP() << "built without Gloo";
#endif
  for (const auto [count, victim] : {std::pair{2, 1}, {4, 2}, {4, 0}}) {
    auto workers = start_gloo(count, {"beat", "20"});
    wait_until_beating(workers);
    const auto begin = Clock::now();
    workers[static_cast<std::size_t>(victim)].signal(SIGKILL);
    for (int rank = 0; rank < count; ++rank) {
      Process& worker = workers[static_cast<std::size_t>(rank)];
      if (rank == victim) {
        EXPECT_EQ(worker.join(), -SIGKILL);
        continue;
      }
      EXPECT_EQ(worker.join(), 3) << worker.output();
      EXPECT_THAT(worker.output(), HasSubstr(fmt::format("process {} has died", victim)));
    }
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10)) << "long before the timeout";
  }
}

TEST_F(SyncProcesses, AStoppedPeerIsNamedByAllSurvivorsWithinTheTimeout) {
#ifndef PENSTOCK_HAVE_GLOO
  GTEST_SKIP() << "built without Gloo";
#endif
  auto workers = start_gloo(3, {"beat", "2"});
  wait_until_beating(workers);
  workers[1].signal(SIGSTOP);
  for (const std::size_t rank : {0U, 2U}) {
    EXPECT_EQ(workers[rank].join(), 3);
    EXPECT_THAT(workers[rank].output(), HasSubstr("process 1"));
  }
}

// Its second half: a restart at the same address finds nothing of the run that was killed.
TEST_F(SyncProcesses, TwelveAreKilledAndRestartedTwelveTimes) {
#ifndef PENSTOCK_HAVE_GLOO
  GTEST_SKIP() << "built without Gloo";
#endif
  for (int round = 0; round < 12; ++round) {
    auto workers = start_gloo(12, {"beat", "30"}, fmt::format("round {}", round));
    // At another moment each time: while they meet, connect, or exchange.
    std::this_thread::sleep_for(std::chrono::milliseconds(40 * round));
    for (const Process& worker : workers) worker.signal(SIGKILL);
    for (Process& worker : workers) EXPECT_EQ(worker.join(), -SIGKILL) << worker.output();
  }
  auto workers = start_gloo(12, {"--gtest_brief=1", "--gtest_filter=Collectives.HalvesAreAddedInF32"});
  for (Process& worker : workers) EXPECT_EQ(worker.join(), 0) << worker.output();
}

}  // namespace
}  // namespace penstock
