// penstock-prepare to a bucket: what a folder would hold, resumed after kill -9, and never half of a shard.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <penstock/core/error.hpp>
#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "src/storage/storage.hpp"
#include "tests/source/files.hpp"
#include "tests/storage/s3_server.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using test::S3Server;
using test::TemporaryFolder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::ThrowsMessage;

constexpr int kPrepared = 20;
constexpr const char* kOutput = "s3://photos/out/prepared";

class S3Prepare : public ::testing::Test {
 protected:
  void SetUp() override {
    PENSTOCK_REQUIRE_MOTO();
    for (const auto& [name, value] :
         {std::pair("AWS_ACCESS_KEY_ID", "testing"), std::pair("AWS_SECRET_ACCESS_KEY", "testing"),
          std::pair("no_proxy", "127.0.0.1")})
      ::setenv(name, value, 1);
    ::setenv("PENSTOCK_CACHE", (files_ / "cache").c_str(), 1);
    fs::create_directories(files_ / "served");
  }
  void TearDown() override { ::unsetenv("PENSTOCK_CACHE"); }

  static std::string photos() {
    static const fs::path kMade = source::synthetic_image_folder(
        {.count = kPrepared, .cache = fs::temp_directory_path() / "penstock-test"});
    return kMade.string();
  }
  static std::map<std::string, std::string> local(const fs::path& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      all[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
    }
    return all;
  }
  // Of objects below out/prepared/ the names and sizes.
  static std::map<std::string, std::uint64_t> listed(const S3Server& server) {
    std::map<std::string, std::uint64_t> all;
    const storage::ObjectName folder{"photos", "out/prepared/"};
    storage::Storage(server.options())
        .objects(folder)
        .list(folder, true, [&](storage::ListedObject&& object) {
          all[fs::path(object.key).filename().string()] = object.stamp.bytes;
          return true;
        });
    return all;
  }
  // Texts of those that lie beside shards in a folder, too.
  static std::map<std::string, std::string> remote(const S3Server& server) {
    std::map<std::string, std::string> all;
    const storage::Storage objects(server.options());
    for (const auto& [name, bytes] : listed(server))
      all[name] = objects.read_text(std::string(kOutput) + "/" + name);
    return all;
  }
  static void without_indexes(std::map<std::string, std::string>& all) {
    std::erase_if(all, [](const auto& one) { return one.first.ends_with(".penstock-index"); });
  }
  static std::set<std::string> upload_ids(const S3Server& server) {
    std::set<std::string> ids;
    for (const auto& upload :
         storage::Storage(server.options()).writable_objects()->list_uploads({"photos", ""}))
      ids.insert(upload.id);
    return ids;
  }
  static std::size_t open_uploads(const S3Server& server) { return upload_ids(server).size(); }

  TemporaryFolder files_;
};

TEST_F(S3Prepare, IndexesInABucketAreComparedWithTheirSource) {
  const S3Server server(files_ / "served");
  const Preparation work(photos(), kOutput,
                         {.shard_samples = 6, .threads = 2, .storage = server.options()});
  (void)work.make(0);
  EXPECT_THAT(work.differences(0), IsEmpty());
  const std::string index = std::string(kOutput) + "/data-000000.tar.penstock-index";
  const storage::Storage objects(server.options());
  std::string text = objects.read_text(index);
  text.back() = static_cast<char>(text.back() ^ 1);
  const auto file = objects.create(index);
  file->write(std::as_bytes(std::span(text)));
  file->finish();
  EXPECT_THAT(work.differences(0), ElementsAre("'" + index + "': it differs"));
}

TEST_F(S3Prepare, ABucketHoldsTheParquetFilesThatAFolderWould) {
  const S3Server server(files_ / "served");
  PrepareOptions options{.shard_samples = 6,
                         .format = PrepareFormat::parquet,
                         .threads = 2,
                         .storage = server.options()};
  const PrepareReport there = prepare_shards(photos(), kOutput, options);
  const std::string here = (files_ / "here").string();
  EXPECT_EQ(there, prepare_shards(photos(), here, options));
  auto objects = remote(server);
  auto files = local(here);
  EXPECT_EQ(objects.size(), files.size());
  EXPECT_TRUE(objects.contains(".data-00003-of-00004.parquet.penstock-index"));
  without_indexes(objects);
  without_indexes(files);
  EXPECT_EQ(objects, files);
  EXPECT_EQ(open_uploads(server), 0U);
  const Preparation plan(photos(), kOutput, options);
  for (const PrepareShard& shard : plan.shards())
    EXPECT_THAT(plan.differences(shard.number), IsEmpty());

  // Read with the indexes that lie there: nothing is scanned.
  fs::remove_all(files_ / "cache");
  const int before = server.gets();
  const auto source = source::images(kOutput, {.storage = server.options()});
  EXPECT_EQ(source->size(), kPrepared);
  // The four indexes, and the footer of the first file, for the names of the columns and for their types, in two reads.
  EXPECT_LE(server.gets() - before, 8);
  EXPECT_EQ(source->fingerprint(), source::images(here)->fingerprint());
  MemoryJpegIndex index;
  EXPECT_EQ(load_jpeg_index(index, kOutput, server.options()), there.indexed);
  EXPECT_EQ(
      jpeg_indices_beside(std::string(kOutput) + "/data-00001-of-00004.parquet", server.options()),
      kOutput);
}

TEST_F(S3Prepare, ABucketHoldsWhatAFolderWould) {
  const S3Server server(files_ / "served");
  PrepareOptions options{.shard_samples = 6, .threads = 2, .storage = server.options()};
  const PrepareReport there = prepare_shards(photos(), kOutput, options);
  const PrepareReport here = prepare_shards(photos(), (files_ / "here").string(), options);
  EXPECT_EQ(there, here);
  auto objects = remote(server);
  auto files = local(files_ / "here");
  EXPECT_EQ(objects.size(), files.size());
  without_indexes(objects);
  without_indexes(files);
  EXPECT_EQ(objects, files);
  EXPECT_EQ(open_uploads(server), 0U);

  // Read with the indexes that lie there: nothing is scanned, which would read all of it.
  fs::remove_all(files_ / "cache");
  const int before = server.gets();
  const auto source = source::webdataset(kOutput, {.storage = server.options()});
  EXPECT_EQ(source->size(), kPrepared);
  EXPECT_LE(server.gets() - before, 4);
  EXPECT_EQ(source->fingerprint(), source::webdataset((files_ / "here").string())->fingerprint());

  MemoryJpegIndex index;
  EXPECT_EQ(load_jpeg_index(index, kOutput, server.options()), there.indexed);
  EXPECT_EQ(jpeg_indices_beside(kOutput, server.options()), kOutput);
  EXPECT_EQ(
      jpeg_indices_beside(std::string(kOutput) + "/data-{000000..000003}.tar", server.options()),
      kOutput);
  EXPECT_EQ(jpeg_indices_beside("s3://photos/other", server.options()), std::nullopt);
  EXPECT_THAT([&] { (void)load_jpeg_index(index, "s3://photos/other", server.options()); },
              ThrowsMessage<Error>(HasSubstr("no *.jpegindex file")));

  // Again: nothing is missing, and what was begun is gone, but not what others began; otherwise made: refused.
  const auto store = storage::Storage(server.options()).writable_objects();
  for (const char* key : {"out/prepared/data-000001.tar", "out/prepared/another.tar"})
    ASSERT_TRUE(store->begin_upload({"photos", key}, "mark"));
  const Preparation same(photos(), kOutput, options);
  EXPECT_THAT(PrepareRun(same).missing(), IsEmpty());
  EXPECT_EQ(open_uploads(server), 1U);
  EXPECT_THAT(same.differences(2), IsEmpty());
  options.interval = 16;
  const Preparation other(photos(), kOutput, options);
  EXPECT_THAT([&] { PrepareRun{other}; },
              ThrowsMessage<Error>(HasSubstr("interval 8, and now it is 16")));
  const Preparation among(photos(), "s3://photos/out/", options);
  EXPECT_THAT([&] { PrepareRun{among}; }, ThrowsMessage<Error>(HasSubstr("is not empty")));
}

#ifdef PENSTOCK_PREPARE
// 40 shards' worth of parts: files of a megabyte that are packed as they are.
TEST_F(S3Prepare, GoesOnAfterKill9AndNothingHalfDoneIsEverListed) {
  std::mt19937 random(1);
  for (int k = 0; k < 60; ++k) {
    std::string bytes = "\x89PNG";
    while (bytes.size() < 1'000'000) bytes += static_cast<char>(random());
    files_.write(fmt::format("large/{:02}.png", k), bytes);
  }
  const std::string large = (files_ / "large").string();
  PrepareOptions options{.shard_samples = 20, .threads = 2};
  (void)prepare_shards(large, (files_ / "here").string(), options);
  auto files = local(files_ / "here");
  without_indexes(files);

  const S3Server server(files_ / "served", {"--hang-parts"});
  ::setenv("AWS_ENDPOINT_URL", server.endpoint().c_str(), 1);
  // OpenSSL's cleanup at the program's end forgets what it keeps for oneTBB's threads, which live on: no leak of ours.
  ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
  const auto start = [&] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl(PENSTOCK_PREPARE, PENSTOCK_PREPARE, large.c_str(), kOutput, "--shard-samples", "20",
              "--quiet", nullptr);
      ::_exit(127);
    }
    return child;
  };
  const auto require_whole = [&] {
    for (const auto& [name, bytes] : listed(server))
      if (name.ends_with(".tar")) {
        ASSERT_EQ(bytes, files.at(name).size()) << name;
      }
  };
  // Each run is killed some time after it has begun an upload. The first one's parts get no answer:
  // it is in the middle of it.
  const auto begun_beside = [&](const std::set<std::string>& before) {
    const std::set<std::string> now = upload_ids(server);
    return std::any_of(now.begin(), now.end(),
                       [&](const std::string& id) { return !before.contains(id); });
  };
  std::size_t left = 0;
  int unfinished = 0;
  for (int k = 0; k < 8; ++k) {
    const std::set<std::string> before = upload_ids(server);
    const pid_t child = start();
    int status = 0;
    bool ended = false;
    while (!ended && !begun_beside(before)) ended = ::waitpid(child, &status, WNOHANG) == child;
    if (!ended) {
      if (k > 0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
    }
    if (k == 0) server.answer_parts();
    unfinished += WIFSIGNALED(status) ? 1 : 0;
    require_whole();
    left += open_uploads(server);
  }
  const pid_t child = start();
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) require_whole();
  ::unsetenv("AWS_ENDPOINT_URL");
  ::unsetenv("ASAN_OPTIONS");
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GT(unfinished, 0);
  EXPECT_GT(left, 0U);  // else no run was killed while it wrote
  EXPECT_EQ(open_uploads(server), 0U);
  auto objects = remote(server);
  without_indexes(objects);
  EXPECT_TRUE(objects == files);
}
#endif

}  // namespace
}  // namespace penstock
