// MDS shards that are compressed with zstd: decompressed once, within a bounded folder, and compared with what index.json says.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/process.hpp>
#include <penstock/source/mds.hpp>

#include "src/source/mds/shard_scan.hpp"
#include "src/source/parquet/codec.hpp"
#include "src/storage/local/file.hpp"
#include "tests/project_path.hpp"
#include "tests/source/mds_files.hpp"
#include "tests/source/shards.hpp"

namespace penstock {
namespace {

using test::describe_all;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

namespace fs = std::filesystem;

fs::path zstd_fixture(const std::string& name) {
  return test::project_path("tests/source/mds/files/" + name);
}

bool has_zstd() {
  const auto codecs = source::parquet_codecs();
  return std::ranges::find(codecs, source::ParquetCodec::zstd) != codecs.end();
}

constexpr std::size_t kZstdHead = 9;       // of the frame
constexpr std::size_t kZstdBlockHead = 3;  // of each block
constexpr std::size_t kZstdBlock = 50'000;

// A zstd frame of blocks that are stored as they are.
std::string stored_as_zstd(const std::string& raw) {
  std::string frame =
      "\x28\xB5\x2F\xFD\xA0" + test::mds_bytes(static_cast<std::uint32_t>(raw.size()));
  for (std::size_t at = 0; at < raw.size(); at += kZstdBlock) {
    const std::string block = raw.substr(at, kZstdBlock);
    const bool is_last = at + block.size() == raw.size();
    frame += test::mds_bytes(static_cast<std::uint32_t>(block.size() << 3 | (is_last ? 1 : 0)))
                 .substr(0, kZstdBlockHead) +
             block;
  }
  return frame;
}

// A file on a server that is gone once so many bytes were read.
class PartlyReadable final : public storage::StoredFile {
 public:
  PartlyReadable(std::string bytes, std::uint64_t readable)
      : bytes_(std::move(bytes)), readable_(readable) {}
  [[nodiscard]] storage::FileStamp stamp() const noexcept override {
    return {.bytes = bytes_.size(), .version = 1};
  }
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset + into.size() > readable_) return Fault{.reason = "the server is away"};
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return {};
  }
  [[nodiscard]] std::size_t window_bytes() const noexcept override { return 4096; }

 private:
  std::string bytes_;
  std::uint64_t readable_;
};

class MdsZstd : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_zstd()) GTEST_SKIP() << "this build has no libzstd";
    fs::copy(zstd_fixture("zstd"), folder_ / "data");
  }
  [[nodiscard]] MdsOptions options(std::uint64_t unpacked_bytes = 1 << 20) const {
    return {.unpacked_bytes = unpacked_bytes,
            .index = {.location = IndexLocation::memory, .cache = folder_ / "cache"}};
  }
  [[nodiscard]] SourcePtr open(std::uint64_t unpacked_bytes = 1 << 20) const {
    return source::mds(folder_ / "data", options(unpacked_bytes));
  }
  // Names and bytes of the decompressed shards.
  [[nodiscard]] std::vector<fs::path> unpacked() const {
    std::vector<fs::path> files;
    if (!fs::exists(folder_ / "cache" / "shards")) return files;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache" / "shards"))
      if (entry.path().filename() != ".lock") files.push_back(entry.path());
    return files;
  }
  static ino_t inode_of(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_ino;
  }
  TemporaryFolder folder_;
};

TEST_F(MdsZstd, RowsKeysAndFingerprintAreThoseOfTheSameShardsUncompressed) {
  const SourcePtr plain =
      source::mds(zstd_fixture("unzipped"), {.index = {.location = IndexLocation::memory}});
  const SourcePtr packed = open();
  EXPECT_TRUE(unpacked().empty());  // no shard is decompressed before a row needs it
  ASSERT_EQ(packed->size(), plain->size());
  EXPECT_EQ(describe_all(packed), describe_all(plain));
  EXPECT_EQ(packed->fingerprint(), plain->fingerprint());
  for (std::uint64_t row = 0; row < plain->size(); ++row) {
    EXPECT_EQ(packed->info(row).key, plain->info(row).key);
    EXPECT_EQ(packed->label(row), plain->label(row));
    EXPECT_EQ(packed->label(row), static_cast<std::int64_t>(row % 3));
  }
  EXPECT_EQ(unpacked().size(), 3U);
  for (const fs::path& file : unpacked()) {
    const std::string name = file.filename().string();
    EXPECT_EQ(test::read_text(file),
              test::read_text(zstd_fixture("unzipped") / name.substr(name.find('-') + 1, 15)));
  }
}

TEST_F(MdsZstd, AShardIsDecompressedOnceByAllThreadsAndOpenings) {
  const auto read_by_threads = [&] {
    std::vector<std::vector<std::string>> found(4);
    const SourcePtr source = open();
    std::vector<std::jthread> threads;
    for (auto& one : found) threads.emplace_back([&] { one = describe_all(source); });
    threads.clear();
    return found;
  };
  const auto rows = read_by_threads()[0];
  const auto files = unpacked();
  ASSERT_EQ(files.size(), 3U);
  std::vector<ino_t> inodes;  // a file that is made again has another
  for (const fs::path& file : files) inodes.push_back(inode_of(file));
  for (const auto& found : read_by_threads()) EXPECT_EQ(found, rows);
  EXPECT_EQ(unpacked().size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) EXPECT_EQ(inode_of(files[i]), inodes[i]);
  // One that has another size is made again.
  fs::resize_file(files[0], 10);
  EXPECT_EQ(describe_all(open()), rows);
  EXPECT_GT(fs::file_size(files[0]), 10U);
}

TEST_F(MdsZstd, TheRoomForDecompressedShardsIsBoundedAndChangesNoRow) {
  const auto rows = describe_all(open());
  for (const fs::path& file : unpacked()) fs::remove(file);
  const SourcePtr source = open(1300);  // one shard at a time
  Record record;
  for (std::uint64_t i = 0; i < source->size(); ++i) {
    const std::uint64_t row = i * 11 % source->size();
    EXPECT_EQ(test::describe(*source, row, record), rows[row]);
    std::uint64_t bytes = 0;
    for (const fs::path& file : unpacked()) bytes += fs::file_size(file);
    EXPECT_LE(bytes, 1300U);
  }
  const auto none = describe_all(open(100));
  EXPECT_THAT(none[0], HasSubstr("when decompressed, more than unpacked_bytes = 100"));
}

TEST_F(MdsZstd, TheShardThatWasOpenedLongestAgoIsRemovedAndTimesOfChangeStay) {
  constexpr std::uint64_t kRoomForTwo = 2400;
  Record record;
  const auto read = [&](std::uint64_t row) {
    EXPECT_THAT(test::describe(*open(kRoomForTwo), row, record), Not(StartsWith("fault: ")));
  };
  read(0);
  const fs::path first = unpacked().at(0);
  read(10);
  auto both = unpacked();
  ASSERT_EQ(both.size(), 2U);
  const fs::path second = both[0] == first ? both[1] : both[0];
  const auto changed = fs::last_write_time(first);
  const auto set_used = [](const fs::path& path, std::time_t seconds) {
    const timespec times[2] = {{seconds, 0}, {0, UTIME_OMIT}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  };
  set_used(first, 1000);
  set_used(second, 2000);
  read(0);  // the first one is used again
  read(22);
  EXPECT_TRUE(fs::exists(first));
  EXPECT_FALSE(fs::exists(second));
  EXPECT_EQ(fs::last_write_time(first), changed);
}

TEST_F(MdsZstd, ADecompressedShardBesideTheCompressedOneIsReadInItsPlace) {
  const auto rows = describe_all(open());
  for (const fs::path& file : unpacked()) fs::remove(file);
  for (const char* name : {"shard.00000.mds", "shard.00001.mds", "shard.00002.mds"}) {
    fs::copy(zstd_fixture("unzipped") / name, folder_ / "data" / name);
    fs::remove(folder_ / "data" / (std::string(name) + ".zstd"));
  }
  EXPECT_EQ(describe_all(open()), rows);
  EXPECT_TRUE(unpacked().empty());
}

TEST_F(MdsZstd, DamageIsAFaultOfTheShardsRows) {
  const auto rows = describe_all(open());
  for (const fs::path& file : unpacked()) fs::remove(file);
  const fs::path shard = folder_ / "data" / "shard.00001.mds.zstd";
  const std::string good = test::read_text(shard);
  int faults = 0;
  for (std::size_t at = 0; at < good.size(); at += 5) {
    std::string broken = good;
    broken[at] = static_cast<char>(broken[at] ^ 0x44);
    std::ofstream(shard, std::ios::binary) << broken;
    try {
      const auto found = describe_all(open());
      for (std::size_t row = 0; row < rows.size(); ++row) {
        const bool is_fault = found[row].starts_with("fault: ");
        faults += is_fault ? 1 : 0;
        EXPECT_TRUE(found[row] == rows[row] ||
                    (is_fault && found[row].find("shard.00001") != std::string::npos))
            << at << " " << row;
      }
    } catch (const Error& error) {  // the header cannot be read
      EXPECT_THAT(error.what(), HasSubstr("shard.00001.mds.zstd"));
    }
  }
  EXPECT_GT(faults, 0);
  // Cut short, and longer.
  std::ofstream(shard, std::ios::binary) << good.substr(0, good.size() / 2);
  EXPECT_THAT([&] { (void)open(); }, ThrowsMessage<Error>(HasSubstr("as index.json says")));
}

TEST_F(MdsZstd, WhatDecompressesToAnotherSizeOrHashIsAFault) {
  const fs::path index = folder_ / "data" / "index.json";
  const std::string good = test::read_text(index);
  const auto with = [&](const std::string& key, const auto& change) {
    std::string text = good;
    const std::size_t at = text.find(key) + key.size();
    text[at] = change(text[at]);
    test::rewrite(folder_, "data/index.json", text);
    return describe_all(open())[0];
  };
  const std::string key = "\"xxh3_64\": \"";
  ASSERT_NE(good.find(key), good.npos);
  EXPECT_THAT(with(key, [](char c) { return c == '0' ? '1' : '0'; }),
              HasSubstr("when decompressed it has another xxh3_64 than index.json says"));
  const auto raw = good.find("\"raw_data\"");
  const auto digits = good.find("\"bytes\": ", raw) + 9;
  std::string text = good;
  text[digits] = '9';
  test::rewrite(folder_, "data/index.json", text);
  EXPECT_THAT(describe_all(open())[0], HasSubstr("when decompressed, as index.json says, found"));
}

TEST_F(MdsZstd, AReadThatFailsEndsTheIndexingAndDamageLeavesTheLabelsBehindItUnknown) {
  constexpr std::size_t kRows = 8;
  const std::vector<test::MdsTestColumn> columns{{"image", "jpeg"}, {"label", "int", 8}};
  std::vector<test::MdsTestRow> rows;
  for (std::size_t row = 0; row < kRows; ++row)
    rows.push_back({std::string(30'000, 'i'), test::mds_bytes(static_cast<std::int64_t>(row))});
  const std::string raw = test::mds_shard(columns, rows);
  const std::string packed = stored_as_zstd(raw);
  const source::MdsColumns all(
      {source::mds_column_type("image", "jpeg"), source::mds_column_type("label", "int")});
  const std::string label = source::name_of_mds_integers("label");
  const auto scan = [&](std::string bytes, std::uint64_t readable) {
    source::MdsShard shard;
    shard.rows = kRows;
    shard.raw = {.name = "shard.00000.mds", .bytes = raw.size()};
    shard.zipped = {.name = "shard.00000.mds.zstd", .bytes = bytes.size()};
    const PartlyReadable file(std::move(bytes), readable);
    return source::scan_mds_shard(file, "data/shard.00000.mds.zstd", shard, all, {&label, 1})
        .contents.labels.at(0);
  };
  const auto known = [](const source::ShardContents::Labels& labels) {
    return std::ranges::count(labels.states, source::LabelState::known);
  };
  const auto whole = scan(packed, packed.size());
  EXPECT_EQ(known(whole), std::int64_t{kRows});
  EXPECT_EQ(whole.values.back(), std::int64_t{kRows} - 1);
  // What cannot be read now may be read the next time: an index without its labels would be kept.
  EXPECT_THAT(
      [&] { (void)scan(packed, 100'000); },
      ThrowsMessage<Error>(AllOf(HasSubstr("cannot index the shard data/shard.00000.mds.zstd"),
                                 HasSubstr("the server is away"))));
  std::string broken = packed;
  broken[kZstdHead + 2 * (kZstdBlockHead + kZstdBlock)] = '\x06';  // a type that no block has
  for (const std::string& bytes : {broken, packed.substr(0, packed.size() / 2)}) {
    const auto labels = scan(bytes, bytes.size());
    EXPECT_GT(known(labels), 0);
    EXPECT_LT(known(labels), std::int64_t{kRows});
  }
}

TEST_F(MdsZstd, TemporaryFilesOfAKilledProcessWithTheSameIdAreNotInTheWay) {
  const auto rows = describe_all(open());
  for (const fs::path& file : unpacked()) {
    fs::remove(file);
    // As that process numbered them, or may have.
    for (int i = 0; i < 100; ++i)
      std::ofstream(fmt::format("{}.tmp.{:x}.{:x}", file.string(), ::getpid(), i));
  }
  EXPECT_EQ(describe_all(open()), rows);
}

TEST_F(MdsZstd, ADecompressedShardThatCannotBeReadIsOpenedAgain) {
  const SourcePtr source = open();
  Record record;
  const std::string row = test::describe(*source, 0, record);
  ASSERT_THAT(row, Not(StartsWith("fault: ")));
  fs::resize_file(unpacked().at(0), 10);
  EXPECT_THAT(test::describe(*source, 0, record), StartsWith("fault: "));
  EXPECT_EQ(test::describe(*source, 0, record), row);
}

TEST_F(MdsZstd, AReadThatIsInterruptedWaitsForNoOtherProcess) {
  const SourcePtr source = open();
  fs::create_directories(folder_ / "cache" / "shards");
  const storage::FileDescriptor lock(
      ::open((folder_ / "cache" / "shards" / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  struct flock all {};
  all.l_type = F_WRLCK;
  all.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(lock.get(), F_OFD_SETLK, &all), 0);
  std::stop_source stop;
  stop.request_stop();
  Record record;
  interruptible(stop.get_token(), [&] {
    EXPECT_THAT(test::describe(*source, 0, record), HasSubstr("the work was stopped"));
  });
  EXPECT_TRUE(unpacked().empty());
}

TEST_F(MdsZstd, AFolderThatCannotBeWrittenIsAFaultThatSaysWhatToDo) {
  folder_.write("file", "no folder");
  MdsOptions options = this->options();
  options.index.cache = folder_ / "file";
  EXPECT_THAT(describe_all(source::mds(folder_ / "data", options))[0],
              AllOf(HasSubstr("cannot write a decompressed shard"), HasSubstr("PENSTOCK_CACHE")));
}

}  // namespace
}  // namespace penstock
