// What S3Store writes: objects whole, and in parts.
#include <array>
#include <cctype>
#include <optional>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>

#include <penstock/core/error.hpp>

#include "src/storage/retry.hpp"
#include "src/storage/s3/s3_store.hpp"

namespace penstock::storage {

namespace {

constexpr const char* kMark = "x-amz-meta-penstock-upload";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// In base64. Nothing where OpenSSL allows no MD5 (FIPS): signed requests have a SHA-256 of their body, too.
std::optional<std::string> md5_of(std::string_view body) {
  constexpr std::size_t kBytes = 16;
  constexpr std::size_t kCharacters = 24;
  std::array<unsigned char, kBytes> digest{};
  if (::EVP_Digest(body.data(), body.size(), digest.data(), nullptr, ::EVP_md5(), nullptr) != 1)
    return std::nullopt;
  std::array<unsigned char, kCharacters + 1> text{};
  ::EVP_EncodeBlock(text.data(), digest.data(), kBytes);
  return std::string(reinterpret_cast<const char*>(text.data()), kCharacters);
}

std::string upload_query(const std::string& upload) { return "uploadId=" + percent_encode(upload); }

// What may stand in XML as it is; an ETag is a hash in quotes.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text)
    safe += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return safe;
}

}  // namespace

Result<HttpResponse> S3Store::send_write(const ObjectName& name, Request request) const {
  if (request.method != "DELETE")
    request.headers.emplace_back("content-type", "application/octet-stream");
  if (!request.body.empty())
    if (auto md5 = md5_of(request.body))
      request.headers.emplace_back("content-md5", *std::move(md5));
  auto response = send(name, request);
  if (!response || response->is_good()) return response;
  return fault_of(*response, name, kToWrite);
}

Result<void> S3Store::put(const ObjectName& name, std::span<const std::byte> bytes) const {
  auto response = send_write(name, {.method = "PUT", .body = text_of(bytes)});
  if (!response) return std::move(response.fault());
  return {};
}

Result<std::string> S3Store::begin_upload(const ObjectName& name, const std::string& mark) const {
  auto response =
      send_write(name, {.method = "POST", .query = "uploads=", .headers = {{kMark, mark}}});
  if (!response) return std::move(response.fault());
  std::string id = parse_s3_upload_id(response->body);
  if (!id.empty()) return id;
  return Fault{
      .reason = fmt::format("{} began no upload that can be read: is it an S3 server?", endpoint_),
      .file = name.url()};
}

Result<std::string> S3Store::put_part(const ObjectName& name, const std::string& upload, int number,
                                      std::span<const std::byte> bytes) const {
  auto response =
      send_write(name, {.method = "PUT",
                        .query = fmt::format("partNumber={}&{}", number, upload_query(upload)),
                        .body = text_of(bytes)});
  if (!response) return std::move(response.fault());
  std::string etag = response->header("etag");
  if (!etag.empty()) return etag;
  return Fault{.reason = fmt::format("{} gave no ETag for part {}", endpoint_, number),
               .file = name.url(),
               .transient = true};
}

Result<void> S3Store::complete_upload(const ObjectName& name, const std::string& upload,
                                      const std::string& mark,
                                      std::span<const std::string> etags) const {
  std::string body = "<CompleteMultipartUpload>";
  for (std::size_t k = 0; k < etags.size(); ++k)
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", k + 1,
                        escaped(etags[k]));
  body += "</CompleteMultipartUpload>";
  // S3 may take minutes for many parts; it sends a blank now and then.
  constexpr int kPatience = 10;
  auto response = send_write(name, {.method = "POST",
                                    .query = upload_query(upload),
                                    .body = body,
                                    .idle = timeout_ * kPatience});
  if (response && is_s3_completion(response->body)) return {};
  if (response) {  // which began before S3 knew
    const bool says_why = !parse_s3_error(response->body).code.empty();
    Fault fault = fault_of(*response, name, kToWrite);
    if (!says_why) fault.reason = endpoint_ + " does not say whether the upload was completed";
    fault.transient = fault.transient || !says_why;
    return fault;
  }
  Fault fault = std::move(response.fault());
  if (fault.transient) return fault;
  const auto there = send(name, {.method = "HEAD"});
  if (there && there->is_good() && there->header(kMark) == mark) return {};
  return fault;
}

Result<void> S3Store::abort_upload(const ObjectName& name, const std::string& upload) const {
  auto response = send(name, {.method = "DELETE", .query = upload_query(upload)});
  if (!response) return std::move(response.fault());
  if (response->is_good() || response->status == 404) return {};
  return fault_of(*response, name, kToWrite);
}

std::vector<OpenUpload> S3Store::list_uploads(const ObjectName& prefix) const {
  const ObjectName bucket{prefix.bucket, ""};
  std::vector<OpenUpload> found;
  std::unordered_set<std::string> seen;
  OpenUpload after;
  do {
    // In the order in which they are signed.
    std::string query = "encoding-type=url&";
    if (!after.key.empty()) query += "key-marker=" + percent_encode(after.key) + "&";
    query += "prefix=" + percent_encode(prefix.key);
    if (!after.id.empty()) query += "&upload-id-marker=" + percent_encode(after.id);
    query += "&uploads=";
    auto page = with_retries(
        [&]() -> Result<S3UploadsPage> {
          auto response = send(bucket, {.query = query});
          if (!response) return std::move(response.fault());
          if (!response->is_good()) return fault_of(*response, prefix, kToWrite);
          auto parsed = parse_s3_uploads(response->body);
          if (parsed) return std::move(*parsed);
          return Fault{.reason =
                           fmt::format("{} gave no list of uploads that can be read: is it an "
                                       "S3 server?",
                                       endpoint_)};
        },
        attempts_);
    if (!page)
      throw Error(
          fmt::format("cannot list the uploads of {}: {}", prefix.url(), page.fault().reason));
    for (OpenUpload& upload : page->uploads)
      if (upload.key.starts_with(prefix.key)) found.push_back(std::move(upload));
    after = std::move(page->next);
    if (!after.key.empty() && !seen.insert(after.key + '\n' + after.id).second)
      throw Error(
          fmt::format("cannot list the uploads of {}: {} gives the same page again: is it "
                      "an S3 server?",
                      prefix.url(), endpoint_));
  } while (!after.key.empty());
  return found;
}

}  // namespace penstock::storage
