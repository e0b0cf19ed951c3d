// What footers say of their file, and what is wrong with those that are damaged.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/project_path.hpp"
#include "tests/source/parquet/read_file.hpp"

namespace penstock {
namespace {

using source::ParquetEncoding;
using source::ParquetFooter;
using source::ParquetLeaf;
using source::ParquetMeaning;
using source::ParquetRepetition;
using source::ParquetTimeUnit;
using test::ParquetFileInMemory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

ParquetFileInMemory parquet_fixture(const std::string& name) {
  return ParquetFileInMemory(test::project_path("tests/source/parquet/files/" + name + ".parquet"));
}

std::string footer_fault(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  ParquetFileInMemory file("a.parquet", {bytes.begin(), bytes.end()});
  const auto footer = file.footer();
  return footer ? "" : footer.fault().to_string();
}

// A file whose footer is `thrift`.
std::string file_of(const std::string& thrift) {
  std::string text = "PAR1" + thrift;
  for (int k = 0; k < 4; ++k) text += static_cast<char>(thrift.size() >> (8 * k));
  return text + "PAR1";
}

TEST(ParquetFooter, HasTheSchemaAsATreeAndAsLeaves) {
  const auto footer = parquet_fixture("huggingface").footer();
  ASSERT_TRUE(footer) << footer.fault().to_string();
  EXPECT_EQ(footer->rows, 40U);
  EXPECT_THAT(footer->created_by, HasSubstr("parquet-cpp-arrow"));
  ASSERT_NE(footer->find_metadata("huggingface"), nullptr);
  EXPECT_EQ(*footer->find_metadata("huggingface"), R"({"info": {"features": {}}})");
  EXPECT_EQ(footer->find_metadata("other"), nullptr);
  std::vector<std::string> paths;
  for (const ParquetLeaf& leaf : footer->schema.leaves) paths.push_back(leaf.path);
  EXPECT_THAT(paths, ElementsAre("image.bytes", "image.path", "images.list.element.bytes",
                                 "images.list.element.path", "label"));
  const ParquetLeaf* leaf = footer->schema.find("images.list.element.bytes");
  ASSERT_NE(leaf, nullptr);
  EXPECT_EQ(leaf->max_definition, 4);
  EXPECT_EQ(leaf->max_repetition, 1);
  std::vector<ParquetRepetition> repetitions;
  for (const std::uint32_t node : leaf->nodes)
    repetitions.push_back(footer->schema.nodes[node].repetition);
  EXPECT_THAT(repetitions, ElementsAre(ParquetRepetition::optional, ParquetRepetition::repeated,
                                       ParquetRepetition::optional, ParquetRepetition::optional));
  EXPECT_EQ(footer->schema.nodes[leaf->nodes[0]].logical.meaning, ParquetMeaning::list);
  EXPECT_THAT(footer->schema.nodes[0].children, SizeIs(3));
  EXPECT_EQ(footer->schema.find("image.path")->logical.meaning, ParquetMeaning::string);
}

TEST(ParquetFooter, HasTheMeaningOfValues) {
  const auto footer = parquet_fixture("none_v1").footer();
  ASSERT_TRUE(footer) << footer.fault().to_string();
  const auto logical = [&](const char* path) { return footer->schema.find(path)->logical; };
  EXPECT_EQ(logical("decimal").meaning, ParquetMeaning::decimal);
  EXPECT_EQ(logical("decimal").scale, 3);
  EXPECT_EQ(logical("decimal").precision, 20);
  EXPECT_EQ(logical("ms").meaning, ParquetMeaning::timestamp);
  EXPECT_EQ(logical("ms").unit, ParquetTimeUnit::milliseconds);
  EXPECT_FALSE(logical("ms").is_utc);
  EXPECT_EQ(logical("us").unit, ParquetTimeUnit::microseconds);
  EXPECT_TRUE(logical("us").is_utc);
  EXPECT_EQ(logical("u32").bits, 32);
  EXPECT_FALSE(logical("u32").is_signed);
  EXPECT_EQ(logical("f16").meaning, ParquetMeaning::float16);
  EXPECT_EQ(logical("date").meaning, ParquetMeaning::date);
  EXPECT_EQ(footer->schema.find("fixed")->type_length, 5U);
}

TEST(ParquetFooter, HasEachColumnOfEachRowGroup) {
  const auto footer = parquet_fixture("huggingface").footer();
  ASSERT_TRUE(footer) << footer.fault().to_string();
  ASSERT_THAT(footer->row_groups, SizeIs(2));
  EXPECT_EQ(footer->row_groups[1].rows, 20U);
  ASSERT_THAT(footer->row_groups[1].chunks, SizeIs(5));
  const source::ParquetChunk& image = footer->row_groups[1].chunks[0];
  EXPECT_EQ(image.codec, source::ParquetCodec::uncompressed);
  EXPECT_THAT(image.encodings,
              ::testing::UnorderedElementsAre(ParquetEncoding::plain, ParquetEncoding::rle));
  EXPECT_EQ(image.values, 20U);
  EXPECT_TRUE(image.offset_index.has_value());
  EXPECT_FALSE(image.dictionary_page.has_value());
  EXPECT_EQ(image.pages.begin, image.data_page);
  const source::ParquetChunk& label = footer->row_groups[1].chunks[4];
  EXPECT_EQ(label.codec, source::ParquetCodec::snappy);
  ASSERT_TRUE(label.dictionary_page.has_value());
  EXPECT_LT(*label.dictionary_page, label.data_page);
}

TEST(ParquetFooter, SaysWhatAFileIsThatIsNoParquetFile) {
  EXPECT_THAT(footer_fault("PAR1"), HasSubstr("expected a Parquet file, and found 4 bytes"));
  EXPECT_THAT(footer_fault(std::string(100, 'x')), HasSubstr("expected 'PAR1' at the end"));
  EXPECT_THAT(footer_fault("PARE" + std::string(20, 'x') + "PARE"),
              HasSubstr("footer is encrypted"));
  EXPECT_THAT(footer_fault("PAR1" + std::string(4, '\x7F') + "PAR1"),
              HasSubstr("a.parquet at byte 4: the footer has 2139062143 bytes, and the file 12"));
}

TEST(ParquetFooter, RefusesMetadataThatIsDamaged) {
  EXPECT_THAT(footer_fault(file_of(std::string("\x00", 1))),
              HasSubstr("lacks its schema or num_rows"));
  EXPECT_THAT(footer_fault(file_of("\x15")), HasSubstr("the metadata ends within a value"));
  EXPECT_THAT(footer_fault(file_of("\x1D\x02")), HasSubstr("Thrift type 13 does not exist"));
  EXPECT_THAT(footer_fault(file_of("\x29\xFC\xFF\xFF\xFF\xFF\x07")),
              HasSubstr("elements, and 0 bytes are left"));
  EXPECT_THAT(footer_fault(file_of(std::string(40, '\x7C'))), HasSubstr("more than 32 deep"));
  EXPECT_THAT(footer_fault(file_of(std::string(40, '\x79') + '\0')), HasSubstr("deep"));
  EXPECT_THAT(footer_fault(file_of("\x15\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01")),
              HasSubstr("more than 64 bits"));
  EXPECT_THAT(footer_fault(file_of("\x25\x02\x16\x02")),
              HasSubstr("expected schema in the metadata to be a list"));
}

TEST(ParquetFooter, RefusesASchemaThatIsNoTree) {
  const auto schema = [](const std::string& elements, char count) {
    return file_of(std::string("\x29") + static_cast<char>((count << 4) | 0xC) + elements + "\x16" +
                   std::string(2, '\0'));
  };
  const std::string root_of_one("\x48\x01r\x15\x02\x00", 6);
  const std::string leaf(
      "\x15\x02\x25\x02\x18\x01"
      "a\x00",
      8);
  EXPECT_EQ(footer_fault(schema(root_of_one + leaf, 2)), "");
  EXPECT_THAT(footer_fault(schema(root_of_one, 1)),
              HasSubstr("field 'r' of the schema lacks 1 of its fields"));
  EXPECT_THAT(footer_fault(schema(root_of_one + leaf + leaf, 3)),
              HasSubstr("fields behind the last one of its root"));
  const std::string group("\x35\x02\x18\x01g\x15\x02\x00", 8);
  std::string deep = root_of_one;
  for (int i = 0; i < 13; ++i) deep += group;
  EXPECT_THAT(footer_fault(schema(deep, 14)), HasSubstr("field 'g' of the schema lacks 1"));
}

TEST(ParquetFooter, NamesTheByteOfWhatDoesNotFitInItsFile) {
  // Bytes of pages are taken out, so that offsets are beyond where they were.
  ParquetFileInMemory file = parquet_fixture("plain");
  file.bytes().erase(file.bytes().begin() + 100, file.bytes().begin() + 3000);
  const auto footer = file.footer();
  ASSERT_FALSE(footer);
  EXPECT_THAT(footer.fault().to_string(),
              HasSubstr("in front of the footer, which begins at byte"));
}

TEST(ParquetFooter, IsReadOrRefusedWhateverByteIsDamaged) {
  for (const char* name : {"all_null", "duckdb_zstd_v2", "empty_group", "huggingface"}) {
    ParquetFileInMemory file = parquet_fixture(name);
    const std::size_t size = file.bytes().size();
    const auto needed =
        source::parquet_footer_bytes(std::span<const std::byte>(file.bytes()).last(8), size, "a");
    ASSERT_TRUE(needed);
    for (std::size_t at = size - *needed; at < size; ++at) {
      for (const unsigned value : {0x00U, 0x01U, 0x7FU, 0x80U, 0xFFU}) {
        const std::byte before = file.bytes()[at];
        file.bytes()[at] = static_cast<std::byte>(value);
        const auto footer = file.footer();
        EXPECT_TRUE(footer || !footer.fault().reason.empty());
        file.bytes()[at] = before;
      }
    }
  }
}

}  // namespace
}  // namespace penstock
