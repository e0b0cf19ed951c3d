// Files of other writers, compared with what pyarrow reads in them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/project_path.hpp"
#include "tests/source/arrow/read_file.hpp"

namespace penstock {
namespace {

using source::ArrowColumns;
using test::ArrowFileInMemory;
using ::testing::HasSubstr;

std::filesystem::path arrow_fixture(const std::string& name) {
  return test::project_path("tests/source/arrow/files/" + name);
}

std::vector<std::string> arrow_fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(arrow_fixture("")))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

bool has_zstd() {
  const auto known = source::parquet_codecs();
  return std::ranges::find(known, source::ParquetCodec::zstd) != known.end();
}

class ArrowFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(ArrowFiles, HaveTheValuesThatPyarrowReads) {
  if (GetParam().find("zstd") != std::string::npos && !has_zstd())
    GTEST_SKIP() << "this build has no libzstd";
  std::ifstream stream(arrow_fixture(GetParam() + ".txt"));
  const std::string expected{std::istreambuf_iterator<char>(stream), {}};
  ArrowFileInMemory file(arrow_fixture(GetParam() + ".arrow"));
  EXPECT_EQ(test::describe_arrow_file(file), expected);
}

INSTANTIATE_TEST_SUITE_P(All, ArrowFiles, ::testing::ValuesIn(arrow_fixtures()),
                         [](const auto& named) { return named.param; });

std::string open_fault(const std::string& name, const char* column) {
  ArrowFileInMemory file(arrow_fixture(name + ".arrow"));
  const ArrowColumns columns = file.columns();
  const auto opened = columns.open(0, *columns.index().fields.find(column));
  return opened ? "" : opened.fault().to_string();
}

TEST(ArrowRefusals, NameWhatIsNotRead) {
  EXPECT_THAT(open_fault("lz4_stream", "string"),
              HasSubstr("compressed with LZ4_FRAME, which is not read here; pyarrow reads it"));
  for (const auto& [column, type] : {std::pair{"map", "Map"},
                                     {"dense", "Union"},
                                     {"runs", "RunEndEncoded"},
                                     {"list_view", "ListView"}})
    EXPECT_THAT(open_fault("refused_file", column),
                HasSubstr(std::string(type) + " in column '" + column +
                          "' is not read here; pyarrow reads it"));
}

TEST(ArrowCompression, DecompressesNoMoreThanItsLimitAtOnce) {
  if (!has_zstd()) GTEST_SKIP() << "this build has no libzstd";
  ArrowFileInMemory file(arrow_fixture("zstd_file.arrow"));
  const auto index = std::make_shared<const source::ArrowIndex>(*file.index());
  const auto open = [&](std::uint64_t limit) {
    const ArrowColumns columns(index, file.mapping(), {.unpacked_bytes = limit});
    const auto opened = columns.open(0, 0);
    return opened ? "" : opened.fault().reason;
  };
  EXPECT_EQ(open(1 << 20), "");
  EXPECT_THAT(open(1000), HasSubstr("are left of what is read at once"));
}

TEST(ArrowColumnsOfFiles, AreTheFilesOwnBytes) {
  ArrowFileInMemory file(arrow_fixture("huggingface_cache.arrow"));
  const ArrowColumns columns = file.columns();
  const auto image = columns.open(0, *columns.index().fields.find("image"));
  ASSERT_TRUE(image) << image.fault().to_string();
  const auto bytes = image->child(0).value(2);
  EXPECT_EQ(bytes.size(), 5U);
  EXPECT_GE(bytes.data(), file.bytes().data());
  EXPECT_LT(bytes.data(), file.bytes().data() + file.bytes().size());
}

TEST(ArrowColumnsOfFiles, ShareADictionaryOfOneType) {
  ArrowFileInMemory file(arrow_fixture("dictionary_stream.arrow"));
  auto index = *file.index();
  const auto node = [&](const char* name) -> source::ArrowField& {
    return index.fields.nodes[*index.fields.find(name)];
  };
  const auto open = [&](const char* name) {
    const ArrowColumns columns(std::make_shared<const source::ArrowIndex>(index), file.mapping());
    const auto all = columns.open(0, 0);  // so that both are opened together
    const auto column = columns.open(0, *index.fields.find(name));
    return !all      ? all.fault().reason
           : !column ? column.fault().reason
                     : test::describe_arrow_column(*column);
  };
  const std::string expected = open("i16");
  node("i16").dictionary->id = node("i8").dictionary->id;
  EXPECT_EQ(open("i16"), expected);
  node("structs").dictionary->id = node("i8").dictionary->id;
  EXPECT_THAT(open("structs"),
              HasSubstr("fields 'i8' and 'structs' have one dictionary, 0, and other types"));
}

}  // namespace
}  // namespace penstock
