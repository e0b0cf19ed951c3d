// Lists that go on over many pages, in files made by hand: of damaged ones and of indexes that lie, no row is another one.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/tables.hpp>

#include "src/source/parquet/table_scan.hpp"
#include "src/source/shards/index_files.hpp"
#include "src/source/shards/shard_index.hpp"
#include "src/storage/storage.hpp"
#include "tests/source/files.hpp"
#include "tests/source/parquet/thrift_text.hpp"

namespace penstock {
namespace {

using test::fixed32;
using test::TemporaryFolder;
using test::ThriftText;
using test::varint;
using test::zigzag;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// Levels that are all the same, as a DATA_PAGE has them, but for the first.
std::string levels(int first, int others, int count) {
  const auto run = [](int level, int times) {
    return varint(static_cast<std::uint64_t>(times) << 1) + static_cast<char>(level);
  };
  const std::string runs = run(first, 1) + (count > 1 ? run(others, count - 1) : "");
  return fixed32(static_cast<std::uint32_t>(runs.size())) + runs;
}

// A DATA_PAGE of `count` numbers of a list, which begins in it or goes on.
std::string page_of(bool begins, int count, int value) {
  std::string body = levels(begins ? 0 : 1, 1, count) + levels(1, 1, count);
  for (int i = 0; i < count; ++i) body += fixed32(static_cast<std::uint32_t>(value));
  const ThriftText v1 = ThriftText().integer(1, count).integer(2, 0).integer(3, 3).integer(4, 3);
  const auto size = static_cast<std::int64_t>(body.size());
  return ThriftText().integer(1, 0).integer(2, size).integer(3, size).part(5, v1).end() + body;
}

struct Column {
  std::string name;
  std::vector<std::string> pages;
  std::int64_t values = 0;
};

// Columns of lists of i32, uncompressed, in one row group.
void write_lists(const fs::path& path, const std::vector<Column>& columns, std::int64_t rows) {
  std::string file = "PAR1";
  std::vector<std::string> chunks;
  std::vector<std::string> schema{
      ThriftText().text(4, "root").integer(5, static_cast<std::int64_t>(columns.size())).end()};
  for (const Column& column : columns) {
    const auto begin = static_cast<std::int64_t>(file.size());
    for (const std::string& page : column.pages) file += page;
    const std::int64_t bytes = static_cast<std::int64_t>(file.size()) - begin;
    const ThriftText data = ThriftText()
                                .integer(1, 1)
                                .list(2, 5, {zigzag(0)})
                                .integer(4, 0)
                                .integer(5, column.values, 6)
                                .integer(7, bytes, 6)
                                .integer(9, begin, 6);
    chunks.push_back(ThriftText().integer(2, 0, 6).part(3, data).end());
    schema.push_back(ThriftText().integer(1, 1).integer(3, 2).text(4, column.name).end());
  }
  const ThriftText group = ThriftText().list(1, 12, chunks).integer(3, rows, 6);
  const std::string footer = ThriftText()
                                 .integer(1, 1)
                                 .list(2, 12, schema)
                                 .integer(3, rows, 6)
                                 .list(4, 12, {group.end()})
                                 .end();
  file += footer + fixed32(static_cast<std::uint32_t>(footer.size())) + "PAR1";
  std::ofstream(path, std::ios::binary) << file;
}

// One list of 10 numbers on each of 100 pages, and a list of one number.
Column long_list(const std::string& name, int value) {
  Column column{.name = name, .pages = {}, .values = 1001};
  for (int page = 0; page < 100; ++page) column.pages.push_back(page_of(page == 0, 10, value));
  column.pages.push_back(page_of(true, 1, value));
  return column;
}

ParquetOptions in_memory() { return {.index = {.location = IndexLocation::memory}}; }

TEST(ParquetListPages, AreReadAsOneList) {
  const TemporaryFolder folder;
  write_lists(folder.path() / "a.parquet", {long_list("x", 7)}, 2);
  const SourcePtr source = source::parquet(folder.path(), in_memory());
  EXPECT_EQ(source->length(0), 1000U);
  EXPECT_EQ(source->length(1), 1U);
  Record record;
  ASSERT_TRUE(source->read(0, record));
  EXPECT_EQ(record[0].shape().to_string(), "[1000]");
}

TEST(ParquetListPages, AreReadUpToTheLimitOfARecord) {
  const TemporaryFolder folder;
  write_lists(folder.path() / "a.parquet", {long_list("x", 7)}, 2);
  ParquetOptions options = in_memory();
  options.max_record_bytes = 200;
  const SourcePtr source = source::parquet(folder.path(), options);
  Record record;
  const Result<void> result = source->read(0, record);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason, HasSubstr("more than max_record_bytes = 200"));
  EXPECT_LT(record.bytes_read(), 8U * long_list("x", 7).pages.front().size());
  EXPECT_TRUE(source->read(1, record));
}

TEST(ParquetListPages, ThatAreDamagedAreNoEndOfAList) {
  const TemporaryFolder folder;
  Column column = long_list("x", 7);
  column.pages.insert(column.pages.begin(), page_of(true, 1, 5));
  ++column.values;
  column.pages[50] = std::string(column.pages[50].size(), '\xFF');
  write_lists(folder.path() / "a.parquet", {column}, 3);
  const SourcePtr source = source::parquet(folder.path(), in_memory());
  Record record;
  EXPECT_TRUE(source->read(0, record));
  EXPECT_EQ(source->length(0), 1U);
  for (const std::uint64_t row : {1U, 2U}) {
    const Result<void> result = source->read(row, record);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.fault().reason, HasSubstr("column 'x'"));
    EXPECT_EQ(source->length(row), std::nullopt);
  }
}

TEST(ParquetListPages, OfAnotherColumnAreNoneOfAList) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.parquet";
  write_lists(path, {long_list("x", 7), long_list("y", 8)}, 2);
  const storage::Storage storage;
  const auto file = storage.open(path.string());
  ASSERT_TRUE(file);
  const std::vector<std::string> lengths{source::name_of_lengths("x")};
  source::ScannedShard scanned = source::scan_parquet(**file, path.string(), lengths);
  // An index that says that a page of y is the next one of x.
  const auto of_y = std::ranges::find(scanned.contents.pages, 1U, &source::IndexedPage::column);
  ASSERT_NE(of_y, scanned.contents.pages.end());
  scanned.contents.pages[1] = *std::next(of_y);
  const auto bytes = source::ShardIndex::encode(source::ShardKind::parquet, (*file)->stamp(),
                                                scanned.records, scanned.contents);
  std::ofstream(source::index_path(source::ShardKind::parquet, path.string()), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const SourcePtr source = source::parquet(path, {.columns = {{.name = "x"}, {.name = "y"}}});
  Record record;
  const Result<void> result = source->read(0, record);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason, HasSubstr("the index has no page for the row"));
  ASSERT_TRUE(source->read(1, record));
}

}  // namespace
}  // namespace penstock
