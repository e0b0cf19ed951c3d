// Files of other writers, compared with what pyarrow reads in them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/source/parquet/codec.hpp"
#include "tests/project_path.hpp"
#include "tests/source/parquet/read_file.hpp"

namespace penstock {
namespace {

using source::ParquetCodec;
using source::ParquetDecodedPage;
using source::ParquetFooter;
using source::ParquetPage;
using test::ParquetFileInMemory;
using ::testing::HasSubstr;

std::filesystem::path fixture(const std::string& name) {
  return test::project_path("tests/source/parquet/files/" + name);
}

std::vector<std::string> described_fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture("")))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

bool has_codec(ParquetCodec codec) {
  const auto known = source::parquet_codecs();
  return std::ranges::find(known, codec) != known.end();
}

std::string describe(ParquetFileInMemory& file) {
  const auto footer = file.footer();
  if (!footer) return footer.fault().to_string();
  std::string text = fmt::format("rows {} groups {} leaves {}\n", footer->rows,
                                 footer->row_groups.size(), footer->schema.leaves.size());
  for (std::size_t i = 0; i < footer->schema.leaves.size(); ++i) {
    const source::ParquetLeaf& leaf = footer->schema.leaves[i];
    test::ParquetDigest digest{.highest = leaf.max_definition};
    for (const source::ParquetRowGroup& group : footer->row_groups) {
      std::uint64_t row = 0;
      const auto read = test::for_each_parquet_page(
          leaf, group.chunks[i], group.rows, file.reader(), file.name(), {},
          [&](const ParquetPage& page, const ParquetDecodedPage& decoded) {
            EXPECT_EQ(page.first_row, row) << leaf.path;
            EXPECT_EQ(page.rows, decoded.levels.rows().size()) << leaf.path;
            row += page.rows;
            digest.add(decoded);
          });
      if (!read) return text + read.fault().to_string();
      EXPECT_EQ(row, group.rows);
    }
    text += fmt::format("{} {} {} {} {} {} {:08x}\n", leaf.path, name_of(leaf.type),
                        leaf.max_definition, leaf.max_repetition, digest.slots, digest.present,
                        source::parquet_crc(digest.bytes));
  }
  return text;
}

class ParquetFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(ParquetFiles, HaveTheValuesThatPyarrowReads) {
  for (const auto& [name, codec] : {std::pair{"snappy", ParquetCodec::snappy},
                                    {"fallback", ParquetCodec::snappy},
                                    {"zstd", ParquetCodec::zstd}})
    if (GetParam().find(name) != std::string::npos && !has_codec(codec))
      GTEST_SKIP() << "this build has no " << name;
  std::ifstream stream(fixture(GetParam() + ".txt"));
  const std::string expected{std::istreambuf_iterator<char>(stream), {}};
  ParquetFileInMemory file(fixture(GetParam() + ".parquet"));
  EXPECT_EQ(describe(file), expected);
}

INSTANTIATE_TEST_SUITE_P(All, ParquetFiles, ::testing::ValuesIn(described_fixtures()),
                         [](const auto& named) { return named.param; });

std::string fault_of(const std::string& name) {
  ParquetFileInMemory file(fixture(name));
  return describe(file);
}

TEST(ParquetRefusals, NameWhatIsNotRead) {
  EXPECT_THAT(fault_of("int96.parquet"),
              HasSubstr("INT96 in column 'a' is not read here; pyarrow reads it"));
  EXPECT_THAT(fault_of("brotli.parquet"),
              HasSubstr("compressed with BROTLI is not read here; pyarrow reads it"));
}

}  // namespace
}  // namespace penstock
