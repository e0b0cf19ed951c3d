// Starts several processes of the worker on this machine.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/free_port.hpp"

namespace penstock::test {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// A process whose output goes to a file.
class Process {
 public:
  Process(const std::vector<std::string>& command, const std::vector<std::string>& variables,
          const fs::path& output)
      : output_(output) {
    fs::remove(output);  // of an earlier process: its output must not be taken for the new one's
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

class ProcessesTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  /// Processes with torchrun's variables, all on this machine.
  std::vector<Process> start(const std::string& transport, int count,
                             const std::vector<std::string>& arguments,
                             const std::string& run_id = "test") {
    std::vector<Process> workers;
    for (int rank = 0; rank < count; ++rank) {
      std::vector<std::string> command{PENSTOCK_WORKER, transport};
      command.insert(command.end(), arguments.begin(), arguments.end());
      workers.emplace_back(
          command,
          std::vector<std::string>{
              fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank),
              fmt::format("WORLD_SIZE={}", count), fmt::format("LOCAL_WORLD_SIZE={}", count),
              "MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", port_),
              "TORCHELASTIC_RUN_ID=" + run_id, "PENSTOCK_TEST_FOLDER=" + folder_.string(),
              // What NCCL needs before it takes two ranks on one GPU.
              fmt::format("NCCL_HOSTID=penstock-{}", rank), "NCCL_SOCKET_IFNAME=lo",
              "NCCL_IB_DISABLE=1"},
          folder_ / fmt::format("rank{}", rank));
    }
    return workers;
  }
  /// Waits until all say that they are in the middle of it.
  static void wait_until_beating(const std::vector<Process>& workers) {
    const auto patience = Clock::now() + std::chrono::seconds(300);
    for (const Process& worker : workers)
      while (worker.output().find("beating") == std::string::npos) {
        ASSERT_LT(Clock::now(), patience) << worker.output();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("penstock-sync-{}", ::getpid());
  std::uint16_t port_ = test::free_port();
};

}  // namespace penstock::test
