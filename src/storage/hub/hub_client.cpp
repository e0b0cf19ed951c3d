#include "src/storage/hub/hub_client.hpp"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "src/core/interruption.hpp"
#include "src/core/version.hpp"
#include "src/storage/http/endpoint.hpp"
#include "src/storage/hub/hub_answers.hpp"

namespace penstock::storage {

namespace {

bool is_redirect(long status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

void note_file(const HttpResponse& response, HubReply& reply) {
  if (reply.commit.empty()) reply.commit = response.header("x-repo-commit");
  const std::string size = response.header("x-linked-size");
  std::uint64_t bytes = 0;
  const auto [stop, error] = std::from_chars(size.data(), size.data() + size.size(), bytes);
  if (error == std::errc{} && stop == size.data() + size.size()) reply.size = bytes;
}

}  // namespace

std::string HubReply::server() const { return origin_of(url); }

HubClient::HubClient(std::string endpoint, HubToken token, HttpTimeouts timeouts, bool is_hedged)
    : endpoint_(std::move(endpoint)),
      origin_(origin_of(endpoint_)),
      token_(std::move(token)),
      client_(timeouts, {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}),
      reader_(client_, is_hedged) {}

Result<HubReply> HubClient::send(HttpRequest request, const std::string& file) const {
  return follow(std::move(request), file,
                [&](const HttpRequest& hop, bool) { return client_.send(hop); });
}

Result<HubReply> HubClient::read(std::string url, const std::string& file, const ByteRange& range,
                                 std::span<std::byte> into) const {
  return follow({.url = std::move(url)}, file, [&](const HttpRequest& hop, bool is_own) {
    const auto make = [&](const ByteRange& part, const std::string& etag) -> Result<HttpRequest> {
      HttpRequest request = hop;
      if (!part.is_whole()) request.headers.push_back("range: " + part.header());
      if (!etag.empty()) request.headers.push_back("if-match: " + etag);
      return request;
    };
    return reader_.read(range, into, make, !is_own);  // of the Hub's pauses: limit_
  });
}

Result<HubReply> HubClient::follow(HttpRequest request, const std::string& file,
                                   const Send& send) const {
  constexpr int kMostRedirects = 5;
  const std::vector<std::string> headers = std::move(request.headers);
  HubReply reply{.url = std::move(request.url)};
  for (int redirects = 0;; ++redirects) {
    reply.is_own = origin_of(reply.url) == origin_;
    request.url = reply.url;
    request.headers = headers;
    request.headers.push_back(fmt::format("user-agent: penstock/{}", core::version()));
    if (reply.is_own) {
      limit_.wait();
      if (token_.is_given()) request.headers.push_back(token_.header());
    }
    Result<HttpResponse> response = send(request, reply.is_own);
    if (!response) {
      Fault fault = std::move(response.fault());
      if (fault.reason != core::Interruption::kReason)
        fault.reason = fmt::format("cannot reach {}: {}", reply.is_own ? endpoint_ : reply.server(),
                                   fault.reason);
      fault.file = file;
      return fault;
    }
    if (reply.is_own) {
      limit_.note(*response);
      note_file(*response, reply);
    }
    if (!is_redirect(response->status)) {
      reply.response = std::move(*response);
      return reply;
    }
    std::string next = redirected_url(reply.url, response->header("location"));
    const bool leaves_https = is_weaker(reply.url, next);
    if (next.empty() || leaves_https || redirects == kMostRedirects)
      return Fault{.reason = fmt::format(
                       "{} answered with a redirect {}", reply.server(),
                       next.empty()   ? "to no URL"
                       : leaves_https ? "from https to http, which is not followed"
                                      : fmt::format("again, after {} of them", kMostRedirects)),
                   .file = file};
    reply.url = std::move(next);
  }
}

}  // namespace penstock::storage
