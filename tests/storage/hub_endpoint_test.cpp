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
