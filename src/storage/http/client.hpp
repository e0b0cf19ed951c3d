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
  std::string_view body{};           ///< of PUT and POST; the caller's until the answer is there
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

struct HttpTimeouts {
  std::chrono::milliseconds connect{5000};
  std::chrono::milliseconds idle{30000};  ///< with less than 1 KiB a second
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

 private:
  class Handle;
  [[nodiscard]] std::unique_ptr<Handle> take() const;
  void give_back(std::unique_ptr<Handle> handle) const;

  HttpTimeouts timeouts_;
  std::vector<const char*> ca_variables_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Handle>> idle_;
};

}  // namespace penstock::storage
