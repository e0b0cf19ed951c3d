#include "src/storage/web/web_store.hpp"

#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/core/printable.hpp"
#include "src/core/version.hpp"
#include "src/storage/http/byte_range.hpp"
#include "src/storage/http/endpoint.hpp"
#include "src/storage/retry.hpp"
#include "src/storage/s3_options.hpp"

namespace penstock::storage {

namespace {

// Of a path as people write it: what may stand in a URL stays, also a % that escapes.
std::string with_escapes(std::string_view path) {
  constexpr std::string_view kStays = "-._~!$&'()*+,;=:@/%[]";
  std::string url;
  for (const char c : path) {
    const bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kStays.find(c) != kStays.npos;
    url += stays ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return url;
}

// One kind of version for each kind of answer, so that none stands for the other.
std::int64_t version_of(const HttpResponse& response) {
  if (const std::string etag = response.header("etag"); !etag.empty()) return version_of_etag(etag);
  const std::string changed = response.header("last-modified");
  return changed.empty() ? 0 : version_of_etag("changed " + changed);
}

std::optional<std::uint64_t> size_in(std::string_view text) {
  std::uint64_t size = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (text.empty() || error != std::errc{} || stop != text.data() + text.size())
    return std::nullopt;
  return size;
}

// What stands behind the slash of "bytes 0-0/1234".
std::optional<std::uint64_t> size_in_range(const HttpResponse& response) {
  const std::string range = response.header("content-range");
  const std::size_t slash = range.find('/');
  return slash == range.npos ? std::nullopt : size_in(std::string_view(range).substr(slash + 1));
}

// A file that is packed on its way has other bytes at each offset.
std::optional<Fault> fault_of_encoding(const HttpReply& reply) {
  const std::string encoding = reply.response.header("content-encoding");
  if (encoding.empty() || encoding == "identity") return std::nullopt;
  return Fault{.reason = fmt::format("{} gives the file with Content-Encoding {}, and not the "
                                     "file's own bytes: switch that off for it, or download it, "
                                     "and name the copy",
                                     origin_of(reply.url), core::printable(encoding, 50))};
}

std::string reason_of_whole(std::string_view server) {
  return fmt::format(
      "{} does not read ranges, it gives files as a whole: download the file, for example by "
      "'curl --fail --location --remote-name URL', and name the copy",
      server);
}

}  // namespace

WebStore::WebStore(const ObjectStorageOptions& options, std::shared_ptr<const WebQueries> queries,
                   const Environment& environment)
    : queries_(std::move(queries)),
      anonymous_(options.anonymous),
      client_({.connect = options.connect_timeout, .idle = options.timeout},
              {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}),
      reader_(client_, is_hedged(options)),
      attempts_(options.attempts) {
  if (const char* const option = s3_option_in(options))
    throw std::invalid_argument(fmt::format(
        "the option {} is of s3:// paths, and says nothing of https:// paths; leave it out",
        option));
  if (const auto netrc = environment("NETRC"); !anonymous_ && netrc && !std::ifstream(*netrc))
    throw Error(fmt::format("cannot read {}, the file that NETRC names; check its path",
                            core::printable(*netrc, 300)));
}

void WebStore::list(const ObjectName& prefix, bool,
                    const std::function<bool(ListedObject&&)>&) const {
  throw Error(fmt::format(
      "cannot list {}: web servers give no list of their files; name each file, by a list or by "
      "braces, as in https://host/train-{{000000..000146}}.tar",
      core::printable(prefix.url(), 300)));
}

std::string WebStore::url_of(const ObjectName& name) const {
  return fmt::format("{}/{}{}", name.bucket, with_escapes(name.key), queries_->find(name.url()));
}

HttpRequest WebStore::request_of(std::string url) const {
  return {.url = std::move(url),
          .headers = {fmt::format("user-agent: penstock/{}", core::version()),
                      "accept-encoding: identity"},
          .uses_netrc = !anonymous_};
}

Result<HttpReply> WebStore::ask(const ObjectName& name, const SendHop& send) const {
  const std::string file = name.url();
  const SendHop hop = [&](const HttpRequest& request) {
    Result<HttpResponse> response = send(request);
    if (!response && response.fault().reason != core::Interruption::kReason)
      response.fault().reason =
          fmt::format("cannot reach {}: {}", origin_of(request.url), response.fault().reason);
    return response;
  };
  if (std::string known = links_.find(file); !known.empty()) {
    Result<HttpReply> reply = follow_redirects(request_of(known), file, hop);
    const long status = reply ? reply->response.status : 0;
    const bool is_refused = status >= 400 && status != 408 && status != 416 && status != 429 &&
                            status != RangeReader::kChanged;
    if (!is_refused && reply) return reply;
    links_.forget(file, known);
    if (!reply) return reply;
  }
  const std::string own = url_of(name);
  Result<HttpReply> reply = follow_redirects(request_of(own), file, hop);
  if (reply && reply->response.is_good() && reply->url != own) links_.keep(file, reply->url);
  return reply;
}

Fault WebStore::fault_of(const HttpReply& reply, const ObjectName& name) const {
  const long status = reply.response.status;
  const std::string server = origin_of(reply.url);
  Fault fault{.file = name.url()};
  if (status == 404 || status == 410) {
    fault.reason = fmt::format("{} has no such file (status {}); check the URL", server, status);
  } else if (status == 401 || status == 403) {
    const bool has_query = !queries_->find(name.url()).empty();
    fault.reason = fmt::format(
        "{} denied access (status {}); {}", server, status,
        has_query ? "what is behind the '?' of the URL may be a signature that has expired: give a "
                    "new one"
        : anonymous_
            ? "the request was sent without a login, as the option anonymous asks"
            : "where it needs a login, write to ~/.netrc, or to the file that NETRC names: "
              "'machine HOST login NAME password PASSWORD'; a signed URL has its signature "
              "behind a '?'");
  } else {
    fault.transient = status == 408 || status == 429 || status >= 500;
    fault.reason = fmt::format("{} answered with status {}", server, status);
  }
  return fault;
}

Result<FileStamp> WebStore::stat(const ObjectName& name) const {
  Result<FileStamp> stamp = with_retries([&] { return stat_once(name); }, attempts_);
  if (!stamp) stamp.fault().file = name.url();
  return stamp;
}

// By the first byte, as servers refuse HEAD of URLs that are signed for GET.
Result<FileStamp> WebStore::stat_once(const ObjectName& name) const {
  if (name.key.empty() || name.key.ends_with('/'))
    return Fault{.reason = "expected the URL of a file, found that of a folder"};
  std::array<std::byte, 1> first{};
  Result<HttpReply> reply = ask(name, [&](const HttpRequest& hop) {
    HttpRequest request = hop;
    request.headers.emplace_back("range: bytes=0-0");
    return client_.send(request, first);
  });
  if (!reply) return std::move(reply.fault());
  const HttpResponse& response = reply->response;
  FileStamp stamp{.version = version_of(response)};
  std::optional<std::uint64_t> size;
  if (response.status == 206) {
    size = size_in_range(response);
  } else if (response.status == 416 && size_in_range(response) == std::uint64_t{0}) {
    size = 0;  // there is no first byte
  } else if (response.status == 200) {
    size = size_in(response.header("content-length"));
  } else {
    return fault_of(*reply, name);
  }
  if (auto fault = fault_of_encoding(*reply)) return *std::move(fault);
  if (!size)
    return Fault{.reason = fmt::format("{} does not say how large the file is: download it, and "
                                       "name the copy",
                                       origin_of(reply->url))};
  stamp.bytes = *size;
  if (response.status == 200 && stamp.bytes > 1) {
    const std::lock_guard lock(mutex_);
    without_ranges_.insert(name.url());
  }
  return stamp;
}

Result<void> WebStore::check_ranges(const ObjectName& name) const {
  const std::lock_guard lock(mutex_);
  if (!without_ranges_.contains(name.url())) return {};
  return Fault{.reason = reason_of_whole(name.bucket), .file = name.url()};
}

Result<void> WebStore::read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                            std::span<std::byte> into) const {
  if (into.empty()) return {};
  Result<void> result = read_range(name, stamp, offset, into);
  if (!result) {
    result.fault().file = name.url();
    result.fault().offset = offset;
  }
  return result;
}

Result<void> WebStore::read_range(const ObjectName& name, const FileStamp& stamp,
                                  std::uint64_t offset, std::span<std::byte> into) const {
  const ByteRange range{offset, into.size(), stamp.bytes};
  Result<HttpReply> reply = ask(name, [&](const HttpRequest& hop) {
    const auto make = [&](const ByteRange& part, const std::string& etag) -> Result<HttpRequest> {
      HttpRequest request = hop;
      if (!part.is_whole()) request.headers.push_back("range: " + part.header());
      if (!etag.empty()) request.headers.push_back("if-match: " + etag);
      return request;
    };
    return reader_.read(range, into, make);
  });
  if (!reply) return std::move(reply.fault());
  const HttpResponse& response = reply->response;
  const auto size =
      response.status == 206 ? size_in_range(response) : size_in(response.header("content-length"));
  const bool is_other = response.is_good() &&
                        (version_of(response) != stamp.version || (size && *size != stamp.bytes));
  if (is_other || response.status == RangeReader::kChanged || response.status == 416)
    return Fault{.reason =
                     "the file was changed after it had been opened or indexed; open it again"};
  if (!response.is_good()) return fault_of(*reply, name);
  if (auto fault = fault_of_encoding(*reply)) return *std::move(fault);
  if (response.status == 200 && !range.is_whole())
    return Fault{.reason = reason_of_whole(origin_of(reply->url))};
  if (auto fault = range.fault_of(response, origin_of(reply->url), name.url()))
    return *std::move(fault);
  return {};
}

ObjectStorePtr open_web_store(const ObjectStorageOptions& options,
                              std::shared_ptr<const WebQueries> queries) {
  return std::make_shared<WebStore>(options, std::move(queries));
}

}  // namespace penstock::storage
