// Runs penstock-throughput as its users do.
#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "tests/variables.hpp"

namespace penstock::testing_support {

namespace fs = std::filesystem;
using nlohmann::json;
inline std::string program;  // NOLINT

inline constexpr int kImages = 60;
inline constexpr uid_t kNobody = 65534;
inline constexpr int kCannotStart = 97;  // the status of a child that could not

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What penstock-train-classifier --losses writes, by step.
using Losses = std::map<std::uint64_t, double>;
inline Losses read_losses(const fs::path& path) {
  Losses losses;
  std::ifstream file(path);
  std::uint64_t step = 0;
  for (double loss = 0; file >> step >> loss;) losses[step] = loss;
  return losses;
}

struct Outcome {
  int status = -1;  // exit status, or minus the signal
  std::string out;
  std::string err;
  [[nodiscard]] json report() const { return json::parse(out); }
};

class Throughput : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The generated photographs, made once for all tests of this program.
  static const fs::path& photos() {
    static const fs::path kPhotos = penstock::source::synthetic_image_folder(
        {.count = kImages, .cache = fs::temp_directory_path() / "penstock-test"});
    return kPhotos;
  }

  using Variables = std::vector<std::pair<std::string, std::string>>;

  // `name` tells the outputs of several processes apart.
  pid_t start(const std::vector<std::string>& flags, uid_t user = 0,
              const Variables& variables = {}, const std::string& name = "") {
    // Nothing in the child asks for memory: where this process has threads, AddressSanitizer's allocator may be locked there.
    std::vector<char*> argv{program.data()};
    for (const std::string& flag : flags) argv.push_back(const_cast<char*>(flag.c_str()));
    argv.push_back(nullptr);
    const test::Variables own({variables.begin(), variables.end()});
    const std::array<std::string, 2> outputs{folder_ / ("out" + name), folder_ / ("err" + name)};
    const pid_t child = fork();
    if (child != 0) return child;
    for (const int stream : {0, 1}) {
      const int file = open(outputs[stream].c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
      if (file < 0 || dup2(file, stream + 1) < 0 || close(file) != 0) _exit(98);
    }
    if (user != 0 && setuid(user) != 0) _exit(99);
    execv(program.c_str(), argv.data());
    _exit(kCannotStart);
  }
  Outcome finish(pid_t child, const std::string& name = "") {
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            read_file(folder_ / ("out" + name)), read_file(folder_ / ("err" + name))};
  }
  Outcome run(const std::vector<std::string>& flags, uid_t user = 0) {
    return finish(start(flags, user));
  }

  // Runs with a standard output that is full, and expects that this is said.
  void expect_lost(const std::string& name, const std::string& flags) {
    const std::string command =
        name + " " + flags + " >/dev/full 2>'" + (folder_ / "lost").string() + "'";
    const int status = std::system(command.c_str());  // NOLINT
    EXPECT_TRUE(WIFEXITED(status)) << command;
    EXPECT_EQ(WEXITSTATUS(status), 1) << command;
    EXPECT_NE(read_file(folder_ / "lost").find("standard output cannot be written to"),
              std::string::npos)
        << command << ": " << read_file(folder_ / "lost");
  }

  // Runs with small crops on the generated photographs, and gives the JSON report.
  json report(std::vector<std::string> flags) {
    for (const char* flag :
         {"--crop", "32", "--batch", "16", "--seed", "7", "--digest", "--json", "-"})
      flags.emplace_back(flag);
    if (std::ranges::count(flags, "--data") == 0)
      flags.insert(flags.begin(), {"--data", photos().string()});
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? outcome.report() : json::object();
  }

  // A folder with `good` photographs, to which bad ones can be added.
  fs::path make_folder(int good) {
    const fs::path data = folder_ / "data";
    fs::create_directories(data);
    for (const auto& entry : fs::recursive_directory_iterator(photos())) {
      if (entry.path().extension() != ".jpg" || good-- <= 0) continue;
      fs::copy_file(entry.path(), data / entry.path().filename());
    }
    return data;
  }

  fs::path folder_ =
      fs::temp_directory_path() / ("penstock-throughput-" + std::to_string(getpid()));
};

}  // namespace penstock::testing_support
