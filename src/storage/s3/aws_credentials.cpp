#include "src/storage/s3/aws_credentials.hpp"

#include <ctime>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <penstock/core/error.hpp>

#include "src/core/lower_case.hpp"
#include "src/storage/retry.hpp"
#include "src/storage/s3/http.hpp"

namespace penstock::storage {

namespace {

using namespace std::chrono_literals;

// These are a hop away, or not there at all.
constexpr HttpTimeouts kNear{.connect = 1000ms, .idle = 5000ms};

std::string require_answer(const HttpClient& client, const HttpRequest& request) {
  auto response = with_retries([&] { return client.send(request); });
  if (!response) {
    throw Error(fmt::format("cannot get AWS credentials from {}: {}", request.url,
                            response.fault().reason));
  }
  if (!response->is_good()) {
    throw Error(fmt::format("cannot get AWS credentials from {}: status {}, {}", request.url,
                            response->status, response->body.substr(0, 200)));
  }
  return std::move(response->body);
}

}  // namespace

AwsCredentialChain::AwsCredentialChain(const AwsProfile& profile, Environment environment)
    : environment_(std::move(environment)) {
  const auto take = [&](std::optional<std::string> key, std::optional<std::string> secret,
                        std::optional<std::string> token, const std::string& origin) {
    if (!key && !secret) return;
    if (!key || !secret) {
      throw Error(fmt::format("{} gives {}, but no {}; give both, or neither", origin,
                              key ? "an access key" : "a secret access key",
                              key ? "secret access key" : "access key"));
    }
    credentials_ = AwsCredentials{std::move(*key), std::move(*secret), token.value_or("")};
    origin_ = origin;
  };
  take(environment_("AWS_ACCESS_KEY_ID"), environment_("AWS_SECRET_ACCESS_KEY"),
       environment_("AWS_SESSION_TOKEN"), "the environment");
  if (!credentials_) {
    take(profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"),
         profile.get("aws_session_token"), fmt::format("the profile '{}'", profile.name()));
  }
}

std::string AwsCredentialChain::origin() const {
  const std::lock_guard lock(mutex_);
  return origin_;
}

std::optional<AwsCredentials> AwsCredentialChain::get() {
  const std::lock_guard lock(mutex_);
  if (credentials_ && !expires_) return credentials_;
  const Time now = std::chrono::system_clock::now();
  if (credentials_ && now + 5min < *expires_) return credentials_;
  if (looked_ && !credentials_) return std::nullopt;
  looked_ = true;
  try {
    std::string origin = "the container's endpoint";
    std::optional<Temporary> found = from_container();
    if (!found) {
      origin = "the EC2 instance's role";
      found = from_instance();
    }
    if (!found) return std::nullopt;
    origin_ = std::move(origin);
    credentials_ = std::move(found->credentials);
    expires_ = found->expires;
  } catch (const Error&) {
    // The old ones still do until they end.
    if (!credentials_ || now >= *expires_) throw;
  }
  return credentials_;
}

std::optional<AwsCredentialChain::Temporary> AwsCredentialChain::from_container() const {
  const auto relative = environment_("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const auto full = environment_("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!relative && !full) return std::nullopt;
  HttpRequest request{.url = relative ? "http://169.254.170.2" + *relative : *full,
                      .past_proxies = true};
  std::string token = environment_("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  if (const auto path = environment_("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    std::ifstream file(*path, std::ios::binary);
    token.assign(std::istreambuf_iterator<char>(file), {});
    while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  }
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  return parse(require_answer(HttpClient(kNear), request), request.url);
}

std::optional<AwsCredentialChain::Temporary> AwsCredentialChain::from_instance() const {
  if (core::lower_case(environment_("AWS_EC2_METADATA_DISABLED").value_or("")) == "true") {
    return std::nullopt;
  }
  std::string base =
      environment_("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254");
  while (base.ends_with('/')) base.pop_back();
  const HttpClient client(kNear);
  auto token = client.send({.method = "PUT",
                            .url = base + "/latest/api/token",
                            .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"},
                            .past_proxies = true});
  if (!token || !token->is_good()) return std::nullopt;  // no EC2 instance
  HttpRequest request{.url = base + "/latest/meta-data/iam/security-credentials/",
                      .headers = {"X-aws-ec2-metadata-token: " + token->body},
                      .past_proxies = true};
  auto role = client.send(request);
  if (!role || !role->is_good() || role->body.empty()) return std::nullopt;  // it has no role
  request.url += role->body.substr(0, role->body.find('\n'));
  return parse(require_answer(client, request), request.url);
}

AwsCredentialChain::Temporary AwsCredentialChain::parse(const std::string& json,
                                                        const std::string& from) {
  const auto answer = nlohmann::json::parse(json, nullptr, false);
  const auto text = [&](const char* key) {
    const auto found = answer.is_object() ? answer.find(key) : answer.end();
    return answer.is_object() && found != answer.end() && found->is_string()
               ? found->get<std::string>()
               : std::string();
  };
  Temporary temporary{{text("AccessKeyId"), text("SecretAccessKey"), text("Token")}, Time::max()};
  if (temporary.credentials.access_key.empty() || temporary.credentials.secret_key.empty()) {
    throw Error(
        fmt::format("{} gave no AWS credentials: expected AccessKeyId and SecretAccessKey", from));
  }
  std::tm parts{};
  if (::strptime(text("Expiration").c_str(), "%Y-%m-%dT%H:%M:%S", &parts) != nullptr) {
    temporary.expires = std::chrono::system_clock::from_time_t(::timegm(&parts));
  }
  return temporary;
}

}  // namespace penstock::storage
