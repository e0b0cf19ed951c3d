// Indexes of Parquet files that several threads make together: those that one thread makes, and its errors.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/source/parquet/parquet_fields.hpp"
#include "src/source/parquet/table_scan.hpp"
#include "src/source/shards/shard_index.hpp"
#include "src/storage/storage.hpp"
#include "tests/project_path.hpp"

namespace penstock {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr std::size_t kThreads = 4;

// A file in memory, whose windows are so small that each column chunk is scanned by itself.
class SmallWindows final : public storage::StoredFile {
 public:
  explicit SmallWindows(std::string bytes) : bytes_(std::move(bytes)) {}

  storage::FileStamp stamp() const noexcept override { return {.bytes = bytes_.size()}; }
  std::size_t window_bytes() const noexcept override { return 16; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override {
    ++reads;
    if (reads == stops_at) stop.request_stop();
    if (offset + into.size() > fails_from && offset < fails_before)
      return Fault{.reason = "the disk is broken", .file = "f", .offset = offset};
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return {};
  }

  std::uint64_t fails_from = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t fails_before = 0;
  int stops_at = -1;
  mutable std::stop_source stop;
  mutable std::atomic<int> reads = 0;

 private:
  std::string bytes_;
};

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path file_named(const std::string& name) {
  return test::project_path("tests/source/parquet/files/" + name);
}

// All that an index can have of a file.
std::vector<std::string> labels_of(const storage::StoredFile& file, const std::string& path) {
  source::FileWindow window(file, path);
  const source::ParquetFooter footer = source::open_parquet_footer(window, path);
  std::vector<std::string> labels;
  for (const source::TableLeaf& leaf : source::list_parquet_columns(footer).fields) {
    labels.push_back(source::name_of_lengths(leaf.name));
    labels.push_back(source::name_of_integers(leaf.name));
  }
  return labels;
}

// The bytes of the index, or the error.
std::string index_of(const storage::StoredFile& file, std::span<const std::string> labels,
                     std::size_t threads) {
  const std::string path = "f";
  try {
    const source::ScannedShard scanned = source::scan_parquet(file, path, labels, threads);
    const auto bytes = source::ShardIndex::encode(source::ShardKind::parquet, file.stamp(),
                                                  scanned.records, scanned.contents);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } catch (const Error& error) {
    return error.what();
  }
}

// Also of damaged files: some bytes of each are changed, thirty times.
TEST(ParquetScanThreads, MakeTheIndexThatOneMakes) {
  std::mt19937_64 random(1);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(file_named(""))) {
    if (entry.path().extension() != ".parquet") continue;
    SCOPED_TRACE(entry.path());
    const std::string good = read_file(entry.path());
    std::vector<std::string> labels;
    try {
      labels = labels_of(SmallWindows(good), "f");
    } catch (const Error&) {
      continue;  // it has a column of no type that is read
    }
    for (int round = 0; round < 30; ++round) {
      std::string bytes = good;
      for (int k = 0; k < 4 * round; ++k)
        bytes[static_cast<std::size_t>(random() % (bytes.size() - 8))] =
            static_cast<char>(random());
      const SmallWindows file(bytes);
      EXPECT_TRUE(index_of(file, labels, kThreads) == index_of(file, labels, 1)) << round;
    }
    ++files;
  }
  EXPECT_GT(files, 20);
}

// The file has 36 column chunks, one behind the other; nothing behind the fifth can be read.
TEST(ParquetScanThreads, FailWithTheErrorOfTheFirstChunk) {
  SmallWindows file(read_file(file_named("encodings_all_v1.parquet")));
  const std::vector<std::string> labels = labels_of(file, "f");
  source::FileWindow window(file, "f");
  const source::ParquetFooter footer = source::open_parquet_footer(window, "f");
  ASSERT_EQ(footer.row_groups.size(), 2);
  ASSERT_EQ(footer.row_groups[0].chunks.size(), 18);
  file.fails_from = footer.row_groups[0].chunks[5].pages.begin;
  file.fails_before = footer.row_groups[1].chunks[17].pages.end();
  const std::string wanted = index_of(file, labels, 1);
  EXPECT_THAT(wanted, HasSubstr("the disk is broken"));
  EXPECT_THAT(wanted, HasSubstr("from byte " + std::to_string(file.fails_from) + " on"));
  for (int round = 0; round < 100; ++round)
    ASSERT_EQ(index_of(file, labels, kThreads), wanted) << round;
}

TEST(ParquetScanThreads, StopWhenTheyAreWantedNoLonger) {
  const std::string bytes = read_file(file_named("encodings_all_v1.parquet"));
  for (const std::size_t threads : {std::size_t{1}, kThreads}) {
    SmallWindows all(bytes);
    (void)index_of(all, {}, threads);
    SmallWindows file(bytes);
    file.stops_at = 6;
    const core::Interruption interruption(file.stop.get_token());
    EXPECT_THAT(index_of(file, {}, threads), HasSubstr(core::Interruption::kReason));
    EXPECT_LT(file.reads, all.reads / 2);
  }
}

}  // namespace
}  // namespace penstock
