// An HTTP server of the tests' own that answers each request with what the test says.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <penstock/storage/object_storage.hpp>

namespace penstock::test {

/// Gives every request one answer; a request at a time. After `head` it sends the rest byte by byte, each after a pause.
class AnsweringServer {
 public:
  /// Nothing: the connection stays, and is never answered.
  using Answer = std::function<std::string(const std::string& request)>;
  explicit AnsweringServer(Answer answer, std::chrono::milliseconds pause = {})
      : answer_(std::move(answer)), pause_(pause) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  AnsweringServer(const AnsweringServer&) = delete;
  AnsweringServer& operator=(const AnsweringServer&) = delete;
  ~AnsweringServer() {
    thread_.request_stop();
    thread_.join();
    ::close(listener_);
    for (const int client : silent_) ::close(client);
  }
  [[nodiscard]] std::string endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }
  [[nodiscard]] ObjectStorageOptions options() const {
    return {.endpoint = endpoint(), .anonymous = true, .timeout = std::chrono::seconds(600)};
  }
  [[nodiscard]] int requests() const { return requests_; }
  /// Requests that got no answer.
  [[nodiscard]] int unanswered() const { return unanswered_; }

  static std::string xml(const std::string& body, const char* status = "200 OK") {
    return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                       body.size(), body);
  }

 private:
  // With the body that the request announces.
  static std::size_t whole_size(const std::string& request) {
    const std::size_t head = request.find("\r\n\r\n");
    const std::size_t length = request.find("\r\nContent-Length: ");
    if (head == std::string::npos || length == std::string::npos || length > head) return 0;
    return head + 4 + std::strtoull(request.c_str() + length + 18, nullptr, 10);
  }
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd ready{listener_, POLLIN, 0};
      if (::poll(&ready, 1, 20) <= 0) continue;
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      std::string request;
      char part[4096];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t count = ::recv(client, part, sizeof part, 0);
        if (count <= 0) break;
        request.append(part, static_cast<std::size_t>(count));
      }
      while (request.size() < whole_size(request)) {
        const ssize_t count = ::recv(client, part, sizeof part, 0);
        if (count <= 0) break;
        request.append(part, static_cast<std::size_t>(count));
      }
      ++requests_;
      const std::string answer = answer_(request);
      if (answer.empty()) {
        silent_.push_back(client);
        ++unanswered_;
        continue;
      }
      const std::size_t at_once = pause_ == std::chrono::milliseconds(0)
                                      ? answer.size()
                                      : std::min(answer.size(), answer.find("\r\n\r\n") + 4);
      bool sent = ::send(client, answer.data(), at_once, MSG_NOSIGNAL) >= 0;
      for (std::size_t at = at_once; sent && at < answer.size() && !stop.stop_requested(); ++at) {
        std::this_thread::sleep_for(pause_);
        sent = ::send(client, answer.data() + at, 1, MSG_NOSIGNAL) == 1;
      }
      ::close(client);
    }
  }

  Answer answer_;
  std::chrono::milliseconds pause_;
  int listener_ = -1;
  int port_ = 0;
  std::vector<int> silent_;
  std::atomic<int> requests_ = 0;
  std::atomic<int> unanswered_ = 0;
  std::jthread thread_;
};

}  // namespace penstock::test
