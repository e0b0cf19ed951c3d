#include "src/storage/s3/s3_store.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/core/printable.hpp"
#include "src/storage/http/byte_range.hpp"
#include "src/storage/http/endpoint.hpp"
#include "src/storage/listing.hpp"
#include "src/storage/retry.hpp"

namespace penstock::storage {

namespace {

std::string query_of(const ObjectName& prefix, bool recursive, const ListingPlace& place) {
  // In the order in which they are signed.
  std::string query;
  if (!place.token.empty()) query += "continuation-token=" + percent_encode(place.token) + "&";
  if (!recursive) query += "delimiter=%2F&";
  query += "encoding-type=url&list-type=2&prefix=" + percent_encode(prefix.key);
  if (!place.after.empty()) query += "&start-after=" + percent_encode(place.after);
  return query;
}

// As GDAL calls it, since the AWS tools have flags only; and the one value that S3 takes.
constexpr const char* kPayerVariable = "AWS_REQUEST_PAYER";
constexpr const char* kPayer = "requester";

}  // namespace

S3Store::S3Store(const ObjectStorageOptions& options, const Environment& environment)
    : path_style_(options.path_style),
      anonymous_(options.anonymous),
      requester_pays_(options.requester_pays),
      client_({.connect = options.connect_timeout, .idle = options.timeout}),
      reader_(client_, is_hedged(options)),
      timeout_(options.timeout),
      attempts_(options.attempts) {
  const AwsProfile profile(options.profile, environment);
  region_ = first_of({if_given(options.region), environment("AWS_REGION"),
                      environment("AWS_DEFAULT_REGION"), profile.get("region"), "us-east-1"});
  endpoint_ = first_of({if_given(options.endpoint), environment("AWS_ENDPOINT_URL_S3"),
                        environment("AWS_ENDPOINT_URL"), profile.get("endpoint_url")});
  custom_endpoint_ = !endpoint_.empty();
  if (!custom_endpoint_) {
    endpoint_ = fmt::format("https://s3.{}.amazonaws.com{}", region_,
                            region_.starts_with("cn-") ? ".cn" : "");
  }
  endpoint_ = require_endpoint(std::move(endpoint_),
                               "the option endpoint, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL and the "
                               "profile's endpoint_url");
  if (const auto payer = environment(kPayerVariable); payer && !payer->empty()) {
    if (*payer != kPayer)
      throw Error(fmt::format("{} is expected to be '{}', found '{}'", kPayerVariable, kPayer,
                              core::printable(*payer, 100)));
    requester_pays_ = true;
  }
  if (!anonymous_) credentials_ = std::make_unique<AwsCredentialChain>(profile, environment);
}

S3Store::Address S3Store::address_of(const ObjectName& name) const {
  const std::size_t mark = endpoint_.find("://") + 3;
  const std::string scheme = endpoint_.substr(0, mark);
  Address address{.base = {}, .host = endpoint_.substr(mark), .path = "/"};
  const bool in_path =
      path_style_.value_or(custom_endpoint_ || name.bucket.find('.') != std::string::npos);
  if (in_path) {
    address.path += name.bucket + (name.key.empty() ? "" : "/");
  } else {
    address.host = name.bucket + "." + address.host;
  }
  address.path += percent_encode(name.key, true);
  address.base = scheme + address.host;
  address.host = host_of(address.base);
  return address;
}

Result<HttpRequest> S3Store::signed_request(const ObjectName& name, const Request& what) const {
  const Address address = address_of(name);
  HttpRequest request{.method = what.method,
                      .url = address.base + address.path,
                      .body = what.body,
                      .idle = what.idle};
  if (!what.query.empty()) request.url += "?" + what.query;
  AwsRequest to_sign{.method = what.method,
                     .host = address.host,
                     .path = address.path,
                     .query = what.query,
                     .headers = what.headers,
                     .body = what.body};
  if (requester_pays_) to_sign.headers.emplace_back("x-amz-request-payer", kPayer);
  for (const auto& [header, value] : to_sign.headers)
    request.headers.push_back(header + ": " + value);
  // By itself libcurl asks first whether a body may be sent, and waits a second where that is not answered.
  if (!what.body.empty()) request.headers.emplace_back("expect:");
  try {
    const auto credentials = credentials_ ? credentials_->get() : std::nullopt;
    if (credentials) {
      for (std::string& header :
           sign_aws_request(to_sign, *credentials, region_, std::chrono::system_clock::now())) {
        request.headers.push_back(std::move(header));
      }
    }
  } catch (const Error& error) {
    return Fault{.reason = error.what(), .file = name.url(), .transient = true};
  }
  return request;
}

Fault S3Store::unreached(Fault fault, const ObjectName& name) const {
  if (fault.reason != core::Interruption::kReason)
    fault.reason = fmt::format("cannot reach {}: {}", endpoint_, fault.reason);
  fault.file = name.url();
  return fault;
}

Result<HttpResponse> S3Store::send(const ObjectName& name, const Request& what) const {
  Result<HttpRequest> request = signed_request(name, what);
  if (!request) return std::move(request.fault());
  Result<HttpResponse> response = client_.send(*request);
  if (!response) return unreached(std::move(response.fault()), name);
  return response;
}

std::string S3Store::whose_request() const {
  if (anonymous_) return "the request was not signed, as the option anonymous asks";
  const std::string origin = credentials_->origin();
  if (origin.empty()) {
    return "no credentials were found, so the request was not signed: set AWS_ACCESS_KEY_ID and "
           "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE";
  }
  return "the credentials are those of " + origin;
}

std::string S3Store::remedy_of_denial(std::string_view code, std::string_view rights) const {
  if (code == "SignatureDoesNotMatch") return "check the secret access key, and the endpoint";
  if (code == "InvalidAccessKeyId") return "check the access key, and the endpoint";
  if (code == "RequestTimeTooSkewed") return "set this machine's clock";
  const bool is_signed = !anonymous_ && !credentials_->origin().empty();
  if (!requester_pays_)
    return fmt::format(
        "{}; if the bucket is \"requester pays\", {}set {}={}, and the requests are billed to the "
        "account of the credentials",
        rights, is_signed ? "" : "give credentials, and ", kPayerVariable, kPayer);
  if (!is_signed)
    return fmt::format("{}; a bucket that is \"requester pays\" takes signed requests only",
                       rights);
  return std::string(rights);
}

Fault S3Store::fault_of(const HttpResponse& response, const ObjectName& name,
                        std::string_view rights) const {
  S3Error error = parse_s3_error(response.body);
  const std::string region =
      first_of({if_given(response.header("x-amz-bucket-region")), error.region});
  const bool other_region = !region.empty() && region != region_;
  const long status = response.status;
  Fault fault{.file = name.url()};
  if (other_region && (status == 301 || status == 307 || status == 400 || status == 403)) {
    fault.reason = fmt::format("bucket '{}' is in the region {}, not in {}; set AWS_REGION={}",
                               name.bucket, region, region_, region);
  } else if (error.code == "NoSuchBucket") {
    fault.reason = fmt::format("there is no bucket '{}' at {}; check its name and the endpoint",
                               name.bucket, endpoint_);
  } else if (error.code == "NoSuchUpload") {
    fault.reason = fmt::format(
        "the upload of '{}' to the bucket '{}' at {} is not there any more: another program or a "
        "lifecycle rule of the bucket aborted it; write it again",
        name.key, name.bucket, endpoint_);
  } else if (status == 404) {
    fault.reason = fmt::format(
        "there is no object '{}' in the bucket '{}' at {}; check the path, and that the bucket may "
        "be listed",
        name.key, name.bucket, endpoint_);
  } else if (status == 403 || status == 401) {
    fault.reason = fmt::format(
        "access to '{}' in the bucket '{}' at {} was denied{}; {}; {}", name.key, name.bucket,
        endpoint_, error.code.empty() ? "" : fmt::format(" ({}: {})", error.code, error.message),
        whose_request(), remedy_of_denial(error.code, rights));
  } else {
    // What S3 itself says to repeat, what a proxy before it says while it is away, and a body that was damaged on its way.
    constexpr std::array<std::string_view, 7> kToRepeat{
        "RequestTimeout",
        "SlowDown",
        "InternalError",
        "ServiceUnavailable",
        "BadDigest",
        "IncompleteBody",
        "XAmzContentSHA256Mismatch",
    };
    fault.transient = status == 408 || status == 429 || status >= 500 ||
                      std::ranges::find(kToRepeat, error.code) != kToRepeat.end();
    fault.reason =
        fmt::format("{} answered with status {}{}", endpoint_, status,
                    error.code.empty() ? "" : fmt::format(" ({}: {})", error.code, error.message));
  }
  return fault;
}

void S3Store::list(const ObjectName& prefix, bool recursive,
                   const std::function<bool(ListedObject&&)>& each) const {
  const ObjectName bucket{prefix.bucket, ""};
  list_pages(
      prefix, {endpoint_, "an S3 server"}, attempts_,
      [&](const ListingPlace& place) -> Result<ListingPage> {
        auto response = send(bucket, {.query = query_of(prefix, recursive, place)});
        if (!response) return std::move(response.fault());
        if (!response->is_good()) return fault_of(*response, prefix);
        auto parsed = parse_s3_page(response->body);
        if (parsed) return std::move(*parsed);
        return Fault{
            .reason = fmt::format(
                "{} gave no list of objects that can be read: is it an S3 server?", endpoint_)};
      },
      each, recursive ? ListingOrder::any : ListingOrder::one_by_one);
}

Result<FileStamp> S3Store::stat(const ObjectName& name) const {
  return with_retries(
      [&]() -> Result<FileStamp> {
        auto response = send(name, {.method = "HEAD"});
        if (!response) return std::move(response.fault());
        const long status = response->status;
        if (status == 400 || status == 401 || status == 403) {
          // Answers to HEAD have no body, which is where S3 says why.
          auto told = send(name, {.headers = {{"range", "bytes=0-0"}}});
          if (told && !told->is_good()) response = std::move(told);
        }
        if (!response->is_good()) return fault_of(*response, name);
        FileStamp stamp{.version = version_of_etag(response->header("etag"))};
        const std::string length = response->header("content-length");
        if (length.empty() || length.find_first_not_of("0123456789") != length.npos) {
          return Fault{.reason = endpoint_ + " does not say how large the object is",
                       .file = name.url()};
        }
        stamp.bytes = std::strtoull(length.c_str(), nullptr, 10);
        return stamp;
      },
      attempts_);
}

Result<void> S3Store::read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                           std::span<std::byte> into) const {
  if (into.empty()) return {};
  const ByteRange range{offset, into.size(), stamp.bytes};
  const auto make = [&](const ByteRange& part, const std::string& etag) {
    Request request;  // its headers by their names
    if (!etag.empty()) request.headers.emplace_back("if-match", etag);
    if (!part.is_whole()) request.headers.emplace_back("range", part.header());
    return signed_request(name, request);
  };
  Result<HttpResponse> response = reader_.read(range, into, make);
  if (!response) {
    Fault fault = std::move(response.fault());
    if (fault.file.empty()) fault = unreached(std::move(fault), name);
    fault.offset = offset;
    return fault;
  }
  const bool changed = version_of_etag(response->header("etag")) != stamp.version;
  if (response->status == RangeReader::kChanged || response->status == 416 ||
      (response->is_good() && changed)) {
    return Fault{
        .reason = "the object was changed after it had been listed or indexed; open it again",
        .file = name.url(),
        .offset = offset};
  }
  if (!response->is_good()) {
    Fault said = fault_of(*response, name);
    said.offset = offset;
    return said;
  }
  if (auto fault = range.fault_of(*response, endpoint_, name.url())) return *std::move(fault);
  return {};
}

WritableObjectStorePtr open_object_store(const ObjectStorageOptions& options) {
  return std::make_shared<S3Store>(options);
}

}  // namespace penstock::storage

namespace penstock {
bool has_object_storage() noexcept { return true; }
}  // namespace penstock
