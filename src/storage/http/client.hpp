// storage/http/client: requests over persistent connections, by libcurl.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/error.hpp>

namespace penstock::storage {

struct HttpRequest {
  std::string method = "GET";  ///< GET, HEAD, PUT, POST or DELETE
  std::string url;
  std::vector<std::string> headers;  ///< "name: value"
  bool bypass_proxy = false;         ///< for addresses that only this machine has
  bool uses_netrc =
      false;  ///< with the name and password of ~/.netrc, or $NETRC, for the URL's host
  std::string_view body{};  ///< of PUT and POST; the caller's until the answer is there
  /// How long without a byte; none: the client's.
  std::optional<std::chrono::milliseconds> idle{};
};

struct HttpResponse {
  long status = 0;
  std::map<std::string, std::string, std::less<>> headers;  ///< names in lower case
  std::string body;            ///< unless it went into the caller's memory
  std::uint64_t received = 0;  ///< bytes of the body, wherever they went

  [[nodiscard]] bool is_good() const noexcept { return status >= 200 && status < 300; }
  /// Empty where there is none.
  [[nodiscard]] std::string header(std::string_view name) const;
};

/// A moment of the clock that requests are measured by.
using HttpTime = std::chrono::steady_clock::time_point;

struct HttpTimeouts {
  std::chrono::milliseconds connect{5000};
  std::chrono::milliseconds idle{30000};  ///< with less than 1 KiB a second
};

/// How far a request has come.
struct HttpProgress {
  HttpTime started{};
  HttpTime first_byte{};  ///< of the answer's head; as it was made where none has come
  HttpTime last_byte{};   ///< likewise

  [[nodiscard]] bool has_begun() const noexcept { return first_byte != HttpTime{}; }
};

/// Follows no redirects. Keeps as many connections as there ever were concurrent requests.
///
/// Threads  const, any number at once.
class HttpClient {
 public:
  /// The first of `ca_variables` that is set and not empty names a file of certificates, which replace those of the machine.
  explicit HttpClient(HttpTimeouts timeouts,
                      std::vector<const char*> ca_variables = {"AWS_CA_BUNDLE"});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Any status is a response. The body of a good one goes to `into`, if given; what does not fit
  /// ends the transfer, and received is larger than `into`.
  ///
  /// Errors  Fault  no response: its reason, and whether to try again. core::Interruption::kReason: nothing is wrong with
  ///                the server
  [[nodiscard]] Result<HttpResponse> send(
      const HttpRequest& request, std::optional<std::span<std::byte>> into = std::nullopt) const;

  [[nodiscard]] const HttpTimeouts& timeouts() const noexcept { return timeouts_; }

 private:
  friend class HttpFlight;
  class Handle;
  [[nodiscard]] std::unique_ptr<Handle> take() const;
  void give_back(std::unique_ptr<Handle> handle) const;

  HttpTimeouts timeouts_;
  std::vector<const char*> ca_variables_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Handle>> idle_;
};

/// Requests of one thread that are in flight together, each over a connection of its own. The thread drives them while it
/// waits: there is no other one. What is in flight at the end is given up, and its connection closed.
///
/// Threads  one
class HttpFlight {
 public:
  static constexpr std::size_t kMost = 2;

  /// The client outlives it.
  explicit HttpFlight(const HttpClient& client);
  HttpFlight(const HttpFlight&) = delete;
  HttpFlight& operator=(const HttpFlight&) = delete;
  ~HttpFlight();

  /// Sends a request in a place, 0 or 1, that is free. As HttpClient::send(); the body and `into` are used until take() or
  /// give_up().
  void start(std::size_t place, const HttpRequest& request,
             std::optional<std::span<std::byte>> into);
  [[nodiscard]] bool is_free(std::size_t place) const noexcept;
  /// Until one of them has ended, whose place it returns. Nothing when the time has come, or the work is interrupted.
  [[nodiscard]] std::optional<std::size_t> wait(HttpTime until);
  /// The answer of one that has ended, whose place is free then.
  [[nodiscard]] Result<HttpResponse> take(std::size_t place);
  /// Ends it, if there is one.
  void give_up(std::size_t place) noexcept;

  [[nodiscard]] const HttpProgress& progress(std::size_t place) const noexcept;
  /// What has come of its answer: the status is 0 before the head is complete.
  [[nodiscard]] const HttpResponse& so_far(std::size_t place) const noexcept;

 private:
  const HttpClient* client_;
  std::unique_ptr<HttpClient::Handle> handle_;
};

}  // namespace penstock::storage
