#include "src/storage/s3/aws_credentials.hpp"

#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/core/lower_case.hpp"
#include "src/core/printable.hpp"
#include "src/storage/http/client.hpp"
#include "src/storage/local/command.hpp"
#include "src/storage/retry.hpp"

namespace penstock::storage {

namespace {

using namespace std::chrono_literals;
using WallClock = std::chrono::system_clock;

// These are a hop away, or not there at all.
constexpr HttpTimeouts kNear{.connect = 1000ms, .idle = 5000ms};
// It may ask for a password.
constexpr auto kProgram = 60s;

constexpr std::string_view kInstead =
    "; check that address, or give keys: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or, where "
    "the program names a profile, "
    "aws_access_key_id and aws_secret_access_key in that";

std::string require_answer(const HttpClient& client, const HttpRequest& request) {
  auto response = with_retries([&] { return client.send(request); });
  if (!response) {
    throw Error(fmt::format(
        "cannot get AWS credentials from {}: {}{}", request.url, response.fault().reason,
        response.fault().reason == core::Interruption::kReason ? "" : kInstead));
  }
  if (!response->is_good()) {
    throw Error(fmt::format("cannot get AWS credentials from {}: status {}, {}{}", request.url,
                            response->status, core::printable(response->body, 200), kInstead));
  }
  return std::move(response->body);
}

/// As the endpoints and programs of AWS write them; these call the token by two names.
TemporaryCredentials parse(const std::string& json, const std::string& from) {
  const auto answer = nlohmann::json::parse(json, nullptr, false);
  const auto text = [&](const char* key) {
    const auto found = answer.is_object() ? answer.find(key) : answer.end();
    return answer.is_object() && found != answer.end() && found->is_string()
               ? found->get<std::string>()
               : std::string();
  };
  std::string token = text("Token");
  if (token.empty()) token = text("SessionToken");
  TemporaryCredentials temporary{{text("AccessKeyId"), text("SecretAccessKey"), std::move(token)},
                                 parse_aws_time(text("Expiration"))};
  if (temporary.credentials.access_key.empty() || temporary.credentials.secret_key.empty()) {
    throw Error(
        fmt::format("{} gave no AWS credentials: expected AccessKeyId and SecretAccessKey", from));
  }
  return temporary;
}

std::optional<TemporaryCredentials> keys_from(std::optional<std::string> key,
                                              std::optional<std::string> secret,
                                              std::optional<std::string> token,
                                              const std::string& origin) {
  if (!key && !secret) return std::nullopt;
  if (!key || !secret) {
    throw Error(fmt::format("{} gives {}, but no {}; give both, or neither", origin,
                            key ? "an access key" : "a secret access key",
                            key ? "secret access key" : "access key"));
  }
  return TemporaryCredentials{{std::move(*key), std::move(*secret), token.value_or("")}};
}

std::optional<TemporaryCredentials> keys_of(const Environment& environment) {
  return keys_from(environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
                   environment("AWS_SESSION_TOKEN"), "the environment");
}
std::optional<TemporaryCredentials> keys_of(const AwsProfile& profile) {
  return keys_from(profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"),
                   profile.get("aws_session_token"), profile.to_string());
}

std::optional<TemporaryCredentials> from_container(const Environment& environment) {
  const auto relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const auto full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!relative && !full) return std::nullopt;
  HttpRequest request{.url = relative ? "http://169.254.170.2" + *relative : *full,
                      .bypass_proxy = true};
  std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  if (const auto path = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))
    token = read_token(
        *path, "the token of the container's endpoint (AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE)");
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  return parse(require_answer(HttpClient(kNear), request), request.url);
}

// It may have a role, which it cannot tell now.
void require_not_busy(const HttpResponse& response, const std::string& endpoint) {
  constexpr long kTooMany = 429;
  constexpr long kServers = 500;
  if (response.status == kTooMany || response.status >= kServers)
    throw Error(fmt::format("cannot get AWS credentials of the EC2 instance from {}: status {}",
                            endpoint, response.status));
}

std::optional<TemporaryCredentials> from_instance(const Environment& environment) {
  if (core::lower_case(environment("AWS_EC2_METADATA_DISABLED").value_or("")) == "true") {
    return std::nullopt;
  }
  std::string base =
      environment("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254");
  while (base.ends_with('/')) base.pop_back();
  const HttpClient client(kNear);
  auto token = client.send({.method = "PUT",
                            .url = base + "/latest/api/token",
                            .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"},
                            .bypass_proxy = true});
  if (!token) return std::nullopt;  // no EC2 instance
  require_not_busy(*token, base);
  if (!token->is_good()) return std::nullopt;
  HttpRequest request{.url = base + "/latest/meta-data/iam/security-credentials/",
                      .headers = {"X-aws-ec2-metadata-token: " + token->body},
                      .bypass_proxy = true};
  auto role = client.send(request);
  if (role) require_not_busy(*role, base);
  if (!role || !role->is_good() || role->body.empty()) return std::nullopt;  // it has no role
  request.url += role->body.substr(0, role->body.find('\n'));
  return parse(require_answer(client, request), request.url);
}

}  // namespace

AwsCredentialChain::AwsCredentialChain(const AwsProfile& profile, Environment environment)
    : environment_(std::move(environment)), fetch_(choose(profile)) {}

std::string AwsCredentialChain::origin() const {
  const std::lock_guard lock(mutex_);
  return found_ ? found_->origin : "";
}

// One thread fetches; the others wait for it, as long as their own work is wanted.
std::optional<AwsCredentials> AwsCredentialChain::get() {
  constexpr auto kLook = 20ms;
  std::unique_lock lock(mutex_);
  const auto are_fresh = [&] {
    return found_ && WallClock::now() < found_->credentials.expires - 5min;
  };
  while (is_fetching_ && !are_fresh()) {
    if (core::Interruption::is_requested())
      throw Error(fmt::format("cannot get AWS credentials: {}", core::Interruption::kReason));
    fetched_.wait_for(lock, kLook);
  }
  if (are_fresh()) return found_->credentials.credentials;
  if (looked_ && !found_) return std::nullopt;
  is_fetching_ = true;
  lock.unlock();
  std::optional<Found> found;
  std::exception_ptr error;
  try {
    found = fetch_();
    // What was not waited for may be there.
    if (!found && core::Interruption::is_requested())
      throw Error(fmt::format("cannot get AWS credentials: {}", core::Interruption::kReason));
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  is_fetching_ = false;
  fetched_.notify_all();
  // The old ones still do until they end.
  if (error && (!found_ || WallClock::now() >= found_->credentials.expires))
    std::rethrow_exception(error);
  looked_ = true;
  if (found) found_ = std::move(found);
  if (!found_) return std::nullopt;
  return found_->credentials.credentials;
}

AwsCredentialChain::Fetch AwsCredentialChain::choose(const AwsProfile& profile) const {
  const auto always = [](TemporaryCredentials keys, std::string origin) -> Fetch {
    return [found = Found{std::move(keys), std::move(origin)}] { return found; };
  };
  // A profile that the program names is asked alone.
  const Environment environment =
      profile.is_named() ? [](const char*) { return std::optional<std::string>(); } : environment_;
  if (auto keys = keys_of(environment)) return always(*std::move(keys), "the environment");
  profile.require_files();
  if (environment("AWS_ROLE_ARN") && !environment("AWS_WEB_IDENTITY_TOKEN_FILE"))
    throw Error(
        fmt::format("AWS_ROLE_ARN asks for the role '{}', and there is no token for it: set "
                    "AWS_WEB_IDENTITY_TOKEN_FILE too, or unset AWS_ROLE_ARN",
                    *environment("AWS_ROLE_ARN")));
  if (profile.get("role_arn") && !profile.get("web_identity_token_file")) return role_of(profile);
  for (const auto& [arn, token_file, session, origin] :
       {std::tuple{environment("AWS_ROLE_ARN"), environment("AWS_WEB_IDENTITY_TOKEN_FILE"),
                   environment("AWS_ROLE_SESSION_NAME"), std::string("the web identity")},
        {profile.get("role_arn"), profile.get("web_identity_token_file"),
         profile.get("role_session_name"),
         fmt::format("the web identity of {}", profile.to_string())}}) {
    if (!token_file) continue;
    if (!arn)
      throw Error(fmt::format("{} has a token, '{}', and no role: set AWS_ROLE_ARN, or role_arn",
                              origin, *token_file));
    return [sts = AwsSts(profile, environment_), role = AwsRole{*arn, session.value_or("")},
            token_file = *token_file, origin = origin] {
      return Found{sts.assume_role_with_web_identity(role, token_file), origin};
    };
  }
  for (const char* key : {"sso_session", "sso_start_url", "sso_account_id"})
    if (profile.get(key))
      throw Error(fmt::format(
          "{} signs in by single sign-on ({}), which is not supported: run 'aws sso login "
          "--profile "
          "{}', then 'eval \"$(aws configure export-credentials --profile {} --format env)\"'",
          profile.to_string(), key, profile.name(), profile.name()));
  if (auto keys = keys_of(profile)) return always(*std::move(keys), profile.to_string());
  if (const auto command = profile.get("credential_process")) {
    const std::string origin = fmt::format("the credential_process of {}", profile.to_string());
    return [command = *command, origin] {
      return Found{parse(output_of_command(command, origin, kProgram), origin), origin};
    };
  }
  return [environment = environment_]() -> std::optional<Found> {
    if (auto found = from_container(environment))
      return Found{*std::move(found), "the container's endpoint"};
    if (auto found = from_instance(environment))
      return Found{*std::move(found), "the EC2 instance's role"};
    return std::nullopt;
  };
}

// A role that the profile's owner takes on, with the credentials of another profile, or of the machine.
AwsCredentialChain::Fetch AwsCredentialChain::role_of(const AwsProfile& profile) const {
  const AwsRole role{.arn = profile.get("role_arn").value(),
                     .session_name = profile.get("role_session_name").value_or(""),
                     .external_id = profile.get("external_id").value_or(""),
                     .duration_s = profile.get("duration_seconds").value_or("")};
  const std::string origin = fmt::format("the role of {}", profile.to_string());
  if (profile.get("mfa_serial"))
    throw Error(
        fmt::format("{} asks for a second factor (mfa_serial), which is not supported: run 'eval "
                    "\"$(aws configure export-credentials --profile {} --format env)\"'",
                    origin, profile.name()));
  std::function<std::optional<TemporaryCredentials>()> own;
  const auto from = profile.get("source_profile");
  const auto place = profile.get("credential_source");
  if (from == profile.name()) {
    own = [keys = keys_of(profile)] { return keys; };
  } else if (from) {
    const AwsProfile other(*from, environment_);
    if (other.get("source_profile") && other.get("source_profile") != other.name())
      throw Error(
          fmt::format("{} has its credentials from {}, which has its own from a third: give "
                      "it keys, or the profile that has them",
                      origin, other.to_string()));
    // That profile's own, and not what else this machine has.
    const Environment hidden = [environment =
                                    environment_](const char* name) -> std::optional<std::string> {
      const std::string_view asked(name);
      if (asked == "AWS_EC2_METADATA_DISABLED") return "true";
      if (asked.starts_with("AWS_CONTAINER")) return {};
      return environment(name);
    };
    own = [chain = std::make_shared<AwsCredentialChain>(
               other, hidden)]() -> std::optional<TemporaryCredentials> {
      auto keys = chain->get();
      if (!keys) return std::nullopt;
      return TemporaryCredentials{*std::move(keys)};
    };
  } else if (place == "Ec2InstanceMetadata") {
    own = [environment = environment_] { return from_instance(environment); };
  } else if (place == "EcsContainer") {
    own = [environment = environment_] { return from_container(environment); };
  } else {
    throw Error(fmt::format(
        "{} needs a source_profile, or a credential_source that is Ec2InstanceMetadata or "
        "EcsContainer, found '{}'",
        origin, place.value_or("")));
  }
  return [sts = AwsSts(profile, environment_), role, own, origin] {
    const auto keys = own();
    if (!keys)
      throw Error(
          fmt::format("{} cannot be assumed: its source_profile or credential_source has "
                      "no credentials",
                      origin));
    return Found{sts.assume_role(role, keys->credentials), origin};
  };
}

}  // namespace penstock::storage
