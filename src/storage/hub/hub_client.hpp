// storage/hub/hub_client: requests to the Hugging Face Hub and to the servers that it sends readers to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <penstock/core/error.hpp>

#include "src/storage/http/client.hpp"
#include "src/storage/http/range_reader.hpp"
#include "src/storage/http/rate_limit.hpp"
#include "src/storage/hub/hub_token.hpp"

namespace penstock::storage {

/// The answer at the end of all redirects.
struct HubReply {
  HttpResponse response;
  std::string url;     ///< that gave it
  bool is_own = true;  ///< whether the Hub itself answered
  /// What the Hub said of the file on the way: its commit, empty where it did not, and its size.
  std::string commit{};
  std::optional<std::uint64_t> size{};

  /// "https://host:port" of the server that answered: the rest of the URL may be a secret.
  [[nodiscard]] std::string server() const;
};

/// Follows redirects. The token goes to the Hub's own host alone, and no request goes there during a pause that it asked for.
///
/// Threads  const, any number at once.
class HubClient {
 public:
  HubClient(std::string endpoint, HubToken token, HttpTimeouts timeouts, bool is_hedged);

  /// One attempt. Faults are those of the connection and of redirects that lead nowhere, and name `file`; any other status is
  /// a reply.
  [[nodiscard]] Result<HubReply> send(HttpRequest request, const std::string& file) const;
  /// The same for a part of a file at `url`, which may take several requests, as RangeReader's.
  [[nodiscard]] Result<HubReply> read(std::string url, const std::string& file,
                                      const ByteRange& range, std::span<std::byte> into) const;

  /// Of all calls of read() so far.
  [[nodiscard]] RequestCounts counts() const noexcept { return reader_.counts(); }

  /// "https://huggingface.co", without a slash at its end.
  [[nodiscard]] const std::string& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] const HubToken& token() const noexcept { return token_; }

 private:
  using Send = std::function<Result<HttpResponse>(const HttpRequest& hop, bool is_own)>;
  [[nodiscard]] Result<HubReply> follow(HttpRequest request, const std::string& file,
                                        const Send& send) const;

  std::string endpoint_;
  std::string origin_;
  HubToken token_;
  HttpClient client_;
  RangeReader reader_;
  mutable RateLimit limit_;
};

}  // namespace penstock::storage
