// What is written to a real S3 server: whole or not at all, and signed.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/source/shards.hpp>

#include "src/storage/object_writer.hpp"
#include "src/storage/s3/s3_store.hpp"
#include "src/storage/storage.hpp"
#include "tests/source/files.hpp"
#include "tests/storage/s3_server.hpp"

namespace penstock::storage {
namespace {

using test::S3Server;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

class S3Writes : public ::testing::Test {
 protected:
  void SetUp() override {
    PENSTOCK_REQUIRE_MOTO();
    ::setenv("no_proxy", "127.0.0.1", 1);
    files_.write("there.txt", "there");
  }

  static WritableObjectStorePtr open(const S3Server& server) {
    const std::map<std::string, std::string> variables{
        {"AWS_ACCESS_KEY_ID", server.access_key()}, {"AWS_SECRET_ACCESS_KEY", server.secret_key()}};
    return std::make_shared<S3Store>(
        server.options(), [variables](const char* name) -> std::optional<std::string> {
          const auto found = variables.find(name);
          return found == variables.end() ? std::nullopt : std::optional(found->second);
        });
  }
  static std::vector<std::string> keys(const ObjectStore& store) {
    std::vector<std::string> found;
    store.list({"photos", ""}, true, [&](ListedObject&& object) {
      found.push_back(std::move(object.key));
      return true;
    });
    return found;
  }
  static std::string read(const ObjectStore& store, const std::string& key) {
    const auto stamp = store.stat({"photos", key});
    EXPECT_TRUE(stamp);
    std::string text(stamp ? stamp->bytes : 0, '?');
    EXPECT_TRUE(store.read({"photos", key}, *stamp, 0, std::as_writable_bytes(std::span(text))));
    return text;
  }

  TemporaryFolder files_;
};

TEST_F(S3Writes, SmallAndLargeObjectsAreReadBackAsTheyWereWritten) {
  // Each signature is checked: of the parts' bodies, of queries and of keys with other characters.
  const S3Server server(files_.path(), {"--check-signatures", "--may-write"});
  const auto store = open(server);
  std::string large(2 * kLeastPart + 1000, 'x');
  for (std::size_t k = 0; k < large.size(); k += 1000) large[k] = static_cast<char>(k / 1000);
  const std::string odd = "out/a b+\xC3\xA4=%41&.tar";
  for (const auto& [key, text] : std::map<std::string, std::string>{
           {odd, large}, {"out/small", "small"}, {"there.txt", "replaced"}}) {
    ObjectWriter writer(store, {"photos", key}, {.first_part = kLeastPart});
    writer.write(std::as_bytes(std::span(text)));
    EXPECT_EQ(std::ranges::count(keys(*store), key), key == "there.txt" ? 1 : 0);
    writer.finish();
    EXPECT_TRUE(read(*store, key) == text) << key;
  }
  EXPECT_THAT(keys(*store), UnorderedElementsAre(odd, "out/small", "there.txt"));
}

TEST_F(S3Writes, ATarFileOfABucketIsThatOfADisk) {
  const S3Server server(files_.path());
  const auto fill = [](TarWriter tar) {
    for (int k = 0; k < 3; ++k) {
      const std::string image(static_cast<std::size_t>(1000 * k), 'x');
      tar.add(std::to_string(k) + ".jpg", std::as_bytes(std::span(image)));
      tar.add(std::to_string(k) + ".cls", std::as_bytes(std::span("7", 1)));
    }
    tar.finish();
  };
  ::setenv("AWS_ACCESS_KEY_ID", "testing", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "testing", 1);
  fill(TarWriter(files_ / "a.tar"));
  fill(TarWriter("s3://photos/out/a.tar", server.options()));
  std::ifstream local(files_ / "a.tar", std::ios::binary);
  const std::string expected{std::istreambuf_iterator<char>(local), {}};
  EXPECT_TRUE(read(*open(server), "out/a.tar") == expected);
}

TEST_F(S3Writes, WhatIsNotFinishedIsNeverListed) {
  const S3Server server(files_.path());
  const auto store = open(server);
  const std::string large(3 * kLeastPart, 'x');
  {
    ObjectWriter writer(store, {"photos", "out/half"}, {.first_part = kLeastPart});
    writer.write(std::as_bytes(std::span(large)));
    EXPECT_THAT(keys(*store), ElementsAre("there.txt"));
    EXPECT_EQ(store->list_uploads({"photos", "out/"}).size(), 1U);
  }
  EXPECT_THAT(keys(*store), ElementsAre("there.txt"));
  EXPECT_THAT(store->list_uploads({"photos", ""}), IsEmpty());

  // What a killed process leaves.
  const auto begun = store->begin_upload({"photos", "out/killed"}, "mark");
  ASSERT_TRUE(begun);
  ASSERT_TRUE(
      store->put_part({"photos", "out/killed"}, *begun, 1, std::as_bytes(std::span(large))));
  EXPECT_THAT(keys(*store), ElementsAre("there.txt"));
  EXPECT_EQ(abort_open_uploads(*store, {"photos", "out/"}, [](const auto&) { return true; }), 1U);
  EXPECT_THAT(store->list_uploads({"photos", ""}), IsEmpty());
}

TEST_F(S3Writes, AUserWhoMayOnlyReadIsToldWhatIsMissing) {
  const S3Server server(files_.path(), {"--check-signatures"});
  const auto store = open(server);
  ObjectWriter writer(store, {"photos", "out/x"});
  EXPECT_THAT([&] { writer.finish(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("cannot write s3://photos/out/x"),
                                         HasSubstr("AccessDenied"), HasSubstr("s3:PutObject"))));
  ObjectWriter nowhere(store, {"no-such-bucket", "x"});
  EXPECT_THAT([&] { nowhere.finish(); }, ThrowsMessage<Error>(HasSubstr("'no-such-bucket'")));
}

}  // namespace
}  // namespace penstock::storage
