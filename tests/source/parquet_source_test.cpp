// Rows of the Parquet files in tests/source/parquet/files; python/tests/test_parquet.py compares their values with pyarrow's.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/images.hpp>
#include <penstock/source/tables.hpp>

#include "src/source/parquet/footer.hpp"
#include "src/source/parquet/parquet_fields.hpp"
#include "src/source/shards/shard_index.hpp"
#include "tests/project_path.hpp"
#include "tests/source/files.hpp"
#include "tests/source/table_rows.hpp"

namespace penstock {
namespace {

using test::rows_of;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

namespace fs = std::filesystem;

fs::path fixture(const std::string& name) {
  return test::project_path("tests/source/parquet/files/" + name);
}

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

ParquetOptions in_memory(std::vector<TableColumn> columns = {}) {
  return {.columns = std::move(columns), .index = {.location = IndexLocation::memory}};
}

// All columns of a file that can be read, and may be null.
std::vector<TableColumn> readable_columns(const fs::path& path) {
  const std::string text = content_of(path);
  const auto bytes = std::as_bytes(std::span(text));
  const auto footer = source::read_parquet_footer(bytes, bytes.size(), path.string());
  if (!footer) return {};
  return test::readable_columns(
      source::list_parquet_columns(*footer), [&](const TableColumn& column) {
        (void)source::resolve_parquet_columns(*footer, {{column}}, path.string());
      });
}

TEST(ParquetSource, AllFixturesAreTheSameWithAnyCacheAndOrder) {
  int read = 0;
  for (const auto& entry : fs::directory_iterator(fixture(""))) {
    if (entry.path().extension() != ".parquet") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const std::vector<TableColumn> columns = readable_columns(entry.path());
    if (columns.empty()) continue;
    if (entry.path().stem() == "brotli") {
      EXPECT_THAT([&] { (void)source::parquet(entry.path(), in_memory(columns)); },
                  ThrowsMessage<Error>(HasSubstr("compressed with BROTLI is not read here")));
      continue;
    }
    const auto rows = rows_of(*source::parquet(entry.path(), in_memory(columns)));
    ParquetOptions without_cache = in_memory(columns);
    without_cache.page_cache_bytes = 0;
    const SourcePtr other = source::parquet(entry.path(), without_cache);
    const std::uint64_t step = rows.size() % 7 == 0 ? 5 : 7;
    if (std::gcd(step, rows.size()) == 1) {
      EXPECT_EQ(rows_of(*other, rows.size() / 2, step), rows);
      ++read;
    }
  }
  EXPECT_GT(read, 25);
}

TEST(ParquetSource, ThreadsThatShareASmallCacheReadTheSame) {
  for (const char* name : {"nested_snappy_v1.parquet", "fallback.parquet"}) {
    const std::vector<TableColumn> columns = readable_columns(fixture(name));
    ParquetOptions options = in_memory(columns);
    options.page_cache_bytes = 4096;
    const SourcePtr source = source::parquet(fixture(name), options);
    const auto wanted = rows_of(*source);
    std::vector<std::vector<std::string>> found(4);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < found.size(); ++i)
        threads.emplace_back([&, i] { found[i] = rows_of(*source, i * 3); });
    }
    for (const auto& rows : found) EXPECT_EQ(rows, wanted);
  }
}

TEST(ParquetSource, AnIndexIsKeptBesideTheFileAndTakenAgain) {
  const TemporaryFolder folder;
  fs::copy_file(fixture("huggingface.parquet"), folder.path() / "a.parquet");
  const ParquetOptions columns{.columns = {{.name = "image"}, {.name = "label"}}};
  const SourcePtr first = source::parquet(folder.path(), columns);
  const fs::path index = folder.path() / ".a.parquet.penstock-index";
  ASSERT_TRUE(fs::exists(index));
  const auto made = fs::last_write_time(index);
  const SourcePtr second = source::parquet(folder.path(), columns);
  EXPECT_EQ(fs::last_write_time(index), made);
  EXPECT_EQ(rows_of(*second), rows_of(*first));
  EXPECT_EQ(second->fingerprint(), first->fingerprint());
  // Whatever byte of it is damaged, the rows stay the same.
  const std::string good = content_of(index);
  for (std::size_t at = 0; at < good.size(); at += 97) {
    std::string broken = good;
    broken[at] = static_cast<char>(broken[at] ^ 0x20);
    std::ofstream(index, std::ios::binary) << broken;
    EXPECT_EQ(rows_of(*source::parquet(folder.path(), columns)), rows_of(*first)) << at;
  }
}

TEST(ParquetSource, FingerprintsTellColumnsAndFilesApart) {
  const auto fingerprint = [](const char* name, std::vector<TableColumn> columns) {
    return source::parquet(fixture(name), in_memory(std::move(columns)))->fingerprint();
  };
  const std::string one = fingerprint("huggingface.parquet", {{.name = "label"}});
  EXPECT_EQ(fingerprint("huggingface.parquet", {{.name = "label"}}), one);
  EXPECT_NE(fingerprint("huggingface.parquet", {{.name = "image"}}), one);
  EXPECT_NE(fingerprint("huggingface.parquet", {{.name = "label", .required = false}}), one);
  EXPECT_NE(fingerprint("huggingface.parquet", {{.name = "l", .column = "label"}}), one);
}

TEST(ParquetSource, ImagesAndLabelsAreFoundByTheirFeatures) {
  EXPECT_EQ(image_form("train-*.parquet"), ImageForm::parquet);
  EXPECT_EQ(image_form("a.parq"), ImageForm::parquet);
  const TemporaryFolder folder;
  fs::copy_file(fixture("huggingface.parquet"), folder.path() / "train-00000-of-00001.parquet");
  const SourcePtr images = source::images(folder.path());
  ASSERT_EQ(images->fields().size(), 2U);
  EXPECT_EQ(images->fields()[0].to_string(), "image u8 [?]");
  EXPECT_EQ(images->fields()[1].to_string(), "label i64 []");
  EXPECT_THAT([] { (void)source::images(fixture("none_v1.parquet")); },
              ThrowsMessage<Error>(HasSubstr("which column is the image?")));
}

TEST(ParquetSource, RowsLargerThanTheLimitAreFaults) {
  ParquetOptions options = in_memory({{.name = "image"}});
  options.max_record_bytes = 3;
  const SourcePtr source = source::parquet(fixture("huggingface.parquet"), options);
  Record record;
  const Result<void> result = source->read(0, record);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason, HasSubstr("more than max_record_bytes = 3"));
}

}  // namespace
}  // namespace penstock
