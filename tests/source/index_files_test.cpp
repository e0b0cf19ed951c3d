// Where indexes are kept, and that no stale, damaged or half-written one is ever used.
#include "src/source/shards/index_files.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/tokens.hpp>

#include "src/source/shards/file_window.hpp"
#include "src/storage/storage.hpp"
#include "tests/source/index_file.hpp"
#include "tests/source/shards.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using test::describe_all;
using test::plain_tar;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class IndexFiles : public ::testing::Test {
 protected:
  SourcePtr open(IndexLocation location = IndexLocation::next_to_data) {
    return source::webdataset(data_.path(),
                              {.index = {.location = location, .cache = cache_.path()}});
  }
  std::vector<std::string> names(const fs::path& folder) {
    std::vector<std::string> all;
    if (!fs::exists(folder)) return all;
    for (const auto& entry : fs::directory_iterator(folder)) {
      all.push_back(entry.path().filename().string());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  static constexpr const char* kIndex = "a.tar.penstock-index";

  TemporaryFolder data_;
  TemporaryFolder cache_;
};

// A shard with the very size and time of `path`, and other samples. Only who trusts an index made
// before does not notice.
void change_behind_the_stamp(const fs::path& path, const std::string& contents) {
  const auto time = fs::last_write_time(path);
  ASSERT_EQ(fs::file_size(path), contents.size());
  std::ofstream(path, std::ios::binary) << contents;
  fs::last_write_time(path, time);
}

// It is not asked for between the reads of one shard otherwise.
TEST(FileWindow, EndsWhenTheWorkIsStopped) {
  class File final : public storage::StoredFile {
   public:
    storage::FileStamp stamp() const noexcept override { return {.bytes = 1 << 20}; }
    std::size_t window_bytes() const noexcept override { return 4096; }
    Result<void> read(std::uint64_t, std::span<std::byte>) const override {
      if (++reads == 3) stop.request_stop();
      return {};
    }
    mutable int reads = 0;
    mutable std::stop_source stop;
  };
  const File file;
  const std::string path = "a.tar";
  source::FileWindow window(file, path);
  const auto scan = [&] {
    for (std::uint64_t at = 0; at < window.file_bytes(); at += 4096) (void)window.at(at, 512);
  };
  EXPECT_THAT([&] { interruptible(file.stop.get_token(), scan); },
              ThrowsMessage<Error>(HasSubstr("the work was stopped")));
  EXPECT_EQ(file.reads, 3);
}

TEST_F(IndexFiles, TakeThePlaceOfRegularFilesOnly) {
  data_.write("a.tar", plain_tar(3, "n"));
  const fs::path index = data_.path() / kIndex;
  fs::create_symlink("elsewhere", index);
  EXPECT_EQ(open()->size(), 3U);
  EXPECT_TRUE(fs::is_symlink(index));
  EXPECT_THAT(names(data_.path()), ElementsAre("a.tar", kIndex));  // nothing behind the link
  EXPECT_THAT(names(cache_.path() / "indexes"), SizeIs(1));
  fs::remove(index);
  ASSERT_EQ(::mkfifo(index.c_str(), 0600), 0);
  EXPECT_EQ(open()->size(), 3U);
  EXPECT_TRUE(fs::is_fifo(index));
}

TEST_F(IndexFiles, OfASizeThatNoneHasAreMadeAnew) {
  data_.write("a.tar", plain_tar(3, "n"));
  (void)open();
  const fs::path index = data_.path() / kIndex;
  const auto bytes = fs::file_size(index);
  fs::resize_file(index, std::uintmax_t{1} << 42);  // sparse
  EXPECT_EQ(open()->size(), 3U);
  EXPECT_EQ(fs::file_size(index), bytes);
}

TEST_F(IndexFiles, AreKeptBesideTheShardAndUsed) {
  const auto path = data_.write("a.tar", plain_tar(3, "n"));
  const auto first = describe_all(open());
  EXPECT_THAT(names(data_.path()), ElementsAre("a.tar", kIndex));
  EXPECT_THAT(names(cache_.path()), IsEmpty());
  change_behind_the_stamp(path, plain_tar(3, "m"));
  EXPECT_EQ(open()->info(0).key, "n0") << "the index was not used";
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::nanoseconds(1000));
  EXPECT_EQ(open()->info(0).key, "m0") << "a stale index was used";
}

TEST_F(IndexFiles, FollowAShardThatIsReplaced) {
  data_.write("a.tar", plain_tar(3));
  EXPECT_EQ(open()->size(), 3U);
  const auto time = fs::last_write_time(data_ / "a.tar");
  data_.write("a.tar", plain_tar(5));
  fs::last_write_time(data_ / "a.tar", time);  // another size alone tells
  EXPECT_EQ(open()->size(), 5U);
  data_.write("b.tar", plain_tar(2));
  EXPECT_EQ(open()->size(), 7U);
}

TEST_F(IndexFiles, AreMadeAgainWhereverTheyAreDamaged) {
  const auto path = data_.write("a.tar", plain_tar(3, "n"));
  (void)open();
  const std::string good = test::read_text(data_ / kIndex);
  change_behind_the_stamp(path, plain_tar(3, "m"));
  for (std::size_t i = 0; i < good.size(); i += 3) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x04);
    test::rewrite(data_, kIndex, bad);
    EXPECT_EQ(open(IndexLocation::memory)->info(0).key, "m0") << "byte " << i;
    test::rewrite(data_, kIndex, good.substr(0, i));
    EXPECT_EQ(open(IndexLocation::memory)->info(0).key, "m0") << "cut at " << i;
  }
  test::rewrite(data_, kIndex, good + "x");
  EXPECT_EQ(open()->info(0).key, "m0");
  EXPECT_NE(test::read_text(data_ / kIndex), good + "x") << "a good index takes its place";
}

TEST_F(IndexFiles, OfAnotherKindOrWithoutTheLabelAreNotUsed) {
  const auto path =
      data_.write("a.tar", test::tar_member("a.jpg", "A") + test::tar_member("a.cls", "1") +
                               test::tar_member("a.lbl", "7") + test::tar_end());
  const auto with_label = [&](const char* extension) {
    return source::webdataset(path, {.fields = {{.name = "label",
                                                 .extensions = {extension},
                                                 .type = WebDatasetField::Type::integer}}});
  };
  (void)open();
  const auto before = fs::file_size(data_ / kIndex);
  EXPECT_EQ(with_label("lbl")->info(0).label, 7);
  const std::string both = test::read_text(data_ / kIndex);
  EXPECT_GT(both.size(), before);
  // The index now has both labels, so that the two users do not undo each other's.
  const auto time = fs::last_write_time(data_ / kIndex);
  EXPECT_EQ(with_label("cls")->info(0).label, 1);
  EXPECT_EQ(with_label("lbl")->info(0).label, 7);
  EXPECT_EQ(fs::last_write_time(data_ / kIndex), time);

  // Of a tar file, where a TFRecord file is asked for, without labels that would tell them apart.
  EXPECT_THAT(describe_all(source::tfrecord(path, {.fields = {{.name = "x", .features = {"f"}}},
                                                   .index = {.cache = cache_.path()}})),
              ElementsAre(HasSubstr("checksum of a record's length")));
}

TEST_F(IndexFiles, AreKeptInTheCacheWhereAsked) {
  data_.write("a.tar", plain_tar(3));
  EXPECT_EQ(open(IndexLocation::cache)->size(), 3U);
  EXPECT_THAT(names(data_.path()), ElementsAre("a.tar"));
  EXPECT_THAT(names(cache_ / "indexes"), ElementsAre(HasSubstr("-a.tar.penstock-index")));
  change_behind_the_stamp(data_ / "a.tar", plain_tar(3, "m"));
  EXPECT_EQ(open(IndexLocation::cache)->info(0).key, "n0") << "the cache was not used";
  EXPECT_EQ(open(IndexLocation::memory)->info(0).key, "n0") << "the cache was not used";
}

TEST_F(IndexFiles, AreKeptNowhereWhereAsked) {
  data_.write("a.tar", plain_tar(3));
  EXPECT_EQ(open(IndexLocation::memory)->size(), 3U);
  EXPECT_THAT(names(data_.path()), ElementsAre("a.tar"));
  EXPECT_THAT(names(cache_.path()), IsEmpty());
}

TEST_F(IndexFiles, GoToTheCacheWhereTheFolderCannotBeWritten) {
  data_.write("a.tar", plain_tar(3));
  fs::permissions(cache_.path(), fs::perms{0777});
  const auto said = test::without_root([&] {
    const std::uint64_t size = open()->size();
    return fmt::format("{} {} {}", size, names(data_.path()).size(),
                       names(cache_ / "indexes").size());
  });
  if (!said) GTEST_SKIP() << "cannot become another user here";
  EXPECT_EQ(*said, "3 1 1");
}

TEST_F(IndexFiles, AreDoneWithoutWhereNothingCanBeWritten) {
  data_.write("a.tar", plain_tar(3));
  fs::permissions(cache_.path(), fs::perms{0555});
  const auto said = test::without_root(
      [&] { return fmt::format("{} {}", open()->size(), describe_all(open()).at(2)); });
  if (!said) GTEST_SKIP() << "cannot become another user here";
  EXPECT_THAT(*said, AllOf(HasSubstr("3 image="), HasSubstr("label=2")));
}

TEST_F(IndexFiles, SayWhichShardCannotBeRead) {
  data_.write("a.tar", plain_tar(3));
  data_.write("b.tar", plain_tar(3));
  fs::permissions(data_ / "b.tar", fs::perms{0});
  const auto said = test::without_root([&] { return std::to_string(open()->size()); });
  if (!said) GTEST_SKIP() << "cannot become another user here";
  EXPECT_THAT(*said, AllOf(HasSubstr("b.tar: Permission denied"), HasSubstr("permissions")));

  fs::permissions(data_.path(), fs::perms{0});
  const auto folder = test::without_root([&] { return std::to_string(open()->size()); });
  EXPECT_THAT(*folder, HasSubstr("Permission denied"));
  fs::permissions(data_.path(), fs::perms{0755});
}

TEST_F(IndexFiles, AreNotMadeOfWhatIsNoRegularFile) {
  ASSERT_EQ(::mkfifo((data_ / "a.tar").c_str(), 0666), 0);
  EXPECT_THAT([&] { (void)open(); }, ThrowsMessage<Error>(HasSubstr("a pipe, socket or device")));
  fs::remove(data_ / "a.tar");
  fs::create_symlink("nowhere", data_ / "a.tar");
  EXPECT_THAT([&] { (void)open(); }, ThrowsMessage<Error>(HasSubstr("cannot stat the shard")));
}

TEST_F(IndexFiles, AreOneForAllWhereProcessesMakeThemAtOnce) {
  constexpr int kShards = 12;
  for (int i = 0; i < kShards; ++i) {
    data_.write(fmt::format("{:02}.tar", i), plain_tar(20, fmt::format("s{}-", i)));
  }
  const auto expected = describe_all(open(IndexLocation::memory));
  for (int round = 0; round < 5; ++round) {
    for (const std::string& name : names(data_.path())) {
      if (name.ends_with("index")) fs::remove(data_ / name);
    }
    std::array<int, 2> gate{};
    ASSERT_EQ(::pipe(gate.data()), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      ::close(gate[1]);
      char end = 0;
      (void)!::read(gate[0], &end, 1);  // until all are there
      int code = 1;
      try {
        code = describe_all(open()) == expected ? 0 : 2;
      } catch (...) {
      }
      ::_exit(code);
    }
    ::close(gate[0]);
    ::close(gate[1]);
    for (const pid_t child : children) {
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    EXPECT_THAT(names(data_.path()), SizeIs(2 * kShards)) << "and nothing is left over";
    EXPECT_EQ(describe_all(open()), expected);
  }
}

TEST_F(IndexFiles, AreMadeByThreadsAtOnceToo) {
  for (int i = 0; i < 6; ++i) data_.write(fmt::format("{}.tar", i), plain_tar(20));
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { good += open()->size() == 120 ? 1 : 0; });
    }
  }
  EXPECT_EQ(good, 4);
  EXPECT_THAT(names(data_.path()), SizeIs(12));
}

// A process that was killed while it wrote leaves a part of an index under another name.
TEST_F(IndexFiles, LeaveNothingOfProcessesThatWereKilled) {
  data_.write("a.tar", plain_tar(3));
  data_.write("a.tar.penstock-index.tmp.0123456789abcdef", "half");
  data_.write("b.tar.penstock-index.tmp.fresh", "being written");
  const auto old = fs::last_write_time(data_ / "a.tar") - std::chrono::hours(2);
  fs::last_write_time(data_ / "a.tar.penstock-index.tmp.0123456789abcdef", old);
  EXPECT_EQ(open()->size(), 3U);
  EXPECT_THAT(names(data_.path()), ElementsAre("a.tar", kIndex, "b.tar.penstock-index.tmp.fresh"));
}

struct IndexedKind {
  std::string name;
  std::string contents;
  std::function<SourcePtr(const fs::path&)> open;
};

std::vector<IndexedKind> indexed_kinds() {
  return {{"a.tar", plain_tar(3), [](const fs::path& path) { return source::webdataset(path); }},
          {"a.tfrecord",
           test::frame(test::plain_example("A", 1)) + test::frame(test::plain_example("B", 2)),
           [](const fs::path& path) { return source::tfrecord(path); }},
          {"a.bin", std::string("\1\0\0\0\2\0", 6),
           [](const fs::path& path) { return source::token_files(path, {.document_end = 0}); }}};
}

TEST_F(IndexFiles, OfAnotherVersionAreMadeAgainWhateverTheyAreOf) {
  for (const IndexedKind& kind : indexed_kinds()) {
    SCOPED_TRACE(kind.name);
    const auto path = data_.write(kind.name, kind.contents);
    const SourcePtr source = kind.open(path);
    const std::string index = kind.name + ".penstock-index";
    const std::string good = test::read_text(data_ / index);
    std::uint32_t version = 0;
    std::memcpy(&version, good.data() + test::kIndexVersionAt, sizeof version);
    ASSERT_GT(version, 0U);
    ASSERT_LT(version, 100U);
    for (const std::uint32_t other : {version - 1, version + 1, 0U, UINT32_MAX}) {
      std::string changed = good;
      std::memcpy(changed.data() + test::kIndexVersionAt, &other, sizeof other);
      test::seal_index(std::as_writable_bytes(std::span(changed)));
      ASSERT_NE(changed, good);
      test::rewrite(data_, index, changed);
      EXPECT_EQ(kind.open(path)->fingerprint(), source->fingerprint());
      EXPECT_EQ(test::read_text(data_ / index), good) << "version " << other;
    }
    // With the checksums written anew, and the version that it had, it is used.
    std::string same = good;
    test::seal_index(std::as_writable_bytes(std::span(same)));
    EXPECT_EQ(same, good);
  }
}

// Each label takes room for each record.
TEST_F(IndexFiles, HandOnAFewLabelsAndNotThousands) {
  const auto path = data_.write("a.tar", plain_tar(3));
  (void)open();
  const auto decoded = [&] {
    const std::string file = test::read_text(data_ / kIndex);
    return source::ShardIndex::of_encoded(std::as_bytes(std::span(file)));
  };
  const source::ShardStamp stamp = decoded().stamp();
  source::ShardContents contents;
  contents.first_member_ends = {1};
  contents.members = {{.begin = 512, .bytes = 1}};
  for (int i = 0; i < 1000; ++i)
    contents.labels.push_back({fmt::format("l{}", i), {source::LabelState::missing}, {0}});
  const auto bytes = source::ShardIndex::encode(source::ShardKind::tar, stamp, 1, contents);
  test::rewrite(data_, kIndex, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  EXPECT_EQ(open()->size(), 3U);
  EXPECT_LT(decoded().label_names().size(), 100U);
  EXPECT_GT(decoded().label_names().size(), 16U);
}

TEST_F(IndexFiles, KeepTheNumbersOfARecordWhereverTheyAre) {
  const auto path = data_.write("a.tar", plain_tar(30));
  const auto scanned = describe_all(open(IndexLocation::memory));
  (void)open();
  EXPECT_EQ(describe_all(open()), scanned);
  EXPECT_EQ(open()->fingerprint(), open(IndexLocation::memory)->fingerprint());
}

TEST_F(IndexFiles, OneThatAnotherBuildWouldMakeBetterIsNotKept) {
  data_.write("a.parquet", "any bytes");
  const std::vector<std::string> shards{(data_.path() / "a.parquet").string()};
  bool is_complete = false;
  const source::IndexRecipe recipe{
      .kind = source::ShardKind::parquet,
      .scan = [&](const auto&, const auto&, const auto&) -> source::ScannedShard {
        return {.records = 0, .contents = {}, .is_complete = is_complete};
      }};
  const storage::Storage storage;
  (void)source::open_indexes(shards, recipe, {.cache = cache_.path()}, storage);
  EXPECT_THAT(names(data_.path()), ElementsAre("a.parquet"));
  EXPECT_THAT(names(cache_.path()), IsEmpty());
  is_complete = true;
  (void)source::open_indexes(shards, recipe, {.cache = cache_.path()}, storage);
  EXPECT_THAT(names(data_.path()), ElementsAre(".a.parquet.penstock-index", "a.parquet"));
}

}  // namespace
}  // namespace penstock
