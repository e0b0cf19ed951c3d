#include "src/storage/hub/hub_client.hpp"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "src/core/interruption.hpp"
#include "src/core/version.hpp"
#include "src/storage/http/endpoint.hpp"
#include "src/storage/http/redirects.hpp"

namespace penstock::storage {

namespace {

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
  HubReply reply;
  const auto send_hop = [&](const HttpRequest& hop) -> Result<HttpResponse> {
    reply.is_own = origin_of(hop.url) == origin_;
    HttpRequest own = hop;
    own.headers.push_back(fmt::format("user-agent: penstock/{}", core::version()));
    if (reply.is_own) {
      limit_.wait();
      if (token_.is_given()) own.headers.push_back(token_.header());
    }
    Result<HttpResponse> response = send(own, reply.is_own);
    if (!response) {
      Fault fault = std::move(response.fault());
      if (fault.reason != core::Interruption::kReason)
        fault.reason = fmt::format("cannot reach {}: {}",
                                   reply.is_own ? endpoint_ : origin_of(hop.url), fault.reason);
      return fault;
    }
    if (reply.is_own) {
      limit_.note(*response);
      note_file(*response, reply);
    }
    return response;
  };
  Result<HttpReply> last = follow_redirects(std::move(request), file, send_hop);
  if (!last) return std::move(last.fault());
  reply.response = std::move(last->response);
  reply.url = std::move(last->url);
  return reply;
}

}  // namespace penstock::storage
