#include "src/storage/s3/aws_signature.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <span>

#include <fmt/format.h>
#include <openssl/sha.h>

#include <penstock/core/error.hpp>

#include "src/core/hmac_sha256.hpp"

namespace penstock::storage {

namespace {

using Hash = core::Sha256;

std::string hex(const Hash& hash) { return fmt::format("{:02x}", fmt::join(hash, "")); }

std::string_view text_of(const Hash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

Hash sha256(std::string_view text) {
  Hash hash;
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  return hash;
}

std::string utc(std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

std::vector<std::string> sign_aws_request(const AwsRequest& request,
                                          const AwsCredentials& credentials,
                                          std::string_view region,
                                          std::chrono::system_clock::time_point now) {
  const std::string time = utc(now);
  const std::string day = time.substr(0, 8);
  const std::string body_hash = hex(sha256(request.body));
  std::vector<std::pair<std::string, std::string>> own{{"x-amz-content-sha256", body_hash},
                                                       {"x-amz-date", time}};
  if (!credentials.session_token.empty()) {
    own.emplace_back("x-amz-security-token", credentials.session_token);
  }
  auto all = request.headers;
  all.insert(all.end(), own.begin(), own.end());
  all.emplace_back("host", request.host);
  std::sort(all.begin(), all.end());

  std::string names;
  std::string lines;
  for (const auto& [name, value] : all) {
    names += (names.empty() ? "" : ";") + name;
    lines += fmt::format("{}:{}\n", name, value);
  }
  const std::string canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                                            request.query, lines, names, body_hash);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, region, request.service);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, hex(sha256(canonical)));
  Hash key = core::hmac_sha256("AWS4" + credentials.secret_key, day);
  for (const std::string_view part :
       {region, std::string_view(request.service), std::string_view("aws4_request")}) {
    key = core::hmac_sha256(text_of(key), part);
  }
  std::vector<std::string> headers;
  for (const auto& [name, value] : own) headers.push_back(fmt::format("{}: {}", name, value));
  headers.push_back(fmt::format(
      "authorization: AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
      credentials.access_key, scope, names, hex(core::hmac_sha256(text_of(key), to_sign))));
  return headers;
}

}  // namespace penstock::storage
