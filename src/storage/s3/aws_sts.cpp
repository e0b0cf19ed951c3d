#include "src/storage/s3/aws_sts.hpp"

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pugixml.hpp>
#include <unistd.h>

#include <penstock/core/error.hpp>

#include "src/core/printable.hpp"
#include "src/storage/http/client.hpp"
#include "src/storage/http/endpoint.hpp"
#include "src/storage/retry.hpp"

namespace penstock::storage {

namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

Parameters parameters_of(const AwsRole& role, const char* action) {
  Parameters all{
      {"Action", action},
      {"RoleArn", role.arn},
      {"RoleSessionName",
       role.session_name.empty() ? fmt::format("penstock-{}", ::getpid()) : role.session_name},
      {"Version", "2011-06-15"}};
  if (!role.external_id.empty()) all.emplace_back("ExternalId", role.external_id);
  if (!role.duration_s.empty()) all.emplace_back("DurationSeconds", role.duration_s);
  return all;
}

// Sorted, as they are signed.
std::string query_of(Parameters parameters) {
  std::ranges::sort(parameters);
  std::string query;
  for (const auto& [name, value] : parameters)
    query += fmt::format("{}{}={}", query.empty() ? "" : "&", name, percent_encode(value));
  return query;
}

// What is asked with may be secret: messages name the role and the service.
TemporaryCredentials credentials_from(const HttpRequest& request, const AwsRole& role,
                                      const std::string& endpoint) {
  const std::string what = fmt::format("the role '{}' from {}", role.arn, endpoint);
  const HttpClient client({});
  const auto response = with_retries([&] { return client.send(request); });
  if (!response)
    throw Error(fmt::format("cannot get AWS credentials of {}: {}", what, response.fault().reason));
  if (!response->is_good()) {
    pugi::xml_document document;
    (void)document.load_buffer(response->body.data(), response->body.size());
    const pugi::xml_node error = document.child("ErrorResponse").child("Error");
    throw Error(fmt::format("cannot get AWS credentials of {}: status {}, {} {}", what,
                            response->status, core::printable(error.child_value("Code"), 100),
                            core::printable(error.child_value("Message"), 300)));
  }
  auto found = parse_sts_credentials(response->body);
  if (!found)
    throw Error(fmt::format("cannot get AWS credentials of {}: the answer has none", what));
  return *std::move(found);
}

}  // namespace

AwsSts::AwsSts(const AwsProfile& profile, const Environment& environment) {
  region_ = first_of(
      {environment("AWS_REGION"), environment("AWS_DEFAULT_REGION"), profile.get("region")});
  endpoint_ = first_of({environment("AWS_ENDPOINT_URL_STS"), environment("AWS_ENDPOINT_URL"),
                        profile.get("endpoint_url")});
  if (endpoint_.empty())
    endpoint_ = region_.empty() ? "https://sts.amazonaws.com"
                                : fmt::format("https://sts.{}.amazonaws.com{}", region_,
                                              region_.starts_with("cn-") ? ".cn" : "");
  if (region_.empty()) region_ = "us-east-1";
  endpoint_ =
      require_endpoint(std::move(endpoint_),
                       "AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL and the profile's endpoint_url");
}

TemporaryCredentials AwsSts::assume_role(const AwsRole& role, const AwsCredentials& own) const {
  const std::string query = query_of(parameters_of(role, "AssumeRole"));
  return credentials_from(
      {.url = fmt::format("{}/?{}", endpoint_, query),
       .headers = sign_aws_request({.method = "GET",
                                    .host = host_of(endpoint_),
                                    .path = "/",
                                    .query = query,
                                    .service = "sts"},
                                   own, region_, std::chrono::system_clock::now())},
      role, endpoint_);
}

TemporaryCredentials AwsSts::assume_role_with_web_identity(const AwsRole& role,
                                                           const std::string& token_file) const {
  std::string token = read_token(
      token_file,
      fmt::format("the web identity token of the role '{}' (AWS_WEB_IDENTITY_TOKEN_FILE)",
                  role.arn));
  Parameters parameters = parameters_of(role, "AssumeRoleWithWebIdentity");
  parameters.emplace_back("WebIdentityToken", std::move(token));
  return credentials_from(
      {.method = "POST",
       .url = endpoint_ + "/",
       .headers = {"content-type: application/x-www-form-urlencoded; charset=utf-8"},
       .body = query_of(std::move(parameters))},
      role, endpoint_);
}

std::optional<TemporaryCredentials> parse_sts_credentials(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return std::nullopt;
  // <AssumeRole…Response><AssumeRole…Result><Credentials>
  const pugi::xml_node found = document.first_child().find_node(
      [](const pugi::xml_node& node) { return std::string_view(node.name()) == "Credentials"; });
  TemporaryCredentials credentials{
      {found.child_value("AccessKeyId"), found.child_value("SecretAccessKey"),
       found.child_value("SessionToken")},
      parse_aws_time(found.child_value("Expiration"))};
  if (credentials.credentials.access_key.empty() || credentials.credentials.secret_key.empty())
    return std::nullopt;
  return credentials;
}

std::chrono::system_clock::time_point parse_aws_time(const std::string& text) {
  using Clock = std::chrono::system_clock;
  constexpr auto kEnd =
      std::chrono::floor<std::chrono::seconds>(Clock::time_point::max());  // in 2262
  std::tm parts{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr)
    return Clock::time_point::max();
  const std::time_t seconds = ::timegm(&parts);
  if (seconds >= kEnd.time_since_epoch().count()) return Clock::time_point::max();
  return Clock::from_time_t(std::max<std::time_t>(seconds, 0));
}

}  // namespace penstock::storage
