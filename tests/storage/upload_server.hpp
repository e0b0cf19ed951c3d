// An S3 server of the tests' own for what is written: objects, uploads in parts, and answers that go wrong as told.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <penstock/storage/object_storage.hpp>

namespace penstock::test {

/// Serves the bucket "b", several connections at once, a request each.
class UploadServer {
 public:
  struct Request {
    std::string line;  ///< "PUT /b/key?partNumber=1&uploadId=u1"
    std::string head;
    std::string body;
  };
  /// What is done to a request.
  enum class Fate {
    answered,
    torn,       ///< the connection ends without an answer
    lost,       ///< it is done, and the connection ends before the answer
    silent,     ///< no answer, until the test ends
    busy,       ///< 503
    refused,    ///< 403
    corrupted,  ///< a byte of the body arrives as another
    late_error  ///< 200, with an error in its body
  };
  using Judge = std::function<Fate(const Request& request)>;
  explicit UploadServer(
      Judge judge = [](const Request&) { return Fate::answered; },
      std::chrono::milliseconds pause = {})
      : judge_(std::move(judge)), pause_(pause) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    // Little lies between the two ends that a client takes for sent.
    const int room = 64 << 10;
    ::setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    for (int thread = 0; thread < kThreads; ++thread)
      threads_.emplace_back([this](const std::stop_token& end) {
        while (!end.stop_requested()) {
          pollfd ready{listener_, POLLIN, 0};
          if (::poll(&ready, 1, 20) <= 0) continue;
          const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
          if (client >= 0) serve(client, end);  // else another thread has it
        }
      });
  }
  ~UploadServer() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
    ::close(listener_);
  }
  UploadServer(const UploadServer&) = delete;
  UploadServer& operator=(const UploadServer&) = delete;

  [[nodiscard]] ObjectStorageOptions options() const {
    return {.endpoint = fmt::format("http://127.0.0.1:{}", port_),
            .anonymous = true,
            .timeout = std::chrono::seconds(600)};
  }
  [[nodiscard]] std::map<std::string, std::string> objects() const {
    const std::lock_guard lock(mutex_);
    return objects_;
  }
  [[nodiscard]] std::size_t open_uploads() const {
    const std::lock_guard lock(mutex_);
    return uploads_.size();
  }
  [[nodiscard]] std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  [[nodiscard]] std::size_t count(std::string_view begin) const {
    const std::vector<std::string> lines = requests();
    return static_cast<std::size_t>(std::ranges::count_if(
        lines, [&](const std::string& line) { return line.starts_with(begin); }));
  }

 private:
  static constexpr int kThreads = 16;  // more than requests of a test that get no answer

  struct Upload {
    std::string key;
    std::string mark;
    std::map<int, std::string> parts;
  };

  static std::string answer(const std::string& status, const std::string& body,
                            const std::string& headers = "") {
    return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}", status,
                       body.size(), headers, body);
  }
  static std::string error(const std::string& status, const std::string& code) {
    return answer(status, "<Error><Code>" + code + "</Code><Message>told so</Message></Error>");
  }
  static std::string header(const Request& request, const std::string& name) {
    const std::size_t at = request.head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 4;
    return request.head.substr(begin, request.head.find("\r\n", begin) - begin);
  }
  static std::string parameter(const Request& request, const std::string& name) {
    const std::size_t query = request.line.find('?');
    const std::size_t at =
        query == std::string::npos ? query : request.line.find(name + "=", query);
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 1;
    return request.line.substr(begin, request.line.find('&', begin) - begin);
  }
  static std::string md5(const std::string& body) {
    std::array<unsigned char, 16> digest{};
    ::EVP_Digest(body.data(), body.size(), digest.data(), nullptr, ::EVP_md5(), nullptr);
    std::array<unsigned char, 25> text{};
    ::EVP_EncodeBlock(text.data(), digest.data(), 16);
    return reinterpret_cast<const char*>(text.data());
  }

  Request read(int client) const {
    Request request;
    std::string all;
    std::array<char, 65536> part{};
    std::size_t head = std::string::npos;
    std::size_t length = 0;
    while (head == std::string::npos || all.size() < head + length) {
      const ssize_t count = ::recv(client, part.data(), part.size(), 0);
      if (count <= 0) break;
      all.append(part.data(), static_cast<std::size_t>(count));
      std::this_thread::sleep_for(pause_);
      if (head == std::string::npos && (head = all.find("\r\n\r\n")) != std::string::npos) {
        head += 4;
        request.head = all.substr(0, head);
        request.line = all.substr(0, all.find(" HTTP/"));
        length = static_cast<std::size_t>(std::atoll(header(request, "Content-Length").c_str()));
      }
    }
    if (head != std::string::npos) request.body = all.substr(head);
    return request;
  }

  void serve(int client, const std::stop_token& end) {
    Request request = read(client);
    const Fate fate = request.line.empty() ? Fate::torn : judge_(request);
    {
      const std::lock_guard lock(mutex_);
      lines_.push_back(request.line);
    }
    if (fate == Fate::corrupted && !request.body.empty()) request.body[0] ^= 1;
    std::string text;
    switch (fate) {
      case Fate::torn:
        break;
      case Fate::silent:
        while (!end.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        break;
      case Fate::busy:
        text = error("503 Slow Down", "SlowDown");
        break;
      case Fate::refused:
        text = error("403 Forbidden", "AccessDenied");
        break;
      case Fate::late_error:
        text = error("200 OK", "InternalError");
        break;
      case Fate::lost:
        (void)done(request);
        break;
      case Fate::answered:
      case Fate::corrupted:
        text = done(request);
        break;
    }
    (void)::send(client, text.data(), text.size(), MSG_NOSIGNAL);
    ::close(client);
  }

  std::string done(const Request& request) {
    const std::lock_guard lock(mutex_);
    const std::string method = request.line.substr(0, request.line.find(' '));
    std::string key = request.line.substr(request.line.find('/'));
    key = key.substr(0, key.find('?'));
    key = key.starts_with("/b/") ? key.substr(3) : "";
    const std::string id = parameter(request, "uploadId");
    if (!request.body.empty() && method == "PUT" &&
        header(request, "content-md5") != md5(request.body))
      return error("400 Bad Request", "BadDigest");
    if (method == "HEAD") {
      const auto mark = marks_.find(key);
      return mark == marks_.end()
                 ? "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                 : "HTTP/1.1 200 OK\r\nConnection: close\r\nx-amz-meta-penstock-upload: " +
                       mark->second + "\r\nContent-Length: 0\r\n\r\n";
    }
    if (method == "GET") {
      std::string list = "<ListMultipartUploadsResult>";
      for (const auto& [name, upload] : uploads_)
        list += fmt::format("<Upload><Key>{}</Key><UploadId>u&amp;{}</UploadId></Upload>",
                            upload.key, name.substr(name.find('6') + 1));
      return answer("200 OK", list + "</ListMultipartUploadsResult>");
    }
    if (method == "POST" && id.empty()) {
      uploads_["u%26" + std::to_string(++made_)] = {
          key, header(request, "x-amz-meta-penstock-upload"), {}};
      return answer("200 OK",
                    fmt::format("<InitiateMultipartUploadResult><UploadId>u&amp;{}</UploadId>"
                                "</InitiateMultipartUploadResult>",
                                made_));
    }
    if (id.empty()) {
      objects_[key] = request.body;
      return answer("200 OK", "", "ETag: \"whole\"\r\n");
    }
    const auto found = uploads_.find(id);
    if (found == uploads_.end()) return error("404 Not Found", "NoSuchUpload");
    if (method == "DELETE") {
      uploads_.erase(found);
      return answer("204 No Content", "");
    }
    if (method == "PUT") {
      const int number = std::atoi(parameter(request, "partNumber").c_str());
      found->second.parts[number] = request.body;
      return answer("200 OK", "", fmt::format("ETag: \"part<{}>\"\r\n", number));
    }
    std::string whole;
    std::string expected = "<CompleteMultipartUpload>";
    for (const auto& [number, bytes] : found->second.parts) {
      whole += bytes;
      expected += fmt::format(
          "<Part><PartNumber>{0}</PartNumber><ETag>\"part&lt;{0}&gt;\"</ETag></Part>", number);
    }
    if (request.body != expected + "</CompleteMultipartUpload>")
      return error("400 Bad Request", "InvalidPart");
    objects_[key] = std::move(whole);
    marks_[key] = found->second.mark;
    uploads_.erase(found);
    return answer("200 OK", "<CompleteMultipartUploadResult/>");
  }

  Judge judge_;
  std::chrono::milliseconds pause_;  // after each 64 KiB
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
  std::map<std::string, std::string> objects_;
  std::map<std::string, std::string> marks_;
  std::map<std::string, Upload> uploads_;  // by their encoded ids
  int made_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace penstock::test
