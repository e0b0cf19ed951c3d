// Rows of the Arrow files in tests/source/arrow/files; python/tests/test_arrow.py compares their values with pyarrow's.
#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/source/tables.hpp>

#include "src/source/arrow/arrow_table.hpp"
#include "tests/project_path.hpp"
#include "tests/source/arrow/producer.hpp"
#include "tests/source/arrow/read_file.hpp"
#include "tests/source/files.hpp"
#include "tests/source/table_rows.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using test::rows_of;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

fs::path arrow_file(std::string_view name) {
  return test::project_path("tests/source/arrow/files/" + std::string(name));
}

std::string bytes_of_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// All columns of a file that can be read, and may be null.
std::vector<TableColumn> all_arrow_columns(const fs::path& path) {
  const source::ArrowTable table(path.string());
  return test::readable_columns(
      source::list_arrow_columns(table.schema()), [&](const TableColumn& column) {
        (void)source::resolve_arrow_columns(table.schema(), {{column}}, path.string());
      });
}

TEST(ArrowSource, StreamsAndFilesOfOneTableHaveTheSameRowsInAnyOrder) {
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(arrow_file(""))) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with("_stream.arrow")) continue;
    const fs::path file = arrow_file(name.substr(0, name.size() - 13) + "_file.arrow");
    if (!fs::exists(file) || name.starts_with("lz4")) continue;
    SCOPED_TRACE(name);
    const std::vector<TableColumn> columns = all_arrow_columns(entry.path());
    if (columns.empty()) continue;
    const auto rows = rows_of(*source::arrow(entry.path(), {.columns = columns}));
    const SourcePtr other = source::arrow(file, {.columns = columns, .batch_cache_bytes = 0});
    const std::uint64_t step = rows.size() % 7 == 0 ? 5 : 7;
    EXPECT_EQ(rows_of(*other, rows.size() / 2, step), rows);
    ++compared;
  }
  EXPECT_GT(compared, 8);
}

TEST(ArrowSource, ThreadsThatShareASmallCacheReadTheSame) {
  const fs::path file = arrow_file("zstd_file.arrow");
  const std::vector<TableColumn> columns = all_arrow_columns(file);
  SourcePtr source;
  try {
    source = source::arrow(file, {.columns = columns, .batch_cache_bytes = 4096});
    Record record;
    const Result<void> first = source->read(0, record);
    if (!first && first.fault().reason.find("libzstd") != std::string::npos)
      GTEST_SKIP() << "this build has no libzstd";
  } catch (const Error& error) {
    FAIL() << error.what();
  }
  const auto wanted = rows_of(*source);
  std::vector<std::vector<std::string>> found(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < found.size(); ++i)
      threads.emplace_back([&, i] { found[i] = rows_of(*source, i * 3); });
  }
  for (const auto& rows : found) EXPECT_EQ(rows, wanted);
}

// Whether a byte is in the body of a batch, or in a schema: nothing says that another value or type there is damage.
bool is_value_or_type(const source::ArrowIndex& index, std::size_t at, std::size_t bytes) {
  std::uint64_t first = bytes;
  std::uint64_t last = 0;
  for (const auto* blocks : {&index.batches, &index.dictionaries})
    for (const source::ArrowBlock& block : *blocks) {
      if (at >= block.body.begin && at < block.body.end()) return true;
      first = std::min(first, block.metadata.begin);
      last = std::max(last, block.body.end());
    }
  return at < first || (index.has_footer && at >= last);
}

TEST(ArrowSource, AFileWithAnyDamagedByteHasItsRowsOrFaultsOrIsRefused) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.arrow";
  for (const char* name : {"nested_stream.arrow", "dictionary_file.arrow", "nulls_file.arrow",
                           "huggingface_cache.arrow", "polars_views.arrow"}) {
    SCOPED_TRACE(name);
    const std::vector<TableColumn> columns = all_arrow_columns(arrow_file(name));
    const std::string good = bytes_of_file(arrow_file(name));
    const SourcePtr whole = source::arrow(arrow_file(name), {.columns = columns});
    const std::vector<std::string> rows = rows_of(*whole);
    const auto index = test::ArrowFileInMemory(arrow_file(name)).index();  // where its parts are
    ASSERT_TRUE(index);
    int refused = 0;
    int compared = 0;
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      const std::size_t at = bit / 8;
      const bool is_free = is_value_or_type(*index, at, good.size());
      if (bit % (is_free ? 1 + good.size() / 20 : 31) != 0) continue;
      std::string broken = good;
      broken[at] = static_cast<char>(broken[at] ^ (1 << bit % 8));
      std::ofstream(path, std::ios::binary) << broken;
      try {
        const SourcePtr source = source::arrow(path, {.columns = columns});
        if (source->notices().empty()) {
          ASSERT_EQ(source->size(), rows.size()) << "bit " << bit;
        }
        const std::vector<std::string> found = rows_of(*source);
        for (std::size_t row = 0; row < found.size(); ++row) {
          const bool is_fault = found[row].starts_with("fault");
          refused += is_fault ? 1 : 0;
          if (is_free || is_fault) continue;
          EXPECT_EQ(found[row], rows.at(row)) << "bit " << bit << ", row " << row;
          ++compared;
        }
      } catch (const Error&) {
        ++refused;
      } catch (const std::invalid_argument&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 0);
    EXPECT_GT(compared, 0);
  }
}

TEST(ArrowSource, FieldsOfOneStructShareWhatWasOpenedOfIt) {
  const std::string file = arrow_file("nested_file.arrow").string();
  source::ArrowTable table(file);
  const std::vector<TableColumn> parts{{.name = "image"}, {.name = "path", .column = "image.path"}};
  table.set_fields(source::resolve_arrow_columns(table.schema(), parts, file));
  source::ArrowBatchCache cache(0);
  const auto opened = table.open(0, 0, cache);
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->columns.size(), 1U);
  EXPECT_EQ(&table.column(**opened, 1), &table.column(**opened, 0));
}

TEST(ArrowSource, AFolderOfDatasetsIsReadAsItsStateSays) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, std::string_view text) {
    std::ofstream(folder.path() / name) << text;
  };
  fs::copy_file(arrow_file("huggingface_saved.arrow"), folder.path() / "data-00000-of-00001.arrow");
  // What map() leaves in the same folder.
  fs::copy_file(arrow_file("flat_stream.arrow"), folder.path() / "cache-1f.arrow");
  write("dataset_info.json", "{}");
  EXPECT_THAT([&] { (void)source::arrow(folder.path()); },
              ::testing::ThrowsMessage<Error>(HasSubstr("a folder of the cache of datasets")));
  write("state.json", R"({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})");
  const ArrowOptions label{.columns = {{.name = "label"}}};
  EXPECT_EQ(source::arrow(folder.path(), label)->size(),
            source::arrow(arrow_file("huggingface_saved.arrow"), label)->size());
  fs::remove(folder.path() / "state.json");
  write("dataset_dict.json", R"({"splits": ["train", "test"]})");
  EXPECT_THAT([&] { (void)source::arrow(folder.path()); },
              ::testing::ThrowsMessage<Error>(HasSubstr("several splits, train, test")));
}

TEST(ArrowSource, FingerprintsTellColumnsAndFilesApart) {
  const auto fingerprint = [](const char* name, std::vector<TableColumn> columns) {
    return source::arrow(arrow_file(name), {.columns = std::move(columns)})->fingerprint();
  };
  const std::string one = fingerprint("huggingface_saved.arrow", {{.name = "label"}});
  EXPECT_EQ(fingerprint("huggingface_saved.arrow", {{.name = "label"}}), one);
  EXPECT_NE(fingerprint("huggingface_saved.arrow", {{.name = "l", .column = "label"}}), one);
  EXPECT_NE(fingerprint("huggingface_saved.arrow", {{.name = "label", .required = false}}), one);
  EXPECT_NE(fingerprint("huggingface_cache.arrow", {{.name = "label"}}), one);
}

// A table of two batches of a column n, as a stream of the C interface.
class TwoBatches {
 public:
  ::ArrowArrayStream* stream() {
    stream_ = {.get_schema = &get_schema,
               .get_next = &get_next,
               .get_last_error = [](::ArrowArrayStream*) -> const char* { return "broken"; },
               .release = [](::ArrowArrayStream* released) { released->release = nullptr; },
               .private_data = this};
    return &stream_;
  }
  bool fails = false;
  test::ArrowProducer producer;

 private:
  static int get_schema(::ArrowArrayStream* stream, ::ArrowSchema* out) {
    auto& all = *static_cast<TwoBatches*>(stream->private_data);
    *out = *all.producer.schema("+s", "", {all.producer.schema("i", "n")});
    return 0;
  }
  static int get_next(::ArrowArrayStream* stream, ::ArrowArray* out) {
    auto& all = *static_cast<TwoBatches*>(stream->private_data);
    static constexpr std::array<std::int32_t, 5> kNumbers{10, 11, 12, 13, 14};
    static const std::array<std::uint8_t, 1> kThere{0b101};
    *out = {};
    if (all.next_ == 0)
      *out = *all.producer.array(3, {nullptr},
                                 {all.producer.array(3, {kThere.data(), kNumbers.data()})});
    else if (all.next_ == 1 && all.fails)
      return 5;
    else if (all.next_ == 1)
      *out = *all.producer.array(2, {nullptr},
                                 {all.producer.array(2, {nullptr, kNumbers.data() + 3})});
    ++all.next_;
    return 0;
  }
  ::ArrowArrayStream stream_{};
  int next_ = 0;
};

std::vector<std::int64_t> numbers_of(const Source& source) {
  std::vector<std::int64_t> numbers;
  Record record;
  for (std::uint64_t row = 0; row < source.size(); ++row)
    numbers.push_back(source.read(row, record) ? *record[0].data<std::int32_t>() : -1);
  return numbers;
}

TEST(ArrowTables, AreReadInPlaceInTheChosenOrderAndReleased) {
  TwoBatches batches;
  {
    const SourcePtr all = source::arrow_table(batches.stream());
    EXPECT_THAT(numbers_of(*all), ElementsAre(10, -1, 12, 13, 14));  // a null is a fault
    EXPECT_EQ(all->location(4), "Arrow table:4");
    EXPECT_EQ(batches.producer.released_arrays(), 0);
  }
  EXPECT_EQ(batches.producer.released_arrays(), 2);
  TwoBatches again;
  const SourcePtr chosen = source::arrow_table(again.stream(), {}, {{4, 0, 2, 4}});
  EXPECT_THAT(numbers_of(*chosen), ElementsAre(14, 10, 12, 14));
  TwoBatches third;
  EXPECT_THAT([&] { (void)source::arrow_table(third.stream(), {}, {{5}}); },
              ::testing::ThrowsMessage<Error>(HasSubstr("row 5 was chosen of 5")));
  EXPECT_EQ(third.producer.released_arrays(), 2);
}

TEST(ArrowTables, SayWhatTheProducerSays) {
  TwoBatches batches;
  batches.fails = true;
  EXPECT_THAT([&] { (void)source::arrow_table(batches.stream()); },
              ::testing::ThrowsMessage<Error>(HasSubstr("did not give its next batch: broken")));
  EXPECT_EQ(batches.producer.released_arrays(), 1);
}

}  // namespace
}  // namespace penstock
