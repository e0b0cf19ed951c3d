// A real S3 server for tests: moto's, started on the loopback (s3_server.py beside this).
#pragma once

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <penstock/storage/object_storage.hpp>

#include "src/storage/http/client.hpp"
#include "tests/project_path.hpp"

namespace penstock::test {

/// The interpreter that has moto; empty where scripts/moto could not make one.
inline std::string moto_python() {
  const char* const given = std::getenv("PENSTOCK_MOTO_PYTHON");
  std::string python = given != nullptr ? given : project_path("build/moto/bin/python");
  return ::access(python.c_str(), X_OK) == 0 ? python : std::string();
}

/// Skips a test where there is no such server to be had, and says so; fails it where there must be.
#define PENSTOCK_REQUIRE_MOTO()                                                                 \
  if (::penstock::test::moto_python().empty()) {                                                \
    if (std::getenv("PENSTOCK_REQUIRE_MOTO") != nullptr) FAIL() << "no moto: run scripts/moto"; \
    GTEST_SKIP() << "no S3 server to test with: scripts/moto installs one (it needs PyPI)";     \
  }                                                                                             \
  static_assert(true)

class S3Server {
 public:
  /// Serves the files of a folder as the objects of the bucket "photos".
  explicit S3Server(std::filesystem::path folder, std::vector<std::string> flags = {})
      : folder_(std::move(folder)), flags_(std::move(flags)) {
    start();
  }
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;
  ~S3Server() { kill(); }

  [[nodiscard]] std::string endpoint() const { return "http://127.0.0.1:" + port_; }
  [[nodiscard]] ObjectStorageOptions options() const {
    return {.endpoint = endpoint(), .timeout = std::chrono::seconds(200)};
  }
  [[nodiscard]] const std::string& access_key() const { return access_key_; }
  [[nodiscard]] const std::string& secret_key() const { return secret_key_; }

  /// GET requests for objects so far.
  [[nodiscard]] int gets() const {
    auto response = storage::HttpClient({}).send({.url = endpoint() + "/_gets"});
    if (!response) throw std::runtime_error(response.fault().reason);
    return std::atoi(response->body.c_str());
  }
  /// Ends what --hang-parts began.
  void answer_parts() const {
    if (auto response = storage::HttpClient({}).send({.url = endpoint() + "/_answer_parts"});
        !response)
      throw std::runtime_error(response.fault().reason);
  }

  /// As a machine that goes away: connections are cut, later ones refused.
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(input_);
    child_ = 0;
  }
  /// On the same port, if there is one already.
  void start() {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("no pipe");
    }
    std::vector<std::string> command{moto_python(), project_path("tests/storage/s3_server.py"),
                                     "--folder",    folder_.string(),
                                     "--port",      port_};
    command.insert(command.end(), flags_.begin(), flags_.end());
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    std::string said;
    for (char c = 0; ::read(out[0], &c, 1) == 1 && c != '\n';) said += c;
    ::close(out[0]);
    std::array<char, 64> port{};
    std::array<char, 64> key{};
    std::array<char, 64> secret{};
    if (std::sscanf(said.c_str(), "port %63s %63s %63s", port.data(), key.data(),  // NOLINT
                    secret.data()) != 3) {
      throw std::runtime_error("moto's server did not start: see above");
    }
    port_ = port.data();
    access_key_ = key.data();
    secret_key_ = secret.data();
  }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> flags_;
  std::string port_ = "0";
  std::string access_key_;
  std::string secret_key_;
  pid_t child_ = 0;
  int input_ = -1;
};

}  // namespace penstock::test
