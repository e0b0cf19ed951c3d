// What is written is read again: by the pages, by the index of a sketch, and where a page is damaged.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <penstock/source/tables.hpp>

#include "src/core/output_file.hpp"
#include "src/source/parquet/table_index.hpp"
#include "src/source/parquet/table_writer.hpp"
#include "src/source/shards/index_files.hpp"
#include "src/source/shards/shard_index.hpp"
#include "tests/source/files.hpp"
#include "tests/source/parquet/read_file.hpp"
#include "tests/source/shards.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using source::ParquetOutputColumn;
using source::ParquetOutputValue;
using source::ParquetTableWriter;
using test::ParquetFileInMemory;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;
using Kind = ParquetOutputColumn::Kind;

// A value as people write it: a null, a number, a text.
using Cell = std::variant<std::monostate, std::int64_t, std::string>;
using Row = std::vector<Cell>;

class MemorySink final : public core::ByteSink {
 public:
  explicit MemorySink(std::vector<std::byte>& to) : to_(to) {}
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return to_.size(); }
  void write(std::span<const std::byte> bytes) override {
    to_.insert(to_.end(), bytes.begin(), bytes.end());
  }
  void finish() override {}

 private:
  std::vector<std::byte>& to_;
};

std::vector<ParquetOutputColumn> all_kinds() {
  return {{.name = "image", .kind = Kind::image},
          {.name = "label", .kind = Kind::integer, .class_names = {"cat", "d\xC3\xB6g \"2\""}},
          {.name = "txt", .kind = Kind::text},
          {.name = "npy", .kind = Kind::bytes}};
}

ParquetOutputValue value_of(const Cell& cell) {
  if (const auto* const number = std::get_if<std::int64_t>(&cell)) return *number;
  if (const auto* const text = std::get_if<std::string>(&cell))
    return std::as_bytes(std::span(*text));
  return {};
}

void write_rows(ParquetTableWriter& table, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    std::vector<ParquetOutputValue> values;
    for (const Cell& cell : row) values.push_back(value_of(cell));
    table.add(values);
  }
  table.end();
  table.finish();
}

ParquetFileInMemory file_with(const std::vector<Row>& rows) {
  std::vector<std::byte> bytes;
  ParquetTableWriter table(std::make_unique<MemorySink>(bytes), all_kinds());
  write_rows(table, rows);
  return {"a.parquet", std::move(bytes)};
}

void write_file(const fs::path& path, const std::vector<Row>& rows) {
  ParquetTableWriter table(std::make_unique<core::OutputFile>(path), all_kinds());
  write_rows(table, rows);
}

struct Pages {
  std::vector<std::uint64_t> group_rows;
  std::map<std::string, std::vector<std::uint64_t>> bytes;  // of each page of a leaf
};

std::vector<Row> rows_in(ParquetFileInMemory& file, Pages* pages = nullptr) {
  const auto footer = file.footer();
  EXPECT_TRUE(footer) << footer.fault().to_string();
  if (!footer) return {};
  std::vector<Row> rows(footer->rows);
  std::uint64_t first = 0;
  for (const source::ParquetRowGroup& group : footer->row_groups) {
    for (std::size_t k = 0; k < footer->schema.leaves.size(); ++k) {
      const source::ParquetLeaf& leaf = footer->schema.leaves[k];
      std::uint64_t row = first;
      const auto result = test::for_each_parquet_page(
          leaf, group.chunks[k], group.rows, file.reader(), file.name(), {},
          [&](const source::ParquetPage& page, const source::ParquetDecodedPage& decoded) {
            EXPECT_TRUE(page.header.crc.has_value());
            if (pages != nullptr) pages->bytes[leaf.path].push_back(page.header.packed_bytes);
            std::size_t value = 0;
            for (const std::uint8_t definition : decoded.levels.definition) {
              Cell cell;
              if (definition == leaf.max_definition) {
                const auto bytes = decoded.values[value++];
                if (leaf.type == source::ParquetType::int64)
                  cell = source::load_little_endian<std::int64_t>(bytes);
                else
                  cell = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
              }
              rows[row++].push_back(std::move(cell));
            }
          });
      EXPECT_TRUE(result) << result.fault().to_string();
      EXPECT_EQ(row, first + group.rows) << leaf.path;
    }
    first += group.rows;
    if (pages != nullptr) pages->group_rows.push_back(group.rows);
  }
  return rows;
}

Row row_of(const std::string& image, std::int64_t label) {
  return {image, "folder/" + std::to_string(label) + ".jpg", label, Cell(), Cell()};
}

TEST(ParquetWriter, EveryValueAndEveryNullIsReadAgain) {
  std::vector<Row> rows;
  for (int k = 0; k < 350; ++k)
    rows.push_back({std::string(static_cast<std::size_t>(k * 37 % 4001), static_cast<char>(k)),
                    "n/" + std::to_string(k) + ".jpg",
                    k % 7 == 0 ? Cell() : Cell(std::int64_t{3} - k),
                    k % 2 == 0 ? Cell() : Cell("text " + std::to_string(k)),
                    k < 210 ? Cell() : Cell(std::string(1, '\xFF'))});
  ParquetFileInMemory file = file_with(rows);
  Pages pages;
  EXPECT_TRUE(rows_in(file, &pages) == rows);
  EXPECT_THAT(pages.group_rows, ElementsAre(100, 100, 100, 50));
}

TEST(ParquetWriter, NoRowsOneRowAndAnEmptyValue) {
  for (const std::vector<Row>& rows :
       {std::vector<Row>{}, std::vector<Row>{row_of("x", -5)}, std::vector<Row>{row_of("", 0)}}) {
    ParquetFileInMemory file = file_with(rows);
    EXPECT_EQ(rows_in(file), rows);
  }
}

TEST(ParquetWriter, PagesHaveAMebibyteAndLargeValuesPagesOfTheirOwn) {
  const std::size_t mebibyte = std::size_t{1} << 20;
  const std::vector<Row> rows{row_of(std::string(3 * mebibyte, 'a'), 1), row_of("b", 2),
                              row_of(std::string(mebibyte / 2, 'c'), 3),
                              row_of(std::string(mebibyte / 2, 'd'), 4),
                              row_of(std::string(mebibyte, 'e'), 5)};
  ParquetFileInMemory file = file_with(rows);
  Pages pages;
  EXPECT_TRUE(rows_in(file, &pages) == rows);
  constexpr std::uint64_t kLevels = 6;  // their length, and a run
  EXPECT_THAT(pages.bytes["image.bytes"],
              ElementsAre(kLevels + 4 + 3 * mebibyte, kLevels + 5 + 4 + mebibyte / 2,
                          kLevels + 4 + mebibyte / 2, kLevels + 4 + mebibyte));
  EXPECT_THAT(pages.bytes["label"], SizeIs(1));
}

TEST(ParquetWriter, ARowGroupHasAboutAHundredMegabytes) {
  const std::string image(4'000'000, 'i');
  std::vector<Row> rows;
  for (int k = 0; k < 26; ++k) rows.push_back(row_of(image, k));
  const ParquetFileInMemory file = file_with(rows);
  const auto footer = file.footer();
  ASSERT_TRUE(footer) << footer.fault().to_string();
  ASSERT_THAT(footer->row_groups, SizeIs(2));
  EXPECT_EQ(footer->row_groups[0].rows, 25U);
}

TEST(ParquetWriter, TheSchemaIsThatOfHuggingFace) {
  const std::vector<ParquetOutputColumn> columns = all_kinds();
  ParquetFileInMemory file = file_with({});
  const auto footer = file.footer();
  ASSERT_TRUE(footer) << footer.fault().to_string();
  const source::ParquetSchema expected = source::make_parquet_schema(columns);
  ASSERT_EQ(footer->schema.leaves.size(), expected.leaves.size());
  for (std::size_t k = 0; k < expected.leaves.size(); ++k) {
    const source::ParquetLeaf& leaf = footer->schema.leaves[k];
    EXPECT_EQ(leaf.path, expected.leaves[k].path);
    EXPECT_EQ(leaf.type, expected.leaves[k].type);
    EXPECT_EQ(leaf.max_definition, expected.leaves[k].max_definition);
    EXPECT_EQ(leaf.max_repetition, 0);
    EXPECT_EQ(leaf.logical.meaning, expected.leaves[k].logical.meaning);
    EXPECT_EQ(leaf.nodes, expected.leaves[k].nodes);
  }
  EXPECT_EQ(footer->schema.find("image.bytes")->max_definition, 2);
  EXPECT_EQ(footer->schema.find("txt")->logical.meaning, source::ParquetMeaning::string);
  EXPECT_EQ(footer->schema.find("npy")->logical.meaning, source::ParquetMeaning::none);
  EXPECT_EQ(footer->created_by, "penstock version 1");
  ASSERT_NE(footer->find_metadata("huggingface"), nullptr);
  EXPECT_EQ(*footer->find_metadata("huggingface"),
            R"({"info": {"features": {"image": {"_type": "Image"}, )"
            R"("label": {"names": ["cat", "d\u00f6g \"2\""], "_type": "ClassLabel"}, )"
            R"("txt": {"dtype": "string", "_type": "Value"}, )"
            R"("npy": {"dtype": "binary", "_type": "Value"}}}})");
  EXPECT_EQ(source::huggingface_metadata(
                std::vector<ParquetOutputColumn>{{.name = "label", .kind = Kind::integer}}),
            R"({"info": {"features": {"label": {"dtype": "int64", "_type": "Value"}}}})");
}

// The bytes of a ColumnIndex, which readers skip pages by, as parquet.thrift and Thrift's compact protocol have them.
TEST(ParquetWriter, TheColumnIndexHasTheLeastAndTheLargestOfEachPage) {
  std::vector<Row> rows{row_of("a", -3), row_of("b", 260), row_of("c", 7)};
  rows[2][2] = Cell();
  ParquetFileInMemory file = file_with(rows);
  const std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const std::string three = "\xFD" + std::string(7, '\xFF');  // -3
  const std::string large = "\x04\x01" + std::string(6, '\0');
  const std::string head("\x19\x11\x02\x19\x18\x08", 6);  // one page, which has values; its least
  EXPECT_THAT(text, HasSubstr(head + three + "\x19\x18\x08" + large +
                              std::string("\x15\x02\x19\x16\x02\0", 6)));  // ascending; one null
  EXPECT_THAT(text, HasSubstr(std::string("\x19\x11\x02\x19\x18\x0D", 6) + "folder/-3.jpg"));
  // Of a page without values there is none.
  EXPECT_THAT(text,
              HasSubstr(std::string("\x19\x11\x01\x19\x18\0\x19\x18\0\x15\x02\x19\x16\x06\0", 15)));
}

TEST(ParquetWriter, WhatDoesNotFitIsRefused) {
  std::vector<std::byte> bytes;
  ParquetTableWriter table(std::make_unique<MemorySink>(bytes), all_kinds());
  // Memory that would end the program if it was read.
  const std::size_t size = source::kMostParquetValue + 1;
  void* const memory = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::vector<ParquetOutputValue> row(5);
  row[0] = std::span(static_cast<const std::byte*>(memory), size);
  EXPECT_THAT([&] { table.add(row); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("for the column 'image.bytes'")));
  ::munmap(memory, size);
  row.pop_back();
  EXPECT_THAT([&] { table.add(row); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("a row of 5 values, found one of 4")));
}

TEST(ParquetWriter, OnlyTheRowsOfADamagedPageAreFaults) {
  const TemporaryFolder folder;
  std::vector<Row> rows;
  for (int k = 0; k < 130; ++k) rows.push_back(row_of(std::string(300'000, 'x'), k));
  const fs::path path = folder.path() / "a.parquet";
  write_file(path, rows);
  ParquetFileInMemory file(path);
  const auto footer = file.footer();
  const source::ParquetLeaf& leaf = footer->schema.leaves[0];
  const auto pages = source::scan_parquet_chunk(leaf, footer->row_groups[0].chunks[0], 100,
                                                file.reader(), file.name());
  ASSERT_TRUE(pages) << pages.fault().to_string();
  const source::ParquetPage& broken = pages->data[3];
  std::fstream stream(path, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(static_cast<std::streamoff>(broken.offset));
  stream.write("\xFF\xFF\xFF\xFF", 4);
  stream.close();
  const SourcePtr source =
      source::parquet(path, {.columns = {{.name = "image"}, {.name = "label"}}});
  std::uint64_t faults = 0;
  for (std::uint64_t number = 0; number < source->size(); ++number) {
    Record record;
    const bool is_broken = number >= broken.first_row && number < broken.first_row + broken.rows;
    EXPECT_EQ(bool(source->read(number, record)), !is_broken) << number;
    faults += is_broken ? 1 : 0;
  }
  EXPECT_EQ(faults, 3U);
}

TEST(ParquetWriter, AChangedByteOfALabelIsFoundByItsChecksum) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.parquet";
  write_file(path, {row_of("image", 258)});
  std::string text = test::read_text(path);
  const std::size_t at = text.find(std::string("\x02\x01\0\0\0\0\0\0", 8));
  ASSERT_NE(at, text.npos);
  text[at] = '\x03';
  std::ofstream(path, std::ios::binary) << text;
  const SourcePtr source = source::parquet(path, {.columns = {{.name = "label"}}});
  Record record;
  const auto read = source->read(0, record);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.fault().reason, HasSubstr("checksum"));
}

TEST(ParquetWriter, EachByteBelongsToAValue) {
  std::vector<std::byte> bytes;
  ParquetTableWriter table(std::make_unique<MemorySink>(bytes), all_kinds());
  const std::vector<Row> rows{row_of("first image", 1), row_of("second image", 2)};
  write_rows(table, rows);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto part_at = [&](const std::string& what) {
    const auto part = table.part_at(text.find(what));
    return part ? std::to_string(part->leaf) + " " + std::to_string(part->row) : "none";
  };
  EXPECT_EQ(part_at("PAR1"), "0 0");
  EXPECT_EQ(part_at("first"), "0 0");
  EXPECT_EQ(part_at("second"), "0 1");
  EXPECT_EQ(part_at("folder/2.jpg"), "1 1");
  EXPECT_EQ(part_at("huggingface"), "none");
}

// What a bucket gets beside a file is what images() makes of the file, its time of change aside.
TEST(ParquetWriter, TheIndexOfWhatIsWrittenIsThatOfTheFile) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.parquet";
  std::vector<ParquetOutputColumn> columns = all_kinds();
  columns[1].class_names.assign(5000, "a class with a name");  // a footer that is not small
  auto made = std::make_unique<source::ShardSketch>(std::make_unique<core::OutputFile>(path));
  source::ShardSketch& sketch = *made;
  ParquetTableWriter table(std::move(made), columns);
  std::vector<Row> rows;
  for (int k = 0; k < 230; ++k) {
    rows.push_back(row_of(std::string(static_cast<std::size_t>(k) * 300, 'i'), k % 5));
    if (k % 3 == 0) rows.back()[2] = Cell();
    if (k % 4 == 0) rows.back()[3] = std::string(static_cast<std::size_t>(k), 't');
  }
  write_rows(table, rows);
  ASSERT_GT(table.footer().size(), 50'000U);
  sketch.keep(table.bytes() - table.footer().size(), table.footer());
  std::vector<std::byte> index = source::parquet_image_index(sketch, table.bytes(), "a.parquet");
  const SourcePtr source =
      source::parquet(path, {.columns = {{.name = "image"}, {.name = "label", .required = false}}});
  EXPECT_EQ(source->size(), rows.size());
  const std::string expected =
      test::read_text(source::index_path(source::ShardKind::parquet, path.string()));
  const auto beside = std::as_bytes(std::span(expected));
  const auto stamp_of = [](std::span<const std::byte> of) {
    return source::ShardIndex::of_encoded(of).stamp();
  };
  EXPECT_EQ(stamp_of(index).bytes, fs::file_size(path));
  ASSERT_TRUE(source::ShardIndex::restamp(index, stamp_of(beside)));
  EXPECT_TRUE(std::ranges::equal(index, beside));
}

}  // namespace
}  // namespace penstock
