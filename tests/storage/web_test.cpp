// Files of web servers: their URLs, and reads from servers that answer in all ways.
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/shards.hpp>

#include "src/storage/storage.hpp"
#include "src/storage/web/web_store.hpp"
#include "src/storage/web_url.hpp"
#include "tests/source/files.hpp"
#include "tests/storage/answering_server.hpp"
#include "tests/variables.hpp"

namespace penstock::storage {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using Server = test::AnsweringServer;

TEST(WebUrl, TellsServerPathAndQueryApart) {
  const auto parts = [](const std::string& url) {
    const ObjectName name = parse_object_url(url);
    EXPECT_EQ(name.service, ObjectService::web);
    EXPECT_EQ(name.url(), std::string(split_web_url(url).plain)) << url;
    return fmt::format("{} | {} | {}", name.bucket, name.key, split_web_url(url).query);
  };
  EXPECT_EQ(parts("https://h/a/b.tar"), "https://h | a/b.tar | ");
  EXPECT_EQ(parts("http://h:80/a/?b=/c?d"), "http://h:80 | a/ | ?b=/c?d");
  EXPECT_EQ(parts("https://[::1]:8/a%20b c"), "https://[::1]:8 | a%20b c | ");
  EXPECT_EQ(parts("https://h//a"), "https://h | /a | ");
  EXPECT_EQ(parse_object_url("https://h").key, "");
  EXPECT_EQ(parse_object_url("https://h/a?b").with_key("c").url(), "https://h/c");
}

TEST(WebUrl, WhatIsNoFileOfAServerIsRefusedWithoutItsSecrets) {
  const std::map<std::string, std::string> reasons{
      {"https://", "no host"},
      {"https:///a", "no host"},
      {"https://h ost/a", "no host"},
      {"https://name:secret@h/a", "found 'https://***@h/a'"},
      {"https://secret@h/a", "~/.netrc"},
      {"https://user:secret/word@h/a", "found 'https://***'"},
      {"https://user:secret?w@h/a", "is no port"},
      {"https://h:/a", "is no port"},
      {"https://[::1]:secret/a", "is no port"},
      {"https://h/a#secret", "as %23"},
      {"https://h/a?secret\n", "control character"}};
  for (const auto& [url, reason] : reasons)
    EXPECT_THAT([url = url] { (void)parse_object_url(url); },
                ThrowsMessage<std::invalid_argument>(
                    AllOf(HasSubstr(reason), Not(HasSubstr("?secret")), Not(HasSubstr("secret@")))))
        << url;
  for (const char* meant : {"https:/h/a?secret", "HTTPS://h/a?secret", "Https:/h/a"})
    EXPECT_THAT([=] { require_readable_scheme(meant); },
                ThrowsMessage<std::invalid_argument>(
                    AllOf(HasSubstr("did you mean https://h/a?"), Not(HasSubstr("secret")))));
  EXPECT_THAT([] { require_readable_scheme("HTTP://name:secret@h/a"); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("http://***@h/a"), Not(HasSubstr("secret")))));
}

TEST(WebUrl, NothingIsWrittenToAServer) {
  EXPECT_THAT([] { (void)Storage().create("https://h/a.tar?secret"); },
              ThrowsMessage<std::invalid_argument>(AllOf(
                  HasSubstr("'https://h/a.tar': nothing is written"), Not(HasSubstr("secret")))));
}

TEST(WebUrl, AQueryIsOneForEachFile) {
  const Storage storage;
  EXPECT_EQ(storage.name_of("https://h/a?x"), "https://h/a");
  EXPECT_EQ(storage.name_of("https://h/a"), "https://h/a");
  EXPECT_EQ(storage.path_of("https://h/a"), "https://h/a?x");
  EXPECT_EQ(storage.path_of("https://h/b"), "https://h/b");
  EXPECT_EQ(storage.name_of("/a?b"), "/a?b");
  EXPECT_THAT([&] { (void)storage.name_of("https://h/a?secret"); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("https://h/a was given with two"), Not(HasSubstr("secret")))));
}

std::string body_of_file() {
  std::string text;
  for (int i = 0; i < 100; ++i) text += fmt::format("{:02} ", i);
  return text;
}

std::string answer(const std::string& status, const std::string& headers = "",
                   const std::string& body = "") {
  return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}", status,
                     body.size(), headers, body);
}

std::string header_in(const std::string& request, std::string_view name) {
  const std::size_t at = request.find(fmt::format("\r\n{}: ", name));
  if (at == request.npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return request.substr(begin, request.find("\r\n", begin) - begin);
}

// As servers give it, by ranges.
std::string give(const std::string& request, const std::string& body, const std::string& headers) {
  const std::string range = header_in(request, "range");
  if (range.empty()) return answer("200 OK", headers, body);
  const std::size_t first = std::stoul(range.substr(6));
  const std::size_t last = std::min(body.size(), std::stoul(range.substr(range.find('-') + 1)) + 1);
  if (first >= body.size())
    return answer("416 Range Not Satisfiable",
                  fmt::format("Content-Range: bytes */{}\r\n", body.size()));
  return answer(
      "206 Partial Content",
      fmt::format("{}Content-Range: bytes {}-{}/{}\r\n", headers, first, last - 1, body.size()),
      body.substr(first, last - first));
}

// A server of one file, and another one that redirects may lead to.
class Web : public ::testing::Test {
 protected:
  WebStore store(ObjectStorageOptions options = {}) {
    options.attempts = 1;
    return {options, queries_};
  }
  ObjectName name_at(const Server& server, const std::string& path) {
    const std::string url = server.endpoint() + path;
    queries_->add(split_web_url(url).plain, split_web_url(url).query);
    return parse_object_url(url);
  }
  static Result<std::string> read(const WebStore& store, const ObjectName& name, std::size_t offset,
                                  std::size_t count) {
    const Result<FileStamp> stamp = store.stat(name);
    if (!stamp) return stamp.fault();
    std::string text(count, '\0');
    Result<void> done = store.read(name, *stamp, offset, std::as_writable_bytes(std::span(text)));
    if (!done) return done.fault();
    return text;
  }
  static std::string reason(const Result<std::string>& result) {
    return result ? "read: " + *result : result.fault().to_string();
  }

  std::string body_ = body_of_file();
  std::string headers_ = "ETag: \"one\"\r\n";
  std::function<std::optional<std::string>(const std::string&)> instead_ = [](const auto&) {
    return std::nullopt;
  };
  std::vector<std::string> asked_;
  std::vector<std::string> asked_other_;
  Server server_{[this](const std::string& request) {
    asked_.push_back(request);
    const auto other = instead_(request);
    return other ? *other : give(request, body_, headers_);
  }};
  Server other_{[this](const std::string& request) {
    asked_other_.push_back(request);
    return give(request, body_, headers_);
  }};
  std::shared_ptr<WebQueries> queries_ = std::make_shared<WebQueries>();
};

TEST_F(Web, AFileIsReadByRangesWithItsQueryAndUnpacked) {
  const WebStore web = store();
  const ObjectName name = name_at(server_, "/d/a b%2Bc.tar?sig=x%2F");
  const Result<FileStamp> stamp = web.stat(name);
  ASSERT_TRUE(stamp) << stamp.fault().to_string();
  EXPECT_EQ(stamp->bytes, body_.size());
  EXPECT_EQ(reason(read(web, name, 30, 6)), "read: 10 11 ");
  EXPECT_EQ(reason(read(web, name, 0, body_.size())), "read: " + body_);
  EXPECT_THAT(asked_, Each(HasSubstr("GET /d/a%20b%2Bc.tar?sig=x%2F HTTP/1.1\r\n")));
  EXPECT_THAT(asked_, Each(HasSubstr("\r\naccept-encoding: identity\r\n")));
  EXPECT_EQ(header_in(asked_.front(), "range"), "bytes=0-0");
  EXPECT_TRUE(web.check_ranges(name));
}

TEST_F(Web, AnEmptyFileIsOne) {
  body_.clear();
  EXPECT_EQ(store().stat(name_at(server_, "/a"))->bytes, 0U);
  instead_ = [](const std::string&) { return answer("200 OK"); };
  EXPECT_EQ(store().stat(name_at(server_, "/a"))->bytes, 0U);
}

// The version is the ETag, else the time of the last change, else the size alone.
TEST_F(Web, AFileThatIsReplacedIsAFault) {
  const std::vector<std::pair<std::string, std::string>> versions{
      {"ETag: \"one\"\r\n", "ETag: \"two\"\r\n"},
      {"ETag: W/\"one\"\r\n", "ETag: W/\"two\"\r\n"},
      {"Last-Modified: Mon, 02 Nov 2026 10:00:00 GMT\r\n",
       "Last-Modified: Mon, 02 Nov 2026 10:00:01 GMT\r\n"},
      {"Last-Modified: Mon, 02 Nov 2026 10:00:00 GMT\r\n", ""}};
  for (const auto& [before, after] : versions) {
    headers_ = before;
    const WebStore web = store();
    const ObjectName name = name_at(server_, "/a?secret");
    const FileStamp stamp = *web.stat(name);
    for (const std::size_t count : {std::size_t{6}, body_.size()}) {
      std::string text(count, '\0');
      headers_ = before;
      EXPECT_TRUE(web.read(name, stamp, 0, std::as_writable_bytes(std::span(text))));
      headers_ = after;
      const auto read = web.read(name, stamp, 0, std::as_writable_bytes(std::span(text)));
      ASSERT_FALSE(read);
      EXPECT_THAT(
          read.fault().to_string(),
          AllOf(HasSubstr("/a"), HasSubstr("the file was changed"), Not(HasSubstr("secret"))));
      EXPECT_FALSE(read.fault().transient);
    }
  }
  headers_ = "";
  const WebStore web = store();
  const ObjectName name = name_at(server_, "/a");
  const FileStamp stamp = *web.stat(name);
  body_ += "more";
  for (const std::size_t count : {std::size_t{6}, stamp.bytes}) {
    std::string text(count, '\0');
    const auto read = web.read(name, stamp, 0, std::as_writable_bytes(std::span(text)));
    ASSERT_FALSE(read);
    EXPECT_THAT(read.fault().reason, HasSubstr("the file was changed"));
  }
}

// If-Match takes a strong ETag only: without one the body is asked for again as a whole.
TEST_F(Web, ABodyThatBreaksOffIsGoneOnWithIfItsETagIsStrong) {
  for (const bool is_strong : {true, false}) {
    headers_ = is_strong ? "ETag: \"one\"\r\n" : "ETag: W/\"one\"\r\n";
    bool is_cut = false;
    instead_ = [&](const std::string& request) -> std::optional<std::string> {
      const std::string all = give(request, body_, headers_);
      if (is_cut || all.size() < body_.size()) return std::nullopt;
      is_cut = true;
      return all.substr(0, all.size() - 100);
    };
    asked_.clear();
    const WebStore web = store();
    const auto result = read(web, name_at(server_, "/a"), 0, body_.size());
    if (is_strong) {
      EXPECT_EQ(reason(result), "read: " + body_);
      EXPECT_EQ(header_in(asked_.back(), "if-match"), "\"one\"");
      EXPECT_EQ(header_in(asked_.back(), "range"), "bytes=200-299");
    } else {
      ASSERT_FALSE(result);
      EXPECT_TRUE(result.fault().transient);  // the loader asks again
      EXPECT_EQ(header_in(asked_.back(), "if-match"), "");
    }
  }
}

TEST_F(Web, AServerThatIgnoresRangesIsAskedForWholeFilesAlone) {
  instead_ = [this](const std::string&) { return answer("200 OK", headers_, body_); };
  const WebStore web = store();
  const ObjectName name = name_at(server_, "/a?secret");
  EXPECT_EQ(reason(read(web, name, 0, body_.size())), "read: " + body_);
  EXPECT_THAT(reason(read(web, name, 3, 3)),
              AllOf(HasSubstr("does not read ranges"), HasSubstr("download the file"),
                    Not(HasSubstr("secret"))));
  const Result<void> checked = web.check_ranges(name);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.fault().reason, HasSubstr("does not read ranges"));
  EXPECT_THAT([&] { (void)source::webdataset(server_.endpoint() + "/a.tar?secret"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("/a.tar: "), HasSubstr("does not read ranges"),
                                         Not(HasSubstr("secret")))));
}

TEST_F(Web, WhatIsPackedOnItsWayIsRefused) {
  headers_ = "Content-Encoding: gzip\r\n";
  EXPECT_THAT(reason(read(store(), name_at(server_, "/a"), 0, 3)),
              HasSubstr("with Content-Encoding gzip, and not the file's own bytes"));
  headers_ = "Content-Encoding: identity\r\n";
  EXPECT_EQ(reason(read(store(), name_at(server_, "/a"), 0, 3)), "read: 00 ");
  // Also of one that packs later.
  const WebStore web = store();
  const ObjectName name = name_at(server_, "/a");
  const FileStamp stamp = *web.stat(name);
  headers_ = "Content-Encoding: br\r\n";
  std::string text(3, '\0');
  const auto late = web.read(name, stamp, 0, std::as_writable_bytes(std::span(text)));
  ASSERT_FALSE(late);
  EXPECT_THAT(late.fault().reason, HasSubstr("Content-Encoding br"));
}

TEST_F(Web, RedirectsAreFollowedOnceForEachFile) {
  instead_ = [this](const std::string&) {
    return answer("302 Found",
                  fmt::format("Location: {}/b?signature=secret\r\n", other_.endpoint()));
  };
  const WebStore web = store();
  const ObjectName name = name_at(server_, "/a?own=1");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reason(read(web, name, 3, 3)), "read: 01 ");
  EXPECT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_other_.size(), 6U);
  EXPECT_THAT(asked_other_,
              Each(AllOf(HasSubstr("GET /b?signature=secret "), Not(HasSubstr("own")))));
}

TEST_F(Web, AnExpiredRedirectIsAskedForAgain) {
  int signature = 1;
  instead_ = [&](const std::string& request) -> std::optional<std::string> {
    if (request.starts_with("GET /a "))
      return answer("307 Temporary Redirect", fmt::format("Location: /b?s={}\r\n", signature));
    if (!request.starts_with(fmt::format("GET /b?s={} ", signature)))
      return answer("403 Forbidden");
    return std::nullopt;
  };
  const WebStore web = store();
  const ObjectName name = name_at(server_, "/a");
  EXPECT_EQ(reason(read(web, name, 3, 3)), "read: 01 ");
  signature = 2;
  EXPECT_EQ(reason(read(web, name, 3, 3)), "read: 01 ");
  EXPECT_EQ(asked_.size(), 3U + 4U);
}

TEST_F(Web, RedirectsThatLeadNowhereAreFaults) {
  const auto leads_to = [&](const std::string& location) {
    instead_ = [=](const std::string&) {
      return answer("301 Moved Permanently", "Location: " + location + "\r\n");
    };
    return reason(read(store(), name_at(server_, "/a?secret"), 0, 3));
  };
  EXPECT_THAT(leads_to("/a"), AllOf(HasSubstr("again, after 5"), Not(HasSubstr("secret"))));
  EXPECT_THAT(leads_to("ftp://h/a"), HasSubstr("to no URL"));
  EXPECT_THAT(leads_to("https://user@h/a"), HasSubstr("to no URL"));
}

TEST_F(Web, ALoginOfNetrcGoesToItsOwnHostAlone) {
  const test::TemporaryFolder folder;
  const std::string netrc =
      folder.write("netrc", "machine localhost login name password secret\n").string();
  const test::Variables variables(test::Variables::Values{{"NETRC", netrc}});
  const std::string port = server_.endpoint().substr(server_.endpoint().rfind(':'));
  instead_ = [this](const std::string& request) -> std::optional<std::string> {
    if (header_in(request, "Authorization").empty()) return answer("401 Unauthorized");
    return answer("302 Found", fmt::format("Location: {}/b\r\n", other_.endpoint()));
  };
  const ObjectName name = parse_object_url("http://localhost" + port + "/a");
  EXPECT_EQ(reason(read(store(), name, 3, 3)), "read: 01 ");
  EXPECT_EQ(header_in(asked_.front(), "Authorization"), "Basic bmFtZTpzZWNyZXQ=");
  for (const std::string& request : asked_other_)
    EXPECT_EQ(header_in(request, "Authorization"), "");
  // 127.0.0.1 is no machine of that file.
  EXPECT_THAT(reason(read(store(), name_at(server_, "/a"), 3, 3)),
              AllOf(HasSubstr("denied access (status 401)"), HasSubstr("~/.netrc")));
  asked_.clear();
  EXPECT_THAT(reason(read(store({.anonymous = true}), name, 3, 3)), HasSubstr("option anonymous"));
  EXPECT_EQ(header_in(asked_.front(), "Authorization"), "");
}

TEST_F(Web, WhatIsRefusedIsSaidWithoutTheQuery) {
  const auto refused = [&](const std::string& status, const std::string& path = "/a?secret") {
    instead_ = [=](const std::string&) { return answer(status); };
    const auto result = read(store(), name_at(server_, path), 0, 3);
    EXPECT_FALSE(result);
    EXPECT_THAT(reason(result), Not(HasSubstr("secret")));
    return result ? Fault{} : result.fault();
  };
  EXPECT_THAT(refused("404 Not Found").reason, HasSubstr("has no such file (status 404)"));
  EXPECT_THAT(refused("403 Forbidden").reason, HasSubstr("a signature that has expired"));
  EXPECT_FALSE(refused("403 Forbidden").transient);
  EXPECT_TRUE(refused("503 Service Unavailable").transient);
  EXPECT_TRUE(refused("429 Too Many Requests").transient);
  EXPECT_THAT(refused("400 Bad Request").reason, HasSubstr("answered with status 400"));
  EXPECT_THAT(refused("200 OK", "/").reason, HasSubstr("that of a folder"));
  instead_ = [](const std::string&) {
    return std::string("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc");
  };
  EXPECT_THAT(reason(read(store(), name_at(server_, "/a?secret"), 0, 3)),
              HasSubstr("does not say how large"));
}

TEST_F(Web, WhatWouldHaveToBeListedIsRefused) {
  const std::string at = server_.endpoint();
  for (const std::string path : {"/d/", "", "/d/*.tar?secret", "/x-{0..2}/*.tar"})
    EXPECT_THAT([&] { (void)source::webdataset(at + path); },
                ThrowsMessage<Error>(AllOf(HasSubstr("give no list"), HasSubstr("by braces"),
                                           Not(HasSubstr("secret")))))
        << path;
  for (const std::string path : {"/d", "/d/?secret"}) {
    EXPECT_THAT([&] { (void)source::image_folder(at + path); },
                ThrowsMessage<Error>(AllOf(HasSubstr("cannot list"), Not(HasSubstr("secret")))));
    EXPECT_THAT([&] { (void)source::images(at + path); },
                ThrowsMessage<Error>(AllOf(HasSubstr("cannot list"), Not(HasSubstr("secret")))));
  }
  EXPECT_THAT([&] { (void)source::mds(at + "/d?secret"); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("is of one file"), Not(HasSubstr("secret")))));
  EXPECT_EQ(asked_.size(), 0U);
}

TEST(WebOptions, ThoseOfS3AloneAreRefusedByName) {
  const auto open = [](const ObjectStorageOptions& options) {
    return [=] { WebStore(options, std::make_shared<WebQueries>()); };
  };
  EXPECT_THAT(open({.endpoint = "https://minio.example"}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("the option endpoint")));
  EXPECT_THAT(open({.requester_pays = true}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("requester_pays")));
  const test::Variables variables(test::Variables::Values{{"NETRC", "/nowhere/netrc"}});
  EXPECT_THAT(open({}),
              ThrowsMessage<Error>(AllOf(HasSubstr("/nowhere/netrc"), HasSubstr("NETRC"))));
  EXPECT_NO_THROW(open({.anonymous = true})());
}

}  // namespace
}  // namespace penstock::storage
