// Sources over a real S3 server: the same records as from a local folder, and clear words where
// there are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/tables.hpp>

#include "src/source/parquet/codec.hpp"
#include "src/storage/s3/aws_credentials.hpp"
#include "src/storage/s3/s3_store.hpp"
#include "tests/project_path.hpp"
#include "tests/source/shards.hpp"
#include "tests/storage/s3_server.hpp"

namespace penstock {
namespace {

using test::describe_all;
using test::S3Server;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class S3 : public ::testing::Test {
 protected:
  // One server for all of these; what changes something there has a folder of its own.
  static void SetUpTestSuite() {
    if (test::moto_python().empty()) return;
    ::setenv("AWS_ACCESS_KEY_ID", "testing", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "testing", 1);
    ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    ::setenv("no_proxy", "127.0.0.1", 1);
    files_ = new TemporaryFolder;
    for (const char* name :
         {"train/b/1.jpg", "train/b/0.png", "train/a/x y+z=\xC3\xA4%41.jpg", "train/a/deep/er.JPEG",
          "train/.hidden/1.jpg", "train/a/notes.txt", "flat/1.jpg", "flat/2.jpg",
          "doubled/NOTHING/1.jpg", "doubled/NOTHING/a/2.jpg"}) {
      files_->write(name, std::string("bytes of ") + name);
    }
    files_->write("flat/empty.jpg", "");
    files_->write("kept/a/1.jpg");
    files_->write("kept/b/.gitkeep");
    files_->write("kept/.cache/c/1.jpg");
    files_->write("holes/a/1.jpg", "\xFF\xD8\xFF");
    files_->write("holes/b/2.gif", "8BPS");
    files_->write("holes/b/3", "\xFF\xD8\xFF");
    files_->write("flat.txt", "1.jpg,7\n2.jpg,8\nempty.jpg,9\n");
    for (int i = 0; i < 3; ++i) {
      files_->write(fmt::format("shards/t-{}.tar", i), test::plain_tar(5, fmt::format("s{}-", i)));
      files_->write(fmt::format("records/r-0000{}-of-00003", i),
                    test::frame(test::plain_example(std::string(900, 'x'), i)) +
                        test::frame(test::plain_example("y", 10 + i)));
    }
    files_->write("shards/readme.txt");
    for (const char* name : {"nested/a.tar", "nested/more/b.tar"})
      files_->write(name, test::plain_tar(5, "n"));
    files_->write("nested/photos/1.jpg");
    std::filesystem::create_directory(files_->path() / "tables");
    std::filesystem::create_directory(files_->path() / "mds");
    std::filesystem::copy_file(test::project_path("tests/source/parquet/files/huggingface.parquet"),
                               files_->path() / "tables" / "a.parquet");
    for (const char* name : {"texts", "zstd", "images"})
      std::filesystem::copy(test::project_path(std::string("tests/source/mds/files/") + name),
                            files_->path() / "mds" / name);
    for (int i = 0; i < 1100; ++i) files_->write(fmt::format("many/{:04}.jpg", i));
    server_ = new S3Server(files_->path(), {});
  }
  static void TearDownTestSuite() {
    delete server_;
    delete files_;
    server_ = nullptr;
    files_ = nullptr;
  }
  void SetUp() override { PENSTOCK_REQUIRE_MOTO(); }

  static std::string local(const std::string& name) { return (files_->path() / name).string(); }
  static std::string remote(const std::string& name) { return "s3://photos/" + name; }
  static ObjectStorageOptions options() { return server_->options(); }

  static TemporaryFolder* files_;
  static S3Server* server_;
};
TemporaryFolder* S3::files_ = nullptr;
S3Server* S3::server_ = nullptr;

// Places aside, which differ.
void expect_same(const Source& here, const Source& there) {
  EXPECT_EQ(there.size(), here.size());
  EXPECT_EQ(there.fingerprint(), here.fingerprint());
  EXPECT_EQ(describe_all(there), describe_all(here));
  for (std::uint64_t i = 0; i < std::min(here.size(), there.size()); ++i) {
    EXPECT_EQ(there.info(i).key, here.info(i).key);
    EXPECT_EQ(there.info(i).bytes, here.info(i).bytes);
    EXPECT_EQ(there.info(i).label, here.info(i).label);
  }
}

TEST_F(S3, AFolderOfImagesIsTheSameAsALocalOne) {
  const auto here = source::image_folder(local("train"));
  const auto there = source::image_folder(remote("train"), {.storage = options()});
  ASSERT_EQ(here->size(), 4U);
  expect_same(*here, *there);
  EXPECT_THAT(there->class_names(), ElementsAre("a", "b"));
  EXPECT_EQ(there->location(2), remote("train/b/0.png"));
  EXPECT_GT(there->max_concurrent_reads(), here->max_concurrent_reads());
}

TEST_F(S3, AClassWithoutImagesIsAnErrorUnlessTheClassesAreGiven) {
  const auto open = [](ImageFolderOptions options) {
    options.storage = S3::options();
    return source::image_folder(remote("holes"), options);
  };
  EXPECT_THAT(
      [&] { (void)open({}); },
      ThrowsMessage<Error>(AllOf(HasSubstr("no images in 1 of the 2 class folders of s3://"),
                                 HasSubstr("b (1 (no ending), 1 .gif)"))));
  const auto kept = [](const std::string& path) {
    return [path] { (void)source::image_folder(path, {.storage = S3::options()}); };
  };
  for (const std::string& path : {local("kept"), remote("kept")})
    EXPECT_THAT(kept(path),
                ThrowsMessage<Error>(AllOf(HasSubstr("no images in 1 of the 2 class folders"),
                                           HasSubstr("b (1 hidden name)"))));
  const auto given = open({.classes = {"c", "b", "a"}});
  EXPECT_EQ(given->size(), 1U);
  EXPECT_EQ(given->info(0).label, 2);
  const auto notices = given->notices();
  ASSERT_THAT(notices, SizeIs(1));
  EXPECT_TRUE(notices[0].is_warning);
  EXPECT_THAT(notices[0].text, HasSubstr("2 files that were looked into, 2 are images by the first "
                                         "bytes: 1 JPEG image, 1 Photoshop image"));

  const auto sniffed = open({.sniff = true});
  ASSERT_EQ(sniffed->size(), 2U);
  EXPECT_EQ(sniffed->location(1), remote("holes/b/3"));
  EXPECT_THAT(sniffed->class_names(), ElementsAre("a", "b"));
  EXPECT_EQ(sniffed->fingerprint(),
            source::image_folder(local("holes"), {.sniff = true})->fingerprint());
}

TEST_F(S3, KeysWithAnEmptyPartAreReadAsTheyAre) {
  const auto doubled = source::image_folder(remote("doubled"), {.storage = options()});
  ASSERT_EQ(doubled->size(), 2U);
  EXPECT_EQ(doubled->location(0), remote("doubled//1.jpg"));
  EXPECT_EQ(doubled->location(1), remote("doubled//a/2.jpg"));
  EXPECT_THAT(describe_all(doubled), Each(HasSubstr("bytes of doubled/NOTHING/")));
}

TEST_F(S3, AFlatFolderHasItsLabelsFromAnObject) {
  const auto there =
      source::image_folder(remote("flat/"), {.labels = remote("flat.txt"), .storage = options()});
  const auto found = describe_all(there);
  EXPECT_EQ(found[1], "image=bytes of flat/2.jpg;label=8 ;");
  EXPECT_THAT(found[2], AllOf(HasSubstr("flat/empty.jpg"), HasSubstr("empty (0 bytes)")));
}

TEST_F(S3, ListingsOfSeveralPagesAreWhole) {
  const auto there = source::image_folder(remote("many"), {.storage = options()});
  EXPECT_EQ(there->size(), 1100U);
  EXPECT_EQ(there->fingerprint(), source::image_folder(local("many"))->fingerprint());
}

TEST_F(S3, ShardsAreTheSameAsLocalOnes) {
  const IndexOptions in_memory{.location = IndexLocation::memory};
  const auto here = source::webdataset(local("shards"), {.index = in_memory});
  ASSERT_EQ(here->size(), 15U);
  for (const char* shards :
       {"shards", "shards/", "shards/t-*.tar", "shards/t-{0..2}.tar", "s*/t-[0-2].tar"}) {
    expect_same(*here,
                *source::webdataset(remote(shards), {.index = in_memory, .storage = options()}));
  }
  expect_same(*source::tfrecord(local("records"), {.index = in_memory}),
              *source::tfrecord(remote("records"), {.index = in_memory, .storage = options()}));
  const ParquetOptions local_tables{
      .columns = {{.name = "image", .required = false}, {.name = "label"}}, .index = in_memory};
  ParquetOptions remote_tables = local_tables;
  remote_tables.storage = options();
  const auto tables = source::parquet(local("tables"), local_tables);
  EXPECT_GT(tables->size(), 0U);
  expect_same(*tables, *source::parquet(remote("tables/*.parquet"), remote_tables));
  EXPECT_EQ(image_form(remote("tables"), options()), ImageForm::parquet);
  EXPECT_EQ(image_form(remote("shards"), options()), ImageForm::tar);
  EXPECT_EQ(image_form(remote("records"), options()), ImageForm::tfrecord);
  EXPECT_EQ(image_form(remote("train"), options()), ImageForm::folder);
}

TEST_F(S3, FoldersOfShardsThatAreLeftOutAreSaid) {
  const auto warnings = [](const std::string& folder) {
    std::vector<std::string> texts;
    for (const Notice& notice : source::webdataset(folder, {.storage = options()})->notices()) {
      EXPECT_TRUE(notice.is_warning);
      texts.push_back(notice.text);
    }
    return texts;
  };
  for (const std::string& folder : {local("nested"), remote("nested")}) {
    EXPECT_THAT(warnings(folder),
                ElementsAre(HasSubstr("left out folders with *.tar files: 'more'; ")));
    EXPECT_THAT(warnings(folder + "/*.tar"), ElementsAre());
  }
}

TEST_F(S3, MdsShardsAreTheSameAsLocalOnes) {
  const TemporaryFolder cache;
  const IndexOptions index{.location = IndexLocation::memory, .cache = cache.path()};
  std::vector<const char*> names{"mds/texts"};
  const auto codecs = source::parquet_codecs();
  if (std::ranges::find(codecs, source::ParquetCodec::zstd) != codecs.end())
    names.push_back("mds/zstd");
  for (const char* name : names) {
    SCOPED_TRACE(name);
    expect_same(*source::mds(local(name), {.index = index}),
                *source::mds(remote(name), {.index = index, .storage = options()}));
  }
  EXPECT_EQ(image_form(remote("mds/zstd"), options()), ImageForm::mds);
  EXPECT_EQ(source::images(remote("mds/images"), {.storage = options()})->size(), 9U);
  const auto both = source::mds({remote("mds/texts"), remote("mds/texts/")},
                                {.index = index, .storage = options()});
  EXPECT_EQ(both->size(), 46U);
  const std::vector<MdsColumn> text{{.name = "text"}};
  int before = server_->gets();
  const auto there =
      source::mds(remote("mds/texts"), {.columns = text, .index = index, .storage = options()});
  EXPECT_EQ(server_->gets() - before, 4);  // index.json, and the header of each of three shards
  before = server_->gets();
  Record record;
  EXPECT_TRUE(there->read(5, record));
  EXPECT_EQ(server_->gets() - before, 1);
}

TEST_F(S3, AnIndexIsMadeOnceAndKept) {
  const TemporaryFolder cache;
  const IndexOptions index{.cache = cache.path()};
  const auto open = [&] {
    return source::webdataset(remote("shards"), {.index = index, .storage = options()});
  };
  int before = server_->gets();
  const auto first = open();
  EXPECT_EQ(server_->gets() - before, 3);  // a small shard is one read
  before = server_->gets();
  const auto second = open();
  EXPECT_EQ(server_->gets() - before, 0);
  EXPECT_EQ(second->fingerprint(), first->fingerprint());
}

TEST_F(S3, AnIndexThatLiesBesideIsUsedAndOneOfAnotherShardIsNot) {
  const TemporaryFolder folder;
  folder.write("a/good.tar", test::plain_tar(5));
  folder.write("a/other.tar", test::plain_tar(7));
  const auto here = source::webdataset((folder / "a").string());  // makes the indexes
  std::filesystem::rename(folder / "a/other.tar", folder / "other.tar");
  folder.write("a/other.tar", test::plain_tar(3));
  const S3Server server(folder.path(), {});
  const TemporaryFolder cache;
  const auto there = source::webdataset(
      "s3://photos/a", {.index = {.location = IndexLocation::memory, .cache = cache.path()},
                        .storage = server.options()});
  EXPECT_EQ(there->size(), 8U);
  EXPECT_EQ(server.gets(), 3);  // two indexes, and the shard whose index was of another
  EXPECT_EQ(describe_all(there)[2], describe_all(here)[2]);
}

TEST_F(S3, RangesAreReadAndAChangedObjectIsNoticed) {
  const storage::S3Store store(options());
  const storage::ObjectName name{"photos", "train/b/1.jpg"};
  auto stamp = store.stat(name);
  ASSERT_TRUE(stamp);
  EXPECT_EQ(stamp->bytes, std::string("bytes of train/b/1.jpg").size());
  std::string part(6, ' ');
  const auto bytes = std::as_writable_bytes(std::span(part));
  EXPECT_TRUE(store.read(name, *stamp, 9, bytes));
  EXPECT_EQ(part, "train/");
  auto changed = store.read(name, {stamp->bytes, stamp->version + 1}, 9, bytes);
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.fault().reason, HasSubstr("the object was changed"));
  EXPECT_FALSE(changed.fault().transient);
  auto behind = store.read(name, *stamp, 1000, bytes);
  ASSERT_FALSE(behind);
  EXPECT_THAT(behind.fault().reason, HasSubstr("the object was changed"));
}

TEST_F(S3, WhatIsNotThereIsNamed) {
  const auto open = [](const std::string& url) {
    return [url] { (void)source::image_folder(url, {.storage = options()}); };
  };
  EXPECT_THAT(open("s3://nobodys/train"),
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("no bucket 'nobodys'"), HasSubstr(server_->endpoint()))));
  EXPECT_THAT(open(remote("none")), ThrowsMessage<Error>(HasSubstr("no objects at all")));
  EXPECT_THAT([] { (void)source::webdataset(remote("none/a.tar"), {.storage = options()}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("s3://photos/none/a.tar"),
                                         HasSubstr("there is no object 'none/a.tar'"))));
  EXPECT_THAT([] { (void)source::webdataset(remote("train"), {.storage = options()}); },
              ThrowsMessage<Error>(HasSubstr("no shards in")));
  auto wrong = options();
  wrong.endpoint += "/path";
  EXPECT_THAT([&] { (void)source::image_folder(remote("train"), {.storage = wrong}); },
              ThrowsMessage<Error>(HasSubstr("expected an endpoint such as")));
}

TEST_F(S3, CredentialsAreSignedAndDenialsSaySo) {
  const S3Server server(files_->path() / "train", {"--check-signatures"});
  const auto open = [&](const std::string& key, const std::string& secret) {
    ::setenv("AWS_ACCESS_KEY_ID", key.c_str(), 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", secret.c_str(), 1);
    const auto restore = [] {
      ::setenv("AWS_ACCESS_KEY_ID", "testing", 1);
      ::setenv("AWS_SECRET_ACCESS_KEY", "testing", 1);
    };
    try {
      auto source = source::image_folder("s3://photos", {.storage = server.options()});
      auto found = describe_all(source);
      restore();
      return found;
    } catch (...) {
      restore();
      throw;
    }
  };
  // Moto signs the requests itself, by Amazon's own code, and compares.
  EXPECT_EQ(open(server.access_key(), server.secret_key()),
            describe_all(source::image_folder(local("train"))));
  EXPECT_THAT(
      [&] { open(server.access_key(), "wrong"); },
      ThrowsMessage<Error>(AllOf(HasSubstr("bucket 'photos'"), HasSubstr("SignatureDoesNotMatch"),
                                 HasSubstr("those of the environment"))));
  EXPECT_THAT([&] { open("nobody", "wrong"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("denied"), HasSubstr("InvalidAccessKeyId"),
                                         HasSubstr("check the access key"))));
  // The answer to HEAD does not say why: that to the GET behind it does.
  const auto denied = [&] {
    (void)source::webdataset("s3://photos/a/x.tar", {.storage = server.options()});
  };
  EXPECT_THAT(denied, ThrowsMessage<Error>(AllOf(HasSubstr("InvalidAccessKeyId"),
                                                 Not(HasSubstr("check the path")))));
}

TEST_F(S3, CredentialsComeFromTheContainerAndTheInstance) {
  std::map<std::string, std::string> variables{
      {"AWS_CONTAINER_CREDENTIALS_FULL_URI", server_->endpoint() + "/_keys"}};
  const auto environment = [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  const storage::AwsProfile profile("", environment);
  EXPECT_EQ(storage::AwsCredentialChain(profile, environment).get()->access_key, "testing");
  variables = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT", server_->endpoint()}};
  storage::AwsCredentialChain instance(profile, environment);
  EXPECT_EQ(instance.get()->secret_key, "testing");
  EXPECT_EQ(instance.origin(), "the EC2 instance's role");
}

// Moto gives credentials of any role to any token, and checks who asks to assume one.
TEST_F(S3, CredentialsComeFromRolesAndWebIdentities) {
  const TemporaryFolder home;
  home.write("token", "a token\n");
  home.write("config",
             "[profile base]\naws_access_key_id = testing\naws_secret_access_key = testing\n"
             "[profile role]\nrole_arn = arn:aws:iam::123456789012:role/r\n"
             "source_profile = base\nexternal_id = a/b\nrole_session_name = me\n");
  std::map<std::string, std::string> variables;
  const auto environment = [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  const auto chain = [&](const std::map<std::string, std::string>& given) {
    variables = given;
    variables["AWS_ENDPOINT_URL_STS"] = server_->endpoint();
    variables["AWS_CONFIG_FILE"] = (home.path() / "config").string();
    // The node's own, which must not take their place.
    variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server_->endpoint();
    return std::make_unique<storage::AwsCredentialChain>(storage::AwsProfile("", environment),
                                                         environment);
  };
  const auto identity = chain({{"AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod"},
                               {"AWS_WEB_IDENTITY_TOKEN_FILE", (home.path() / "token").string()}});
  const auto first = identity->get();
  ASSERT_TRUE(first);
  EXPECT_THAT(first->access_key, testing::StartsWith("ASIA"));
  EXPECT_THAT(first->session_token, Not(testing::IsEmpty()));
  EXPECT_EQ(identity->origin(), "the web identity");
  EXPECT_EQ(identity->get()->access_key, first->access_key) << "asked again, though they last";

  const auto role = chain({{"AWS_PROFILE", "role"}});
  EXPECT_THAT(role->get()->access_key, testing::StartsWith("ASIA"));
  EXPECT_EQ(role->origin(), "the role of the profile 'role'");

  variables["AWS_ENDPOINT_URL_STS"] = "http://127.0.0.1:9";
  storage::AwsCredentialChain lost(storage::AwsProfile("role", environment), environment);
  EXPECT_THAT([&] { (void)lost.get(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("credentials of the role 'arn:aws:iam"),
                                         HasSubstr("127.0.0.1:9"), Not(HasSubstr("a%2Fb")))));
}

TEST_F(S3, TheCacheAnswersInTheServersPlaceAndIsNotTrusted) {
  const TemporaryFolder cache;
  auto cached = options();
  cached.cache = {.folder = cache.path(), .max_bytes = 1 << 20};
  const auto source = source::image_folder(remote("train"), {.storage = cached});
  const auto expected = describe_all(source);
  int before = server_->gets();
  EXPECT_EQ(describe_all(source), expected);
  EXPECT_EQ(server_->gets(), before);
  int entries = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.path())) {
    if (entry.path().extension() != ".object") continue;
    std::ofstream(entry.path(), std::ios::binary | std::ios::app) << "damage";
    ++entries;
  }
  EXPECT_EQ(entries, 4);
  EXPECT_EQ(describe_all(source), expected);
  EXPECT_EQ(server_->gets(), before + 4);
  before = server_->gets();
  EXPECT_EQ(describe_all(source), expected);
  EXPECT_EQ(server_->gets(), before);
}

}  // namespace
}  // namespace penstock
