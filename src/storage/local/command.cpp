#include "src/storage/local/command.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::storage {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A shell that runs a command, ended with this object at the latest. What it started itself ends when no process reads
/// what it prints: in a group of its own it would be ended too, but could not ask at the terminal.
class Shell {
 public:
  Shell(const std::string& command, const std::string& name) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(name, errno);
    output.adopt(ends[0]);
    const FileDescriptor into(ends[1]);
    posix_spawn_file_actions_t actions;
    if (const int error = ::posix_spawn_file_actions_init(&actions); error != 0) fail(name, error);
    std::string text = command;
    std::array<char*, 4> arguments{const_cast<char*>("sh"), const_cast<char*>("-c"), text.data(),
                                   nullptr};
    int error = ::posix_spawn_file_actions_adddup2(&actions, into.get(), STDOUT_FILENO);
    if (error == 0)
      error = ::posix_spawn(&process_, "/bin/sh", &actions, nullptr, arguments.data(), ::environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) fail(name, error);
  }
  ~Shell() {
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// Whether it has ended, and how.
  [[nodiscard]] bool has_ended(int& status) {
    if (::waitpid(process_, &status, WNOHANG) == 0) return false;
    process_ = -1;
    return true;
  }

  FileDescriptor output;

 private:
  [[noreturn]] static void fail(const std::string& name, int error) {
    throw Error(fmt::format("{} cannot be started: {}", name, errno_text(error)));
  }

  pid_t process_ = -1;
};

}  // namespace

std::string output_of_command(const std::string& command, const std::string& name,
                              std::chrono::milliseconds limit) {
  constexpr auto kLook = 20ms;
  constexpr std::size_t kMost = 1 << 20;
  const Clock::time_point end = Clock::now() + limit;
  const auto require_time = [&] {
    if (core::Interruption::is_requested())
      throw Error(fmt::format("{} was ended: {}", name, core::Interruption::kReason));
    if (Clock::now() > end)
      throw Error(
          fmt::format("{} gave no answer for {} ms, and was ended: run it by hand to see why", name,
                      limit.count()));
  };
  Shell shell(command, name);
  std::string output;
  std::array<char, 4096> bytes{};
  for (;;) {
    require_time();
    pollfd ready{shell.output.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(kLook.count())) <= 0) continue;
    const ssize_t count = ::read(shell.output.get(), bytes.data(), bytes.size());
    if (count == 0) break;
    if (count < 0 && errno != EINTR)
      throw Error(fmt::format("what {} printed cannot be read: {}", name, errno_text(errno)));
    if (count > 0 && output.size() < kMost)
      output.append(bytes.data(), static_cast<std::size_t>(count));
  }
  int status = 0;
  while (!shell.has_ended(status)) {
    require_time();
    std::this_thread::sleep_for(kLook);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(fmt::format("{} {} {}: run it by hand to see why", name,
                            WIFSIGNALED(status) ? "was ended by signal" : "failed with status",
                            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)));
  return output;
}

}  // namespace penstock::storage
