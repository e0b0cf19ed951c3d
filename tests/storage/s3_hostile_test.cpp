// Servers that mean harm, or are out of order: what they say is neither believed for ever nor shown to a terminal as it is.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/penstock.hpp>
#include <penstock/source/images.hpp>
#include <penstock/storage/object_storage.hpp>

#include "src/core/interruption.hpp"
#include "src/core/printable.hpp"
#include "src/storage/object_store.hpp"
#include "src/storage/s3/aws_credentials.hpp"
#include "tests/storage/answering_server.hpp"
#include "tests/variables.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

using Server = test::AnsweringServer;

std::string page(const std::string& entries, const std::string& next) {
  return Server::xml("<ListBucketResult>" + entries +
                     "<IsTruncated>true</IsTruncated>"
                     "<NextContinuationToken>" +
                     next + "</NextContinuationToken></ListBucketResult>");
}

auto open(const Server& server) {
  return
      [&server] { (void)source::image_folder("s3://photos/train", {.storage = server.options()}); };
}

constexpr const char* kEntry = "<Contents><Key>train/a.txt</Key><Size>1</Size></Contents>";

TEST(HostileS3, AListThatGoesInCirclesEnds) {
  const Server one([](const std::string&) { return page(kEntry, "again"); });
  EXPECT_THAT(open(one), ThrowsMessage<Error>(HasSubstr("the same page of its list again")));
  EXPECT_LE(one.requests(), 3);
  const Server two([number = 0](const std::string&) mutable {
    return page(kEntry, ++number % 2 == 0 ? "even" : "odd");
  });
  EXPECT_THAT(open(two), ThrowsMessage<Error>(HasSubstr("the same page of its list again")));
  const Server empty(
      [number = 0](const std::string&) mutable { return page("", std::to_string(++number)); });
  EXPECT_THAT(open(empty), ThrowsMessage<Error>(HasSubstr("100 empty pages")));
}

TEST(HostileS3, AKeyOutsideOfWhatWasAskedForIsNoListing) {
  for (const char* key : {"a", "other/a.jpg", "", "train", "trai\x1b"}) {
    const Server server([&](const std::string&) {
      return Server::xml(
          fmt::format("<ListBucketResult><Contents><Key>{}</Key><Size>1</Size>"
                      "</Contents></ListBucketResult>",
                      key));
    });
    EXPECT_THAT(open(server), ThrowsMessage<Error>(
                                  AllOf(HasSubstr("cannot list s3://photos/train/"),
                                        HasSubstr("is it an S3 server?"), Not(HasSubstr("\x1b")))))
        << key;
    EXPECT_THAT(
        [&] { (void)source::webdataset("s3://photos/train", {.storage = server.options()}); },
        ThrowsMessage<Error>(HasSubstr("is it an S3 server?")))
        << key;
  }
}

TEST(HostileS3, WhatItSaysIsShownWithoutItsControlCharactersAndCutShort) {
  const std::string clear = "\x1b[2J\x1b]0;title\x07";
  const Server server([&](const std::string&) {
    return Server::xml("<Error><Code>Odd" + clear + "</Code><Message>" + clear +
                           std::string(100'000, 'm') + "</Message></Error>",
                       "418 I'm a teapot");
  });
  try {
    open(server)();
    FAIL() << "was believed";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07")), HasSubstr("\\x1b[2J"),
                            HasSubstr("mmm ...")));
    EXPECT_LT(text.size(), 2'000U);
  }
}

TEST(HostileS3, IsAskedAsOftenAsTheOptionsSay) {
  for (const int attempts : {1, 3}) {
    const Server server([](const std::string&) { return Server::xml("", "503 Slow Down"); });
    ObjectStorageOptions options = server.options();
    options.attempts = attempts;
    EXPECT_THROW((void)source::image_folder("s3://photos/train", {.storage = options}), Error);
    EXPECT_EQ(server.requests(), attempts);
    EXPECT_FALSE(storage::open_object_store(options)->stat({"photos", "a"}));
    EXPECT_EQ(server.requests(), 2 * attempts);
  }
}

TEST(HostileS3, LessThanAKibibyteASecondIsNoAnswer) {
  const Server server([](const std::string&) { return Server::xml(std::string(1'000'000, ' ')); },
                      50ms);
  ObjectStorageOptions options = server.options();
  options.timeout = 4s;  // in which a busy machine sends the head, and some bytes
  options.attempts = 1;
  EXPECT_THAT([&] { (void)source::image_folder("s3://photos/train", {.storage = options}); },
              ThrowsMessage<Error>(HasSubstr("less than 1 KiB a second for 4000 ms")));
}

// It lists, says how large its object is, and never gives it.
void expect_to_stop_at_once(const Server& server, const LoaderOptions& loading) {
  const int before = server.unanswered();
  Loader loader = Dataset(source::image_folder("s3://photos/train", {.storage = server.options()}))
                      .map(decode_image({.crop = random_resized_crop(32)}))
                      .batch(1)
                      .loader(loading);
  loader.start();
  while (server.unanswered() == before) std::this_thread::sleep_for(1ms);
  const auto begin = std::chrono::steady_clock::now();
  loader.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, server.options().timeout / 2)
      << *loading.io_threads;
}

TEST(HostileS3, ALoaderThatIsStoppedDoesNotWaitForIt) {
  const Server server([](const std::string& request) -> std::string {
    if (request.find("list-type") != std::string::npos)
      return Server::xml(
          "<ListBucketResult><Contents><Key>train/a.jpg</Key><Size>1000</Size><ETag>x</ETag>"
          "</Contents></ListBucketResult>");
    return "";
  });
  expect_to_stop_at_once(server, {.threads = 1, .io_threads = 0});
  expect_to_stop_at_once(server, {.threads = 1, .io_threads = 4});
}

// The first answer is no image; whoever reads its replacement gets none.
TEST(HostileS3, ALoaderThatIsStoppedDoesNotWaitForReplacements) {
  for (const int io_threads : {0, 4}) {
    std::atomic<bool> asked = false;
    const Server server([&](const std::string& request) -> std::string {
      if (request.find("list-type") != std::string::npos)
        return Server::xml(
            "<ListBucketResult><Contents><Key>train/a.jpg</Key><Size>4</Size><ETag>x</ETag>"
            "</Contents></ListBucketResult>");
      return asked.exchange(true) ? "" : Server::xml("none");
    });
    expect_to_stop_at_once(server,
                           {.on_fault = OnFault::replace, .threads = 1, .io_threads = io_threads});
    EXPECT_TRUE(asked);
  }
}

// An instance's role that cannot be had now is not the same as none, without which requests are not signed.
TEST(HostileS3, AnInstanceThatIsBusyOrNotWaitedForIsNotTakenForOneWithoutARole) {
  const auto chain_of = [](const Server& server) {
    const storage::Environment environment =
        [endpoint = server.options().endpoint](const char* name) -> std::optional<std::string> {
      if (std::string_view(name) == "AWS_EC2_METADATA_SERVICE_ENDPOINT") return endpoint;
      return std::nullopt;
    };
    return std::make_unique<storage::AwsCredentialChain>(storage::AwsProfile("", environment),
                                                         environment);
  };
  const Server none([](const std::string&) { return Server::xml("", "404 Not Found"); });
  EXPECT_EQ(chain_of(none)->get(), std::nullopt);
  for (const bool gives_token : {false, true}) {
    const Server busy([&](const std::string& request) {
      return gives_token && request.starts_with("PUT") ? Server::xml("token")
                                                       : Server::xml("", "503 Slow Down");
    });
    const auto chain = chain_of(busy);
    EXPECT_THAT([&] { (void)chain->get(); },
                ThrowsMessage<Error>(AllOf(HasSubstr("the EC2 instance"), HasSubstr("503"))));
  }
  const Server silent([](const std::string&) { return ""; });
  const auto chain = chain_of(silent);
  std::stop_source stop;
  stop.request_stop();
  const core::Interruption interruption(stop.get_token());
  EXPECT_THAT([&] { (void)chain->get(); }, ThrowsMessage<Error>(HasSubstr("the work was stopped")));
}

TEST(Printable, ControlCharactersAreEscaped) {
  EXPECT_EQ(core::printable("a\tb\n\x1b[31m\x7f"), "a\\x09b\\x0a\\x1b[31m\\x7f");
  EXPECT_EQ(core::printable("Übergröße \xff"), "Übergröße \xff");
  EXPECT_EQ(core::printable("\xc2\x9b"
                            "2J"),
            "\xc2\\x9b2J");
  EXPECT_EQ(core::printable("abcdef", 3), "abc ...");
  const Fault fault{.reason = "bad\x1b", .file = "x\ny.jpg"};
  EXPECT_EQ(fault.to_string(), "sample 0 (epoch 0, step 0), x\\x0ay.jpg: bad\\x1b");
}

std::string header_of(const std::string& request, const std::string& name) {
  const std::size_t at = request.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return request.substr(begin, request.find("\r\n", begin) - begin);
}

// As S3 does: a request without the header x-amz-request-payer, or with one that is not signed, is denied.
std::string answer_of_paid_bucket(const std::string& request) {
  const std::string authorization = header_of(request, "authorization");
  const bool is_signed = authorization.find(";x-amz-request-payer,") != std::string::npos ||
                         authorization.find(";x-amz-request-payer;") != std::string::npos;
  if (header_of(request, "x-amz-request-payer") != "requester" || !is_signed)
    return Server::xml("<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
                       "403 Forbidden");
  if (request.find("list-type") == std::string::npos)
    return request.starts_with("HEAD")
               ? "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nETag: \"x\"\r\nConnection: close\r\n\r\n"
               : "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nETag: \"x\"\r\nConnection: "
                 "close\r\n\r\nabc";
  return Server::xml(
      "<ListBucketResult><Contents><Key>train/a.jpg</Key><Size>3</Size><ETag>x</ETag></Contents>"
      "</ListBucketResult>");
}

class RequesterPays : public ::testing::Test {
 protected:
  static ObjectStorageOptions options(const Server& server) {
    ObjectStorageOptions options = server.options();
    options.anonymous = false;
    return options;
  }
  static auto listing(const ObjectStorageOptions& options) {
    return [options] { (void)source::image_folder("s3://photos/train", {.storage = options}); };
  }
  const test::Variables variables_{test::Variables::Values{{"AWS_ACCESS_KEY_ID", "key"},
                                                           {"AWS_SECRET_ACCESS_KEY", "secret"},
                                                           {"AWS_SESSION_TOKEN", {}},
                                                           {"AWS_REQUEST_PAYER", {}}}};
};

TEST_F(RequesterPays, ADeniedRequestSaysThatTheBucketMayBe) {
  const Server server(answer_of_paid_bucket);
  EXPECT_THAT(listing(options(server)),
              ThrowsMessage<Error>(AllOf(HasSubstr("denied (AccessDenied: Access Denied)"),
                                         HasSubstr("if the bucket is \"requester pays\", set "
                                                   "AWS_REQUEST_PAYER=requester"))));
  EXPECT_THAT(listing(server.options()),  // unsigned
              ThrowsMessage<Error>(HasSubstr(
                  "if the bucket is \"requester pays\", give credentials, and set AWS_")));
  ObjectStorageOptions unsigned_one = server.options();
  unsigned_one.requester_pays = true;
  EXPECT_THAT(listing(unsigned_one), ThrowsMessage<Error>(HasSubstr("takes signed requests only")));
}

TEST_F(RequesterPays, EveryRequestHasTheHeaderAndSignsIt) {
  std::vector<std::string> requests;
  std::mutex mutex;
  const Server server([&](const std::string& request) {
    const std::lock_guard lock(mutex);
    requests.push_back(request);
    return answer_of_paid_bucket(request);
  });
  const auto read_all = [&](const ObjectStorageOptions& storage) {
    const SourcePtr folder = source::image_folder("s3://photos/train", {.storage = storage});
    Record record;
    ASSERT_TRUE(folder->read(0, record));
    EXPECT_EQ(record[0].byte_size(), 3U);
    const auto store = storage::open_object_store(storage);
    EXPECT_TRUE(store->stat({"photos", "train/a.jpg"}));
    std::vector<std::byte> part(1);
    (void)store->read({"photos", "train/a.jpg"}, {.bytes = 3}, 1, part);  // with a range
    (void)store->begin_upload({"photos", "train/b"}, "mark");
  };
  ObjectStorageOptions storage = options(server);
  storage.requester_pays = true;
  read_all(storage);
  {
    const test::Variables payer(test::Variables::Values{{"AWS_REQUEST_PAYER", "requester"}});
    read_all(options(server));
  }
  ASSERT_GE(requests.size(), 10U);
  for (const std::string& request : requests) {
    EXPECT_EQ(header_of(request, "x-amz-request-payer"), "requester") << request;
    EXPECT_THAT(header_of(request, "authorization"), HasSubstr(";x-amz-request-payer")) << request;
  }
}

TEST_F(RequesterPays, TheVariableHasOneValue) {
  const Server server(answer_of_paid_bucket);
  const test::Variables payer(test::Variables::Values{{"AWS_REQUEST_PAYER", "true"}});
  EXPECT_THAT(listing(options(server)),
              ThrowsMessage<Error>(HasSubstr("AWS_REQUEST_PAYER is expected to be 'requester', "
                                             "found 'true'")));
}

TEST_F(RequesterPays, APlanHasTheOptionWhereItIsSet) {
  const Server server(answer_of_paid_bucket);
  ObjectStorageOptions storage = options(server);
  storage.requester_pays = true;
  const Dataset paid(source::image_folder("s3://photos/train", {.storage = storage}));
  EXPECT_THAT(paid.to_json(), HasSubstr("\"requester_pays\":true"));
  EXPECT_EQ(Dataset::from_json(paid.to_json()).to_json(), paid.to_json());
  const test::Variables payer(test::Variables::Values{{"AWS_REQUEST_PAYER", "requester"}});
  const Dataset other(source::image_folder("s3://photos/train", {.storage = options(server)}));
  EXPECT_THAT(other.to_json(), Not(HasSubstr("requester_pays")));
}

}  // namespace
}  // namespace penstock
