// Whether threads wait, as the kernel says: a test that asks need not sleep and hope.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace penstock::test {

/// The states of a process's threads: 'S' is one that waits, 'R' one that works or could. Empty if
/// there is no such process.
inline std::vector<char> thread_states(pid_t process) {
  namespace fs = std::filesystem;
  std::vector<char> states;
  std::error_code gone;
  for (fs::directory_iterator thread(fmt::format("/proc/{}/task", process), gone), end;
       !gone && thread != end; thread.increment(gone)) {
    std::ifstream file(thread->path() / "stat");
    std::string line;
    std::getline(file, line);
    // Behind its name, in which there may be anything.
    if (const std::size_t name_end = line.rfind(") "); name_end != std::string::npos)
      states.push_back(line[name_end + 2]);
  }
  return states;
}

/// Waits until every thread of another process waits, twice in a row; false if the process ends
/// before.
inline bool await_all_asleep(pid_t process) {
  for (int times = 0; times < 2;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::vector<char> states = thread_states(process);
    if (states.empty() || std::ranges::count(states, 'Z') > 0) return false;
    times = std::ranges::count(states, 'S') == std::ranges::ssize(states) ? times + 1 : 0;
  }
  return true;
}

/// Waits until a thread of this process waits, or has ended. `thread` is its gettid().
inline void await_asleep(pid_t thread) {
  for (;;) {
    std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
    std::string line;
    if (!std::getline(file, line)) return;
    if (const std::size_t name_end = line.rfind(") "); line.substr(name_end + 2, 1) == "S") return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace penstock::test
