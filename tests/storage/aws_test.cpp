// What goes to an S3 server and comes from it, without one.
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <stop_token>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/source/shards.hpp>

#include "src/core/interruption.hpp"
#include "src/storage/http/endpoint.hpp"
#include "src/storage/local/command.hpp"
#include "src/storage/local/file.hpp"
#include "src/storage/s3/aws_credentials.hpp"
#include "src/storage/s3/aws_profile.hpp"
#include "src/storage/s3/aws_signature.hpp"
#include "src/storage/s3/aws_sts.hpp"
#include "src/storage/s3/s3_responses.hpp"
#include "tests/source/files.hpp"

namespace penstock::storage {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

// The examples in Amazon's "Authenticating Requests: Using the Authorization Header".
TEST(AwsSignature, IsAmazonsOwnForItsExamples) {
  const AwsCredentials credentials{"AKIAIOSFODNN7EXAMPLE",
                                   "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  const auto midnight = std::chrono::system_clock::from_time_t(1369353600);  // 2013-05-24
  const auto signature = [&](AwsRequest request) {
    request.host = "examplebucket.s3.amazonaws.com";
    return sign_aws_request(request, credentials, "us-east-1", midnight).back();
  };
  EXPECT_THAT(
      signature({"GET", "", "/test.txt", "", {{"range", "bytes=0-9"}}}),
      EndsWith("Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
  EXPECT_THAT(
      signature({"GET", "", "/", "max-keys=2&prefix=J", {}}),
      EndsWith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
  EXPECT_THAT(
      signature({"GET", "", "/", "lifecycle=", {}}),
      EndsWith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

// The same page's PUT, whose body is signed, too.
TEST(AwsSignature, CoversTheBody) {
  const auto headers =
      sign_aws_request({.method = "PUT",
                        .host = "examplebucket.s3.amazonaws.com",
                        .path = "/test%24file.text",
                        .query = "",
                        .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                    {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                        .body = "Welcome to Amazon S3."},
                       {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
                       "us-east-1", std::chrono::system_clock::from_time_t(1369353600));
  EXPECT_THAT(headers,
              Contains("x-amz-content-sha256: "
                       "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"));
  EXPECT_THAT(
      headers.back(),
      EndsWith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(AwsSignature, CoversTheTokenOfTemporaryCredentials) {
  const auto headers = sign_aws_request({"GET", "h", "/", "", {}}, {"a", "b", "token"}, "r", {});
  EXPECT_THAT(headers, Contains("x-amz-security-token: token"));
  EXPECT_THAT(headers.back(),
              HasSubstr("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token"));
}

TEST(AwsSignature, EncodesWhatIsNotPlain) {
  EXPECT_EQ(percent_encode("a b/\xC3\xA4=~", true), "a%20b/%C3%A4%3D~");
  EXPECT_EQ(percent_encode("a/b+"), "a%2Fb%2B");
}

class AwsFiles : public ::testing::Test {
 protected:
  Environment environment() {
    return [this](const char* name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
  }
  std::optional<AwsCredentials> credentials() {
    return AwsCredentialChain(AwsProfile("", environment()), environment()).get();
  }

  test::TemporaryFolder home_;
  std::map<std::string, std::string> variables_{{"HOME", home_.path().string()},
                                                {"AWS_EC2_METADATA_DISABLED", "true"}};
};

TEST_F(AwsFiles, TheEnvironmentComesBeforeTheProfile) {
  home_.write(".aws/credentials",
              "[default]\naws_access_key_id = file\naws_secret_access_key=secret\n"
              "# a comment\n[other]\naws_access_key_id=o\naws_secret_access_key=p\n"
              "aws_session_token=q\n");
  home_.write(".aws/config",
              "[default]\nregion = eu-west-1\ns3 =\n  region = nested\n"
              "[profile other]\nendpoint_url=http://there\n");
  EXPECT_EQ(credentials()->access_key, "file");
  EXPECT_EQ(AwsProfile("", environment()).get("region"), "eu-west-1");
  variables_["AWS_PROFILE"] = "other";
  EXPECT_EQ(credentials()->session_token, "q");
  EXPECT_EQ(AwsProfile("", environment()).get("endpoint_url"), "http://there");
  EXPECT_EQ(AwsProfile("", environment()).get("region"), std::nullopt);
  variables_["AWS_ACCESS_KEY_ID"] = "variable";
  variables_["AWS_SECRET_ACCESS_KEY"] = "s";
  EXPECT_EQ(credentials()->access_key, "variable");
}

TEST_F(AwsFiles, WhereThereAreNoneTheyAreNobodys) {
  for (const char* disabled : {"true", "TRUE"}) {
    variables_["AWS_EC2_METADATA_DISABLED"] = disabled;
    variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://127.0.0.1:9";  // no server there
    AwsCredentialChain chain(AwsProfile("", environment()), environment());
    EXPECT_EQ(chain.get(), std::nullopt);
    EXPECT_EQ(chain.origin(), "");
  }
}

TEST_F(AwsFiles, HalfAKeyAndAnUnknownProfileAreErrors) {
  EXPECT_EQ(credentials(), std::nullopt);
  variables_["AWS_ACCESS_KEY_ID"] = "alone";
  EXPECT_THAT([&] { (void)credentials(); },
              ThrowsMessage<Error>(HasSubstr("but no secret access key; give both")));
  variables_["AWS_PROFILE"] = "nobody";
  EXPECT_THAT([&] { (void)credentials(); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("no AWS profile 'nobody'"), HasSubstr(home_.path().string()))));
}

// What a profile asks for is never replaced by something else that the machine has.
TEST_F(AwsFiles, WhatIsNotSupportedIsRefusedByName) {
  const std::string keys = "aws_access_key_id = k\naws_secret_access_key = s\n";
  const auto refusal = [&](const std::string& config) -> std::string {
    home_.write(".aws/config", config);
    try {
      const auto found = credentials();
      return found ? "key " + found->access_key : "none";
    } catch (const Error& error) {
      return error.what();
    }
  };
  for (const char* sso : {"sso_session = work\n", "sso_start_url = https://x\n"})
    for (const std::string& also : {std::string(), keys})
      EXPECT_THAT(refusal(std::string("[default]\n") + sso + also),
                  AllOf(HasSubstr("the profile 'default' signs in by single sign-on"),
                        HasSubstr("aws sso login --profile default")));
  const std::string role = "[default]\nrole_arn = arn:aws:iam::123456789012:role/r\n";
  EXPECT_THAT(refusal(role), HasSubstr("needs a source_profile, or a credential_source"));
  EXPECT_THAT(refusal(role + keys), HasSubstr("needs a source_profile, or a credential_source"));
  EXPECT_THAT(refusal(role + "source_profile = base\nmfa_serial = x\n"),
              HasSubstr("asks for a second factor (mfa_serial)"));
  EXPECT_THAT(refusal(role + "source_profile = base\n"), HasSubstr("no AWS profile 'base'"));
  EXPECT_THAT(refusal(role + "source_profile = base\n[profile base]\nregion = x\n"),
              HasSubstr("its source_profile or credential_source has no credentials"));
  EXPECT_THAT(refusal(role + "source_profile = base\n[profile base]\nsource_profile = third\n"),
              HasSubstr("has its own from a third"));
  EXPECT_THAT(refusal("[default]\nweb_identity_token_file = /nowhere\n"),
              HasSubstr("has a token, '/nowhere', and no role"));
  EXPECT_THAT(refusal(role + "web_identity_token_file = /nowhere\n"),
              HasSubstr("(AWS_WEB_IDENTITY_TOKEN_FILE) '/nowhere' cannot be read"));
  variables_["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/nowhere";
  EXPECT_THAT(refusal("[default]\n" + keys), HasSubstr("set AWS_ROLE_ARN"));
}

TEST_F(AwsFiles, TheDefaultProfileMayBeCalledAProfile) {
  home_.write(".aws/config",
              "[profile default]\naws_access_key_id = k\naws_secret_access_key = s\n");
  ASSERT_TRUE(credentials());
  EXPECT_EQ(credentials()->access_key, "k");
  home_.write(".aws/config",
              "[default]\naws_access_key_id = plain\naws_secret_access_key = s\n"
              "[profile default]\nrole_arn = arn:aws:iam::123456789012:role/r\n");
  EXPECT_THAT([&] { (void)credentials(); },
              ThrowsMessage<Error>(HasSubstr("needs a source_profile")));
}

TEST_F(AwsFiles, WhatCannotBeReadIsRefusedByName) {
  const auto refusal = [&]() -> std::string {
    try {
      return credentials() ? "found" : "none";
    } catch (const Error& error) {
      return error.what();
    }
  };
  for (const char* name : {".aws/config", ".aws/credentials"}) {
    const auto path = home_ / name;
    std::filesystem::create_directories(path);  // not even root reads a folder
    EXPECT_THAT(refusal(), AllOf(HasSubstr(path.string()), HasSubstr("found a folder"))) << name;
    std::filesystem::remove_all(path);
  }
  home_.write(".aws/config", std::string(2 << 20, '#'));
  EXPECT_THAT(refusal(), HasSubstr("more than"));
  std::filesystem::remove_all(home_ / ".aws");
  for (const char* variable : {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}) {
    variables_[variable] = (home_ / "missing").string();
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr(variable), HasSubstr("missing"), HasSubstr("/dev/null")));
    variables_[variable] = "/dev/zero";
    EXPECT_THAT(refusal(), AllOf(HasSubstr("/dev/zero"), HasSubstr("more than")));
    variables_[variable] = "/dev/null";
    EXPECT_EQ(refusal(), "none");
  }
  // They are not needed where the environment has the keys.
  variables_["AWS_CONFIG_FILE"] = (home_ / "missing").string();
  variables_["AWS_ACCESS_KEY_ID"] = variables_["AWS_SECRET_ACCESS_KEY"] = "variable";
  EXPECT_EQ(refusal(), "found");
  variables_["AWS_PROFILE"] = "other";
  EXPECT_THAT(refusal(), HasSubstr("AWS_CONFIG_FILE"));
}

TEST_F(AwsFiles, AProfileThatTheProgramNamesComesBeforeTheEnvironment) {
  home_.write(".aws/config",
              "[profile named]\naws_access_key_id = own\naws_secret_access_key = s\n"
              "[profile role]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = none\n"
              "[profile none]\nregion = x\n");
  variables_["AWS_ACCESS_KEY_ID"] = variables_["AWS_SECRET_ACCESS_KEY"] = "variable";
  variables_["AWS_ROLE_ARN"] = "arn:aws:iam::123456789012:role/pod";
  variables_["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/nowhere";
  const auto key = [&](const char* name) {
    return AwsCredentialChain(AwsProfile(name, environment()), environment()).get()->access_key;
  };
  EXPECT_EQ(key("named"), "own");
  EXPECT_EQ(key(""), "variable");
  // Nor are the variables those of a profile that another has its credentials from.
  EXPECT_THAT([&] { (void)key("role"); }, ThrowsMessage<Error>(HasSubstr("has no credentials")));
}

TEST_F(AwsFiles, ARoleInTheEnvironmentWithoutATokenIsRefused) {
  variables_["AWS_ROLE_ARN"] = "arn:aws:iam::123456789012:role/pod";
  EXPECT_THAT([&] { (void)credentials(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("AWS_ROLE_ARN"), HasSubstr("role/pod"),
                                         HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE"))));
}

TEST_F(AwsFiles, AContainersTokenThatCannotBeReadIsRefusedByName) {
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1:9";
  variables_["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = "/nowhere";
  EXPECT_THAT([&] { (void)credentials(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
                                         HasSubstr("/nowhere"))));
}

TEST_F(AwsFiles, ACredentialProcessIsRun) {
  const auto run = [&](const std::string& command) {
    home_.write(".aws/config", "[default]\ncredential_process = " + command + "\n");
    return credentials();
  };
  const auto found = run(
      R"(echo '{"Version": 1, "AccessKeyId": "k", "SecretAccessKey": "s", "SessionToken": "t"}')");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->access_key + found->secret_key + found->session_token, "kst");
  EXPECT_THAT([&] { (void)run("exit 3"); },
              ThrowsMessage<Error>(
                  HasSubstr("credential_process of the profile 'default' failed with status 3")));
  EXPECT_THAT([&] { (void)run("echo {}"); },
              ThrowsMessage<Error>(HasSubstr("gave no AWS credentials")));
}

TEST_F(AwsFiles, ACredentialProcessThatHangsIsEnded) {
  // Waits for the test, which holds the pipe's other end open.
  const auto fifo = home_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const FileDescriptor other(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  home_.write(".aws/config", "[default]\ncredential_process = echo $$ > " +
                                 (home_ / "number").string() + "; cat " + fifo.string() + "\n");
  AwsCredentialChain chain(AwsProfile("", environment()), environment());
  std::stop_source stop;
  const auto ask = [&] {
    const core::Interruption interruption(stop.get_token());
    try {
      (void)chain.get();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  auto first = std::async(std::launch::async, ask);
  while (!std::filesystem::exists(home_ / "number")) std::this_thread::yield();
  auto second = std::async(std::launch::async, ask);  // waits for the first
  stop.request_stop();
  // The limit of a program that nobody interrupts is a minute.
  const bool ended = first.wait_for(30s) == std::future_status::ready &&
                     second.wait_for(30s) == std::future_status::ready;
  if (!ended) (void)!::write(other.get(), "\n", 1);
  ASSERT_TRUE(ended);
  EXPECT_THAT(first.get(), HasSubstr("the work was stopped"));
  EXPECT_THAT(second.get(), HasSubstr("the work was stopped"));
}

TEST(Commands, EndAtTheirLimit) {
  EXPECT_THAT([] { (void)output_of_command("exec sleep 1000", "the program", 50ms); },
              ThrowsMessage<Error>(HasSubstr("the program gave no answer for 50 ms")));
}

TEST(Faults, OfMemoryThatIsOutSaySo) {
  EXPECT_TRUE(fault_of_errno("f", 0, "cannot read", ENOMEM).out_of_memory);
  EXPECT_FALSE(fault_of_errno("f", 0, "cannot read", EIO).out_of_memory);
}

// What is signed must be what curl sends.
TEST(Endpoints, AreSignedWithoutTheUsualPort) {
  EXPECT_EQ(host_of("https://sts.example.com:443"), "sts.example.com");
  EXPECT_EQ(host_of("http://sts.example.com:80"), "sts.example.com");
  EXPECT_EQ(host_of("http://sts.example.com:443"), "sts.example.com:443");
  EXPECT_EQ(host_of("https://127.0.0.1:9000"), "127.0.0.1:9000");
  EXPECT_EQ(require_endpoint("https://a//", "X"), "https://a");
}

TEST_F(AwsFiles, AnStsEndpointWithAPathOrWithoutASchemeIsRefused) {
  for (const char* endpoint :
       {"https://sts.example.com/sts", "sts.example.com", "https://", "ftp://a"}) {
    variables_["AWS_ENDPOINT_URL_STS"] = endpoint;
    EXPECT_THAT([&] { (void)AwsSts(AwsProfile("", environment()), environment()); },
                ThrowsMessage<Error>(AllOf(HasSubstr("expected an endpoint such as"),
                                           HasSubstr("AWS_ENDPOINT_URL_STS"))));
  }
}

TEST(StsAnswers, CredentialsAreFoundAndNothingElse) {
  const auto found = storage::parse_sts_credentials(
      "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>k</AccessKeyId>"
      "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
      "<Expiration>2030-01-02T03:04:05Z</Expiration></Credentials></AssumeRoleResult></"
      "AssumeRoleResponse>");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->credentials.session_token, "t");
  EXPECT_EQ(std::chrono::system_clock::to_time_t(found->expires), 1893553445);
  // The clock ends in 2262.
  EXPECT_EQ(storage::parse_aws_time("3325-01-02T03:04:05Z"),
            std::chrono::system_clock::time_point::max());
  EXPECT_EQ(std::chrono::system_clock::to_time_t(storage::parse_aws_time("0001-01-01T00:00:00Z")),
            0);
  for (const char* wrong : {"", "<a/>", "<Credentials/>",
                            "<a><Credentials><AccessKeyId>k</AccessKeyId></Credentials></a>", "{"})
    EXPECT_FALSE(storage::parse_sts_credentials(wrong)) << wrong;
}

TEST(S3Answers, PagesAreReadWithTheirKeysDecoded) {
  const auto page = parse_s3_page(
      "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
      "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>more</NextContinuationToken>"
      "<Contents><Key>a%20b%2B/%C3%A4.jpg</Key><Size>5000000000</Size>"
      "<ETag>&quot;abc&quot;</ETag></Contents>"
      "<CommonPrefixes><Prefix>folder/</Prefix></CommonPrefixes></ListBucketResult>");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->next, "more");
  ASSERT_THAT(page->entries, SizeIs(2));
  EXPECT_EQ(page->entries[0].key, "a b+/\xC3\xA4.jpg");
  EXPECT_EQ(page->entries[0].stamp, (FileStamp{5'000'000'000, version_of_etag("\"abc\"")}));
  EXPECT_TRUE(page->entries[1].is_folder);
}

TEST(S3Answers, WhatIsNoPageIsNone) {
  EXPECT_FALSE(parse_s3_page("<html>Welcome</html>"));
  EXPECT_FALSE(parse_s3_page("<ListBucketResult><Contents>"));
  EXPECT_FALSE(parse_s3_page(""));
  // Without a token the first page would come again and again.
  EXPECT_FALSE(
      parse_s3_page("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"));
}

TEST(S3Answers, ETagsAreComparedWithoutTheirDress) {
  EXPECT_EQ(version_of_etag("\"abc\""), version_of_etag("abc"));
  EXPECT_EQ(version_of_etag("W/\"abc\""), version_of_etag("abc"));
  EXPECT_NE(version_of_etag("abd"), version_of_etag("abc"));
}

TEST(ObjectUrls, AreTakenApart) {
  const ObjectName name = parse_object_url("s3://bucket/a//b c");
  EXPECT_EQ(name.bucket, "bucket");
  EXPECT_EQ(name.key, "a//b c");
  EXPECT_EQ(parse_object_url("s3://bucket").folder_prefix(), "");
  EXPECT_EQ(parse_object_url("s3://bucket/a").folder_prefix(), "a/");
  for (const char* bad : {"s3://", "s3:///key", "s3://user@host/key", "ftp://a/b"}) {
    EXPECT_THROW((void)parse_object_url(bad), std::invalid_argument) << bad;
  }
}

TEST(ObjectUrls, OfOtherStoragesAreRefused) {
  EXPECT_THAT(
      [] { (void)source::webdataset("gs://bucket/a.tar"); },
      ThrowsMessage<std::invalid_argument>(AllOf(
          HasSubstr("s3://bucket/key"), HasSubstr("https://storage.googleapis.com/bucket/a.tar"))));
}

}  // namespace
}  // namespace penstock::storage
