// Which servers the requests and the token of the Hugging Face Hub go to, and what messages show of their addresses.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/prepare/prepare.hpp>

#include "src/storage/http/client.hpp"
#include "src/storage/http/endpoint.hpp"
#include "src/storage/http/redirects.hpp"
#include "src/storage/hub/hub_answers.hpp"
#include "tests/source/files.hpp"
#include "tests/storage/answering_server.hpp"

namespace penstock::storage {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;
using Server = test::AnsweringServer;

// Variables of the environment, until the end of the test.
class Variables {
 public:
  explicit Variables(std::map<std::string, std::string> values) : values_(std::move(values)) {
    for (const auto& [name, value] : values_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const auto& [name, value] : values_) ::unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::string> values_;
};

TEST(HubEndpoint, TheServerOfPreparedShardsGetsNeitherTheTokenNorTheReadsOfTheInput) {
  constexpr const char* kBearer = "Bearer hf_SecretOfTheTests";
  std::vector<std::string> asked_hub;
  std::vector<std::string> asked_s3;
  const Server hub([&](const std::string& request) {
    asked_hub.push_back(request);
    return Server::xml(request.find("/revision/") != std::string::npos
                           ? R"({"sha":"0123456789abcdef0123456789abcdef01234567"})"
                           : R"([{"type":"file","oid":"1","size":9,"path":"a.jpg"}])");
  });
  const Server s3([&](const std::string& request) {
    asked_s3.push_back(request);
    return Server::xml("<Error><Code>AccessDenied</Code></Error>", "403 Forbidden");
  });
  const test::TemporaryFolder folder;
  const Variables variables({{"HF_ENDPOINT", hub.endpoint()},
                             {"HF_TOKEN", "hf_SecretOfTheTests"},
                             {"AWS_ACCESS_KEY_ID", "testing"},
                             {"AWS_SECRET_ACCESS_KEY", "testing"},
                             {"PENSTOCK_CACHE", folder.path().string()},
                             {"no_proxy", "127.0.0.1"}});
  for (const char* const region : {"", "eu-west-1"}) {
    asked_hub.clear();
    asked_s3.clear();
    PrepareOptions options{.attempts = 1};
    options.storage = {.endpoint = s3.endpoint(), .region = region, .attempts = 1};
    EXPECT_THAT(
        [&] { (void)prepare_shards("hf://datasets/o/private", "s3://bucket/out", options); },
        ThrowsMessage<Error>(HasSubstr("s3://bucket")))
        << region;
    EXPECT_THAT(asked_hub, AllOf(Not(IsEmpty()), Each(HasSubstr(kBearer)))) << region;
    EXPECT_THAT(asked_s3, AllOf(Not(IsEmpty()), Each(HasSubstr("AWS4-HMAC-SHA256")),
                                Each(Not(HasSubstr("hf_"))), Each(Not(HasSubstr("/api/")))))
        << region;
    // Nothing is written to S3: what is said of it is a mistake.
    EXPECT_THAT(
        [&] {
          (void)prepare_shards("hf://datasets/o/private", (folder.path() / "out").string(),
                               options);
        },
        ThrowsMessage<std::invalid_argument>(HasSubstr("the option endpoint")))
        << region;
  }
}

TEST(HubEndpoint, ARedirectToHttpIsKnownHoweverItIsWritten) {
  EXPECT_TRUE(is_weaker("https://h/a", "http://h/a"));
  EXPECT_TRUE(is_weaker("https://h/a", "HTTP://h/a"));
  EXPECT_TRUE(is_weaker("HTTPS://h/a", "hTTp://h/a"));
  EXPECT_FALSE(is_weaker("https://h/a", "HTTPS://i/a"));
  EXPECT_FALSE(is_weaker("http://h/a", "http://i/a"));
  EXPECT_FALSE(is_weaker("http://h/a", "https://i/a"));
}

TEST(HubEndpoint, ErrorsShowNoPasswordOfAnEndpoint) {
  for (const char* const endpoint :
       {"https://user:secret@host", "https://user:se@cret@host", "user:secret@host",
        "ftp://user:secret@host", "https://secret@host/a/"}) {
    const auto shown =
        AllOf(HasSubstr("***@host"), HasSubstr("X"), HasSubstr("without a user name"),
              Not(HasSubstr("user:")), Not(HasSubstr("secret")), Not(HasSubstr("cret@")));
    EXPECT_THAT([&] { (void)require_endpoint(endpoint, "X"); }, ThrowsMessage<Error>(shown))
        << endpoint;
    EXPECT_THAT([&] { (void)require_endpoint_or_path(endpoint, "X", "https://h"); },
                ThrowsMessage<Error>(shown))
        << endpoint;
  }
  EXPECT_THAT([] { (void)require_endpoint("https://host?a", "X"); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("found 'https://host?a'"), Not(HasSubstr("user name")))));
}

TEST(HubEndpoint, AnEmptyVariableNamesNoCertificates) {
  const test::TemporaryFolder folder;
  const std::string none = (folder.path() / "none.pem").string();
  const Variables variables({{"PENSTOCK_TEST_FIRST_CA", ""}, {"PENSTOCK_TEST_SECOND_CA", none}});
  const Server server([](const std::string&) { return Server::xml(""); });
  const HttpClient client({}, {"PENSTOCK_TEST_FIRST_CA", "PENSTOCK_TEST_SECOND_CA"});
  const auto response =
      client.send({.url = "https" + server.endpoint().substr(4) + "/", .bypass_proxy = true});
  ASSERT_FALSE(response);
  EXPECT_THAT(response.fault().reason, HasSubstr(none));
}

}  // namespace
}  // namespace penstock::storage
