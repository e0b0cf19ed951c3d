// Data sets of the Hugging Face Hub: their URLs, the token, what the Hub answers, and reads from servers that answer in all ways.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/storage/http/byte_range.hpp"
#include "src/storage/http/endpoint.hpp"
#include "src/storage/http/rate_limit.hpp"
#include "src/storage/http/redirect_links.hpp"
#include "src/storage/http/redirects.hpp"
#include "src/storage/hub/hub_answers.hpp"
#include "src/storage/hub/hub_store.hpp"
#include "src/storage/hub/hub_token.hpp"
#include "src/storage/hub_url.hpp"
#include "tests/source/files.hpp"
#include "tests/storage/answering_server.hpp"

namespace penstock::storage {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using Server = test::AnsweringServer;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";
constexpr const char* kToken = "hf_SecretOfTheTests";

Environment environment_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(HubUrl, TellsDataSetRevisionAndPathApart) {
  const auto parts = [](const char* url) {
    const ObjectName name = parse_object_url(url);
    const HubRevision at = hub_revision_of(name.bucket);
    EXPECT_EQ(name.service, ObjectService::hub);
    return fmt::format("{} | {} | {}", at.id, at.revision, name.key);
  };
  EXPECT_EQ(parts("hf://datasets/o/n"), "o/n | main | ");
  EXPECT_EQ(parts("hf://datasets/o/n/"), "o/n | main | ");
  EXPECT_EQ(parts("hf://datasets/o/n/a/b@c d"), "o/n | main | a/b@c d");
  EXPECT_EQ(parts("hf://datasets/o/n@v1/a"), "o/n | v1 | a");
  EXPECT_EQ(parts("hf://datasets/o/n@a%2Fb/c%2Fd"), "o/n | a/b | c%2Fd");
  EXPECT_EQ(parts("hf://datasets/o/n@refs/pr/3/a"), "o/n | refs/pr/3 | a");
  EXPECT_EQ(parts("hf://datasets/o/n@refs/convert/parquet"), "o/n | refs/convert/parquet | ");
  EXPECT_EQ(parts("hf://datasets/o/n@refs/heads/x"), "o/n | refs | heads/x");
  const ObjectName name = parse_object_url("hf://datasets/o/n@refs/pr/3/a/b");
  EXPECT_EQ(name.url(), "hf://datasets/o/n@refs/pr/3/a/b");
  EXPECT_EQ(name.with_key("c").url(), "hf://datasets/o/n@refs/pr/3/c");
  EXPECT_TRUE((HubRevision{"o/n", kCommit}.is_commit()));
  EXPECT_FALSE((HubRevision{"o/n", "0123456"}.is_commit()));
}

TEST(HubUrl, WhatIsNoDataSetIsRefusedWithTheRightForm) {
  const std::map<std::string, std::string> reasons{
      {"hf://", "a model's path"},
      {"hf://o/n/a", "write hf://datasets/o/n/a"},
      {"hf://spaces/o/n", "spaces are not"},
      {"hf://models/o/n", "models are not"},
      {"hf://buckets/o/n", "buckets are not"},
      {"hf://datasets", "names no owner"},
      {"hf://datasets/o", "names no owner"},
      {"hf://datasets/o@main/a", "names no owner"},
      {"hf://datasets//n", "of letters"},
      {"hf://datasets/o/", "of letters"},
      {"hf://datasets/o/..", "of letters"},
      {"hf://datasets/o/n?a", "of letters"},
      {"hf://datasets/o/n@", "no revision"},
      {"hf://datasets/o/n@/a", "no revision"},
      {std::string("hf://datasets/o/n/a\0b", 21), "zero byte"}};
  for (const auto& [url, reason] : reasons)
    EXPECT_THAT([url = url] { (void)parse_object_url(url); },
                ThrowsMessage<std::invalid_argument>(
                    AllOf(HasSubstr(reason), HasSubstr("hf://datasets/owner/name@revision/path"))))
        << url;
}

TEST(HubToken, IsLookedForWhereHuggingfaceHubLooks) {
  const test::TemporaryFolder folder;
  const std::string home = folder.path().string();
  folder.write("token", fmt::format(" {}\r\n", kToken));
  const auto header = [](std::map<std::string, std::string> values) {
    return HubToken(environment_of(std::move(values))).header();
  };
  const std::string wanted = fmt::format("authorization: Bearer {}", kToken);
  EXPECT_EQ(header({{"HF_TOKEN", kToken}, {"HF_HOME", "/nowhere"}}), wanted);
  EXPECT_EQ(header({{"HF_HOME", home}}), wanted);
  EXPECT_EQ(header({{"HF_TOKEN_PATH", home + "/token"}, {"HF_HOME", "/nowhere"}}), wanted);
  EXPECT_EQ(header({{"HOME", home}, {"HF_TOKEN_PATH", "~/token"}}), wanted);
  EXPECT_FALSE(HubToken(environment_of({{"HF_HOME", "/nowhere"}})).is_given());
  EXPECT_FALSE(HubToken(environment_of({})).is_given());
  EXPECT_FALSE(
      HubToken(environment_of({{"HF_HOME", home}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "Yes"}}))
          .is_given());
  EXPECT_THAT(
      [&] {
        HubToken(environment_of({{"HF_TOKEN_PATH", home}}));
      },
      ThrowsMessage<Error>(AllOf(HasSubstr(home), HasSubstr("set HF_TOKEN"))));
  EXPECT_THAT(
      [&] {
        HubToken(environment_of({{"HF_TOKEN", "a b"}}));
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("HF_TOKEN"), Not(HasSubstr("a b")))));
}

TEST(HubAnswers, EntriesAreReadOrRefusedAsAWhole) {
  const auto entries = parse_hub_entries(
      R"([{"type":"directory","oid":"1","size":0,"path":"a"},
          {"type":"file","oid":"2","size":3,"path":"a/b.txt"},
          {"type":"file","oid":"3","size":130,"path":"a/c","lfs":{"oid":"4","size":5000000000}},
          {"type":"file","size":1,"path":"d","xetHash":"5"}])");
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 4U);
  EXPECT_EQ((*entries)[0].key, "a/");
  EXPECT_TRUE((*entries)[0].is_folder);
  EXPECT_EQ((*entries)[1].stamp, (FileStamp{3, version_of_etag("2")}));
  EXPECT_EQ((*entries)[2].stamp, (FileStamp{5'000'000'000, version_of_etag("4")}));
  EXPECT_EQ((*entries)[3].stamp, (FileStamp{1, version_of_etag("5")}));
  for (const char* bad :
       {"", "{}", "[1]", "[{}]", R"([{"type":"file","oid":"2","path":"a"}])",
        R"([{"type":"file","oid":"2","size":-3,"path":"a"}])",
        R"([{"type":"file","oid":"2","size":3,"path":""}])",
        R"([{"type":"file","oid":"2","size":3,"path":"a/"}])",
        R"([{"type":"file","oid":"2","size":3,"path":"a\u0000b"}])",
        R"([{"type":"file","size":3,"path":"a"}])", R"([{"type":"link","size":3,"path":"a"}])",
        R"([{"type":"file","oid":"2","size":1e999,"path":"a"}])", "[\"\xff\"]"})
    EXPECT_FALSE(parse_hub_entries(bad)) << bad;
  EXPECT_FALSE(parse_hub_entries(std::string(1'000'000, '[')));
  EXPECT_EQ(parse_hub_commit(fmt::format(R"({{"sha":"{}"}})", kCommit)), kCommit);
  for (const char* bad : {"", "[]", "{}", R"({"sha":1})", R"({"sha":"main"})"})
    EXPECT_FALSE(parse_hub_commit(bad)) << bad;
}

TEST(HubAnswers, HeadersSayTheNextPageAndHowLongToWait) {
  EXPECT_EQ(next_page_query("<https://h/api?cursor=a,b&limit=3>; rel=\"next\""),
            "cursor=a,b&limit=3");
  EXPECT_EQ(next_page_query("<https://h/?a=1>; rel=\"prev\", <https://h/?a=3#x>; rel=next"), "a=3");
  for (const char* none :
       {"", "x", "<https://h/?a", "<https://h/?a=1>; rel=\"last\"", "<https://h>; rel=preconnect"})
    EXPECT_EQ(next_page_query(none), "") << none;
  for (const char* useless : {"<https://h/>; rel=\"next\"", "<https://h/?a=\r\n1>; rel=\"next\"",
                              "<https://h/?a=1; rel=\"next\""})
    EXPECT_EQ(next_page_query(useless), std::nullopt) << useless;
  const auto wait = [](std::map<std::string, std::string, std::less<>> headers) {
    return seconds_to_wait({.status = 429, .headers = std::move(headers)});
  };
  EXPECT_EQ(wait({{"retry-after", " 7"}}), 7U);
  EXPECT_EQ(wait({{"retry-after", "7"}, {"ratelimit", "\"api\";r=0;t=55"}}), 55U);
  EXPECT_EQ(wait({{"retry-after", "7"}, {"ratelimit", "\"api\";r=9;t=55"}}), 7U);
  EXPECT_EQ(wait({{"retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"}}), std::nullopt);
  EXPECT_EQ(wait({{"retry-after", "99999999999999999999999"}}), std::nullopt);
  EXPECT_EQ(wait({}), std::nullopt);
}

TEST(HubAnswers, RedirectsLeadToUrlsAlone) {
  EXPECT_EQ(redirected_url("https://h:1/a/b?c", "/d?e#f"), "https://h:1/d?e");
  EXPECT_EQ(redirected_url("https://h", "/d"), "https://h/d");
  EXPECT_EQ(redirected_url("https://h/a", "//i/d"), "https://i/d");
  EXPECT_EQ(redirected_url("https://h/a", "http://i/d"), "http://i/d");
  EXPECT_EQ(redirected_url("https://h/a/b?c", "d/e"), "https://h/a/d/e");
  EXPECT_EQ(redirected_url("https://h/a/b?c=/", "?d"), "https://h/a/b?d");
  EXPECT_EQ(redirected_url("https://h?c=/", "d"), "https://h/d");
  for (const char* none : {"", "file:///etc/passwd", "mailto:a", "ftp://i/d", "https://",
                           "https://u@i/d", "https://i\\@h/d", "https://i /d", "https:///d"})
    EXPECT_EQ(redirected_url("https://h/a", none), "") << none;
  EXPECT_EQ(origin_of("HTTPS://Huggingface.co/a"), "https://huggingface.co:443");
  EXPECT_EQ(origin_of("http://[::1]:80?x"), origin_of("http://[::1]/"));
  EXPECT_NE(origin_of("http://h"), origin_of("https://h"));
  EXPECT_NE(origin_of("https://h"), origin_of("https://h.evil"));
}

TEST(RedirectLinks, TheOldestAreForgotten) {
  RedirectLinks links;
  for (std::size_t i = 0; i <= RedirectLinks::kMostLinks; ++i)
    links.keep(fmt::format("{}", i), "u");
  EXPECT_EQ(links.find("0"), "");
  EXPECT_EQ(links.find("1"), "u");
  links.forget("1", "another");
  EXPECT_EQ(links.find("1"), "u");
  links.forget("1", "u");
  EXPECT_EQ(links.find("1"), "");
  links.keep("1", "v");
  EXPECT_EQ(links.find("1"), "v");
}

std::string answer(const char* status, const std::string& headers, const std::string& body = "") {
  return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}", status,
                     body.size(), headers, body);
}

// The data set o/n with a file "a" of ten bytes, which another server keeps.
class Hub : public ::testing::Test {
 protected:
  using Change = std::function<std::string(const std::string& request)>;

  ObjectStorageOptions options(int attempts = 1) const {
    return {.timeout = 600s, .attempts = attempts};
  }
  Environment environment() const {
    return environment_of({{"HF_TOKEN", kToken}, {"HF_ENDPOINT", hub_.endpoint()}});
  }
  HubStore store(int attempts = 1) const { return HubStore(options(attempts), environment()); }
  Result<std::string> read(const HubStore& store, std::uint64_t offset, std::size_t count,
                           FileStamp stamp = {10, 0}) const {
    std::string text(count, '\0');
    auto result = store.read(name_, stamp, offset, std::as_writable_bytes(std::span(text)));
    if (!result) return std::move(result.fault());
    return text;
  }
  static std::string part(const std::string& request, const std::string& content) {
    const std::size_t at = request.find("range: bytes=");
    if (at == std::string::npos) return answer("200 OK", "", content);
    unsigned first = 0;
    unsigned last = 0;
    EXPECT_EQ(std::sscanf(request.c_str() + at, "range: bytes=%u-%u", &first, &last), 2);  // NOLINT
    return answer("206 Partial Content",
                  fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, last, content.size()),
                  content.substr(first, last - first + 1));
  }
  std::string usual_hub(const std::string& request) const {
    if (request.starts_with("GET /api/datasets/o/n/revision/"))
      return answer("200 OK", "", fmt::format(R"({{"sha":"{}"}})", kCommit));
    if (request.starts_with("GET /api/datasets/o/n/tree/"))
      return answer("200 OK", "", R"([{"type":"file","oid":"1","size":10,"path":"a"}])");
    if (request.starts_with(fmt::format("GET /datasets/o/n/resolve/{}/a ", kCommit)))
      return answer("302 Found", fmt::format("Location: {}/a?Signature=s1\r\n", cdn_.endpoint()));
    return answer("404 Not Found", "X-Error-Code: EntryNotFound\r\n");
  }

  const ObjectName name_ = parse_object_url("hf://datasets/o/n/a");
  Change change_hub_ = [](const std::string&) { return ""; };
  Change change_cdn_ = change_hub_;
  std::vector<std::string> asked_hub_;
  std::vector<std::string> asked_cdn_;
  const Server cdn_{[this](const std::string& request) {
    asked_cdn_.push_back(request);
    const std::string changed = change_cdn_(request);
    return changed.empty() ? part(request, "0123456789") : changed;
  }};
  const Server hub_{[this](const std::string& request) {
    asked_hub_.push_back(request);
    const std::string changed = change_hub_(request);
    return changed.empty() ? usual_hub(request) : changed;
  }};
};

TEST_F(Hub, TheTokenGoesToTheHubAlone) {
  const HubStore hub = store();
  EXPECT_EQ(*read(hub, 2, 3), "234");
  EXPECT_EQ(*read(hub, 0, 10), "0123456789");
  EXPECT_EQ(asked_hub_.size(), 2U);  // the commit, and where the file is
  EXPECT_EQ(asked_cdn_.size(), 2U);
  EXPECT_THAT(asked_hub_, Each(HasSubstr(fmt::format("authorization: Bearer {}", kToken))));
  EXPECT_THAT(asked_cdn_, Each(AllOf(Not(HasSubstr("uthorization")), Not(HasSubstr(kToken)))));
  ObjectStorageOptions anonymous = options();
  anonymous.anonymous = true;
  EXPECT_TRUE(HubStore(anonymous, environment()).stat(name_));
  EXPECT_THAT(asked_hub_.back(), Not(HasSubstr(kToken)));
}

TEST_F(Hub, RedirectsWithinTheHubKeepTheTokenAndOthersFromThereDoNot) {
  change_hub_ = [&](const std::string& request) -> std::string {
    if (request.starts_with("GET /api/datasets/o/n/"))
      return answer("307 Temporary Redirect", "Location: /api/renamed\r\n");
    if (request.starts_with("GET /api/renamed "))
      return usual_hub("GET /api/datasets/o/n/revision/");
    if (request.starts_with("GET /datasets/o/n/resolve/"))
      return answer("307 Temporary Redirect", "Location: /cached?x=1\r\n");
    if (request.starts_with("GET /cached"))
      return answer("302 Found", fmt::format("Location: {}/a\r\n", cdn_.endpoint()));
    return "";
  };
  EXPECT_EQ(*read(store(), 9, 1), "9");
  EXPECT_EQ(asked_hub_.size(), 4U);
  EXPECT_THAT(asked_hub_, Each(HasSubstr(kToken)));
  EXPECT_THAT(asked_cdn_, Each(Not(HasSubstr(kToken))));
}

TEST_F(Hub, ASignedUrlIsUsedUntilItIsRefusedAndNeverShown) {
  const HubStore hub = store();
  EXPECT_EQ(*read(hub, 0, 1), "0");
  int refusals = 1;
  change_cdn_ = [&](const std::string&) -> std::string {
    return refusals-- > 0 ? answer("403 Forbidden", "", "<StringToSign>s1</StringToSign>") : "";
  };
  EXPECT_EQ(*read(hub, 1, 1), "1");
  EXPECT_EQ(asked_hub_.size(), 3U);
  EXPECT_EQ(*read(hub, 2, 1), "2");
  EXPECT_EQ(asked_hub_.size(), 3U);
  refusals = 2;
  const auto denied = read(hub, 3, 1);
  ASSERT_FALSE(denied);
  EXPECT_TRUE(denied.fault().transient);
  EXPECT_THAT(denied.fault().reason, AllOf(HasSubstr("the signed URL was refused"),
                                           HasSubstr(cdn_.endpoint()), Not(HasSubstr("s1"))));
}

TEST_F(Hub, ASignedUrlOfAServerThatFailsIsAskedForAnew) {
  const HubStore hub = store();
  EXPECT_EQ(*read(hub, 0, 1), "0");
  change_cdn_ = [](const std::string& request) -> std::string {
    return request.find("Signature=s1") == std::string::npos
               ? ""
               : answer("503 Service Unavailable", "");
  };
  change_hub_ = [&](const std::string& request) -> std::string {
    return request.find("/resolve/") == std::string::npos
               ? ""
               : answer("302 Found",
                        fmt::format("Location: {}/a?Signature=s2\r\n", cdn_.endpoint()));
  };
  EXPECT_EQ(*read(hub, 1, 1), "1");
  EXPECT_EQ(*read(hub, 2, 1), "2");
  EXPECT_EQ(asked_hub_.size(), 3U);
}

TEST_F(Hub, RedirectsThatLeadNowhereAreFaults) {
  std::string location;
  change_hub_ = [&](const std::string& request) -> std::string {
    return request.find("/revision/") != std::string::npos
               ? ""
               : answer("302 Found", fmt::format("Location: {}\r\n", location));
  };
  const HubStore hub = store();
  for (const auto& [to, reason] :
       std::map<std::string, std::string>{{"", "a redirect to no URL"},
                                          {"file:///etc/passwd", "a redirect to no URL"},
                                          {"/again", "a redirect again, after 5 of them"}}) {
    location = to;
    const auto result = read(hub, 0, 1);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.fault().reason, HasSubstr(reason));
    EXPECT_FALSE(result.fault().transient);
  }
}

TEST_F(Hub, AnswersThatAreNotTheBytesAreFaults) {
  struct Case {
    std::string answer;
    std::string reason;
    bool transient;
  };
  const std::vector<Case> cases{
      {answer("206 Partial Content", "Content-Range: bytes 0-2/10\r\n", "abc"),
       "does not read ranges", false},
      {answer("206 Partial Content", "", "abc"), "does not read ranges", false},
      {answer("206 Partial Content", "Content-Range: bytes 2-4/11\r\n", "abc"),
       "the file has 11 bytes, and its list says 10", false},
      {answer("206 Partial Content", "Content-Range: bytes 2-4/10\r\n", "ab"),
       "expected 3 bytes, received 2", true},
      {answer("206 Partial Content", "Content-Range: bytes 2-4/10\r\n", "abcd"),
       "expected 3 bytes, received", true},
      {"HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\nContent-Range: bytes 2-4/10\r\n\r\nab",
       "cannot reach", true},
      {answer("416 Range Not Satisfiable", "Content-Range: bytes */4\r\n"), "the file has 4 bytes",
       false},
      {answer("200 OK", "", "0123"), "expected 10 bytes, received 4", true},
      {answer("404 Not Found", ""), "answered with status 404", false},
      {answer("502 Bad Gateway", ""), "answered with status 502", true},
  };
  for (const Case& one : cases) {
    change_cdn_ = [&](const std::string&) { return one.answer; };
    const auto result = read(store(), 2, 3);
    ASSERT_FALSE(result) << one.answer;
    EXPECT_THAT(result.fault().reason, HasSubstr(one.reason)) << one.answer;
    EXPECT_EQ(result.fault().transient, one.transient) << one.answer;
    EXPECT_EQ(result.fault().file, "hf://datasets/o/n/a");
    EXPECT_EQ(result.fault().offset, 2U);
  }
  EXPECT_THAT(read(store(), 8, 3).fault().reason, HasSubstr("the file has 10 in all"));
  // A whole file in place of a part: read where it is small, and refused where it is large.
  change_cdn_ = [](const std::string&) { return answer("200 OK", "", "0123456789"); };
  EXPECT_EQ(*read(store(), 2, 3), "234");
  EXPECT_THAT(read(store(), 2, 3, {std::uint64_t{1} << 40, 0}).fault().reason,
              HasSubstr("does not read ranges"));
  change_hub_ = [&](const std::string& request) -> std::string {
    if (request.find("/resolve/") == std::string::npos) return "";
    return answer("302 Found",
                  fmt::format("Location: {}/a\r\nX-Linked-Size: 9\r\n", cdn_.endpoint()));
  };
  EXPECT_THAT(read(store(), 2, 3).fault().reason, HasSubstr("has 9 bytes, and its list says 10"));
  change_hub_ = [&](const std::string& request) -> std::string {
    if (request.find("/resolve/") == std::string::npos) return "";
    return answer("302 Found",
                  fmt::format("Location: {}/a\r\nX-Repo-Commit: other\r\n", cdn_.endpoint()));
  };
  EXPECT_THAT(read(store(), 2, 3).fault().reason, HasSubstr("at commit other"));
}

TEST_F(Hub, WhatItSaysIsShownShortWithoutControlCharactersAndWithoutTheToken) {
  const std::string clear = "\x1b[2J";
  change_hub_ = [&](const std::string&) {
    return answer(
        "418 I'm a teapot", "",
        fmt::format(R"({{"error":"{} {}{}"}})", kToken, "\\u001b[2J", std::string(9000, 'm')));
  };
  const auto result = store().stat(name_);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason,
              AllOf(HasSubstr("status 418"), HasSubstr("*** \\x1b[2J"), HasSubstr("mmm ..."),
                    Not(HasSubstr(kToken)), Not(HasSubstr(clear))));
}

TEST_F(Hub, NoPartOfTheTokenIsShownWhereATextIsCut) {
  for (const std::size_t before : {281U, 285U, 295U, 299U, 300U}) {
    change_hub_ = [&](const std::string&) {
      return answer("403 Forbidden", "",
                    fmt::format(R"({{"error":"{}{}"}})", std::string(before, 'm'), kToken));
    };
    const auto result = store().stat(name_);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.fault().reason,
                AllOf(HasSubstr("mmm"), Not(HasSubstr(std::string(kToken).substr(0, 1 + 3)))));
  }
}

TEST_F(Hub, APageThatCannotBeAskedForIsAnError) {
  std::string links;
  change_hub_ = [&](const std::string& request) -> std::string {
    if (request.find("/tree/") == std::string::npos) return "";
    if (request.find("cursor=2") != std::string::npos)
      return answer("200 OK", "", R"([{"type":"file","oid":"2","size":1,"path":"b"}])");
    return answer("200 OK", links, R"([{"type":"file","oid":"1","size":1,"path":"a"}])");
  };
  const auto count = [&] {
    int files = 0;
    store().list(parse_object_url("hf://datasets/o/n"), true, [&](ListedObject&&) {
      ++files;
      return true;
    });
    return files;
  };
  links = "Link: <http://x/?cursor=2>; rel=\"next\"\r\nLink: <http://cdn>; rel=\"preconnect\"\r\n";
  EXPECT_EQ(count(), 2);
  links = "Link: <http://x/>; rel=\"next\"\r\n";
  EXPECT_THAT(count, ThrowsMessage<Error>(HasSubstr("names a next page of its list that cannot")));
}

TEST_F(Hub, ListsThatGoInCirclesOrLeadOutOfTheFolderEnd) {
  const auto listing = [&](const char* url, bool recursive = false) {
    return [&, url, recursive] {
      store().list(parse_object_url(url), recursive, [](ListedObject&&) { return true; });
    };
  };
  change_hub_ = [&](const std::string& request) -> std::string {
    return request.find("/tree/") == std::string::npos
               ? ""
               : answer("200 OK", "Link: <http://x/?cursor=1>; rel=\"next\"\r\n",
                        R"([{"type":"file","oid":"1","size":1,"path":"a"}])");
  };
  EXPECT_THAT(listing("hf://datasets/o/n"),
              ThrowsMessage<Error>(
                  HasSubstr("the same page of its list again: is it the Hugging Face Hub?")));
  EXPECT_THAT(listing("hf://datasets/o/n/b/", true),
              ThrowsMessage<Error>(HasSubstr("gives 'a', which does not begin so")));
  EXPECT_THAT(asked_hub_, Contains(HasSubstr(fmt::format("/tree/{}/b?recursive=true", kCommit))));
  EXPECT_THAT(asked_hub_, Contains(HasSubstr(fmt::format("/tree/{}?cursor=1 ", kCommit))));
  change_hub_ = [](const std::string&) { return answer("200 OK", "", "<html>"); };
  EXPECT_THAT(listing("hf://datasets/o/n"),
              ThrowsMessage<Error>(HasSubstr("does not say which commit")));
  EXPECT_THAT(listing("hf://datasets/o/n@0123456789abcdef0123456789abcdef01234567"),
              ThrowsMessage<Error>(HasSubstr("no list of files that can be read")));
}

TEST_F(Hub, ItIsAskedAsOftenAsTheOptionsSay) {
  change_hub_ = [](const std::string&) { return answer("503 Service Unavailable", ""); };
  for (const int attempts : {1, 2}) {
    asked_hub_.clear();
    EXPECT_FALSE(store(attempts).stat(name_));
    EXPECT_EQ(asked_hub_.size(), static_cast<std::size_t>(attempts));
  }
}

TEST_F(Hub, FilesOfALargeFolderAreAskedForOneByOne) {
  int page = 0;
  change_hub_ = [&](const std::string& request) -> std::string {
    if (request.starts_with("POST"))
      return answer("200 OK", "",
                    request.ends_with("paths=x%20y&expand=false")
                        ? R"([{"type":"file","oid":"7","size":6,"path":"x y"}])"
                        : "[]");
    if (request.find("/tree/") == std::string::npos) return "";
    std::string entries;
    for (int i = 0; i < 1000; ++i)
      entries += fmt::format(R"({}{{"type":"file","oid":"1","size":1,"path":"{}-{}"}})",
                             i == 0 ? "" : ",", page, i);
    return answer("200 OK", fmt::format("Link: <http://x/?cursor={}>; rel=\"next\"\r\n", ++page),
                  "[" + entries + "]");
  };
  const HubStore hub = store();
  const auto stamp = hub.stat(name_.with_key("x y"));
  ASSERT_TRUE(stamp);
  EXPECT_EQ(*stamp, (FileStamp{6, version_of_etag("7")}));
  EXPECT_EQ(page, 4);
  EXPECT_TRUE(hub.stat(name_.with_key("3-999")));
  const auto none = hub.stat(name_.with_key("z"));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.fault().reason,
              AllOf(HasSubstr("no file 'z'"), HasSubstr("at least 3994 more")));
  EXPECT_EQ(page, 4);
}

TEST_F(Hub, APauseThatIsAskedForEndsWhenTheWorkIsStopped) {
  change_hub_ = [](const std::string&) {
    return answer("429 Too Many Requests", "Retry-After: 200\r\n");
  };
  const HubStore hub = store();
  const auto limited = hub.stat(name_);
  ASSERT_FALSE(limited);
  EXPECT_TRUE(limited.fault().transient);
  EXPECT_THAT(limited.fault().reason,
              HasSubstr("answers no more requests of this machine for 200 s"));
  std::stop_source stop;
  std::atomic<bool> ended = false;
  std::jthread waiting([&] {
    const core::Interruption interruption(stop.get_token());
    EXPECT_FALSE(hub.stat(name_));
    ended = true;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(ended);
  stop.request_stop();
  waiting.join();
  EXPECT_EQ(asked_hub_.size(), 1U);
  // One that is longer than the Hub's window is not waited for.
  change_hub_ = [](const std::string&) {
    return answer("429 Too Many Requests", "Retry-After: 4000\r\n");
  };
  EXPECT_FALSE(store(3).stat(name_));
  EXPECT_EQ(asked_hub_.size(), 4U);
}

TEST(HubOptions, ThoseOfS3AloneAreRefusedByName) {
  const auto open = [](ObjectStorageOptions options,
                       std::map<std::string, std::string> values = {}) {
    return [=] { HubStore(options, environment_of(values)); };
  };
  EXPECT_THAT(open({.endpoint = "https://minio.example"}),
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("the option endpoint"), HasSubstr("set HF_ENDPOINT"))));
  EXPECT_THAT(open({.region = "x"}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("the option region")));
  EXPECT_THAT(open({.profile = "x"}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("the option profile")));
  EXPECT_THAT(open({.path_style = true}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("path_style")));
  EXPECT_THAT(open({.requester_pays = true}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("requester_pays")));
  EXPECT_THAT(open({}, {{"HF_HUB_OFFLINE", "TRUE"}}),
              ThrowsMessage<Error>(HasSubstr("HF_HUB_OFFLINE")));
  EXPECT_THAT(open({}, {{"HF_ENDPOINT", "https://u:p@h"}}),
              ThrowsMessage<Error>(HasSubstr("HF_ENDPOINT")));
  EXPECT_NO_THROW(open({}, {{"HF_ENDPOINT", "https://proxy.example.com/api/hub/"}})());
  EXPECT_NO_THROW(open({})());
}

}  // namespace
}  // namespace penstock::storage
