// Files whose Thrift is valid, and whose numbers lie.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/source/parquet/read_file.hpp"
#include "tests/source/parquet/thrift_text.hpp"

namespace penstock {
namespace {

using source::ParquetChunk;
using source::ParquetLeaf;
using test::fixed32;
using test::ParquetFileInMemory;
using test::ThriftText;
using test::varint;
using test::zigzag;
using ::testing::HasSubstr;

ParquetFileInMemory in_memory(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {"lies.parquet", {bytes.begin(), bytes.end()}};
}

// A chunk's ranges are within the file, also where it is first said to be in another one.
TEST(ParquetLies, OfWhichFilePagesAreIn) {
  const ThriftText data = ThriftText()
                              .integer(1, 1)
                              .list(2, 5, {zigzag(0)})
                              .integer(4, 0)
                              .integer(5, 100, 6)
                              .integer(7, std::numeric_limits<std::int64_t>::max(), 6)
                              .integer(9, std::numeric_limits<std::int64_t>::max() - 5, 6);
  const ThriftText chunk = ThriftText().text(1, "x").part(3, data).text(1, "");
  const ThriftText group = ThriftText().list(1, 12, {chunk.end()}).integer(3, 100, 6);
  const std::string footer =
      ThriftText()
          .integer(1, 1)
          .list(2, 12,
                {ThriftText().text(4, "root").integer(5, 1).end(),
                 ThriftText().integer(1, 1).integer(3, 0).text(4, "a").end()})
          .integer(3, 100, 6)
          .list(4, 12, {group.end()})
          .end();
  const auto read =
      in_memory("PAR1" + footer + fixed32(static_cast<std::uint32_t>(footer.size())) + "PAR1")
          .footer();
  ASSERT_FALSE(read);
  EXPECT_THAT(read.fault().reason, HasSubstr("the pages"));
}

ParquetLeaf list_leaf() {
  ParquetLeaf leaf;
  leaf.path = "l.list.element";
  leaf.type = source::ParquetType::int32;
  leaf.max_definition = 1;
  leaf.max_repetition = 1;
  return leaf;
}

std::string run_of(int level, int count) {
  return varint(static_cast<std::uint64_t>(count) << 1) + static_cast<char>(level);
}

// A DATA_PAGE_V2 of two lists, each of one number.
std::string page_v2(int rows) {
  const std::string repetition = run_of(0, 2);
  const std::string definition = run_of(1, 2);
  const auto levels = static_cast<std::int64_t>(repetition.size() + definition.size());
  const ThriftText v2 = ThriftText()
                            .integer(1, 2)
                            .integer(2, 0)
                            .integer(3, rows)
                            .integer(4, 0)
                            .integer(5, static_cast<std::int64_t>(definition.size()))
                            .integer(6, static_cast<std::int64_t>(repetition.size()))
                            .header(7, 2, "");
  return ThriftText()
             .integer(1, 3)
             .integer(2, levels + 8)
             .integer(3, levels + 8)
             .part(8, v2)
             .end() +
         repetition + definition + fixed32(7) + fixed32(8);
}

TEST(ParquetLies, OfHowManyRowsAPageHas) {
  ParquetFileInMemory file = in_memory("PAR1" + page_v2(0) + page_v2(2));
  const ParquetChunk chunk{.values = 4, .data_page = 4, .pages = {4, file.bytes().size() - 4}};
  const auto result = test::for_each_parquet_page(list_leaf(), chunk, 2, file.reader(), "lies", {},
                                                  [](const auto&, const auto&) {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason, HasSubstr("expected a page of 0 rows, and found 2"));
}

// A length within a header, such as that of a statistic, cannot make the whole chunk be read.
TEST(ParquetLies, OfHowLongAHeaderIs) {
  const ThriftText statistics = ThriftText().header(1, 8, varint(std::uint64_t{1} << 60));
  const ThriftText v1 =
      ThriftText().integer(1, 10).integer(2, 0).integer(3, 3).integer(4, 3).part(5, statistics);
  const std::string page =
      ThriftText().integer(1, 0).integer(2, 40).integer(3, 40).part(5, v1).end();
  ParquetFileInMemory file = in_memory("PAR1" + page + std::string(std::size_t{40} << 20, '\0'));
  ParquetLeaf leaf;
  leaf.path = "a";
  leaf.type = source::ParquetType::int32;
  const ParquetChunk chunk{.values = 10, .data_page = 4, .pages = {4, file.bytes().size() - 4}};
  EXPECT_FALSE(source::scan_parquet_chunk(leaf, chunk, 10, file.reader(), "lies"));
  EXPECT_LT(file.bytes_read(), std::uint64_t{28} << 20);
}

}  // namespace
}  // namespace penstock
