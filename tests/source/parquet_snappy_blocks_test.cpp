// Values of Snappy pages that are decompressed without the rest of their page, of files made by hand.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/tables.hpp>

#include "src/source/parquet/codec.hpp"
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

constexpr std::size_t kBlock = 65536;

// Snappy's format, element by element, and what it becomes.
struct SnappyText {
  std::string text;
  std::string raw;

  void literal(const std::string& bytes) {
    const std::size_t length = bytes.size() - 1;
    if (length < 60) {
      text += static_cast<char>(length << 2);
    } else {
      const std::size_t size = length < 256 ? 1 : length < 65536 ? 2 : 3;
      text += static_cast<char>((59 + size) << 2);
      for (std::size_t k = 0; k < size; ++k) text += static_cast<char>(length >> (8 * k));
    }
    text += bytes;
    raw += bytes;
  }
  void copy(std::size_t offset, std::size_t length) {
    if (length >= 4 && length <= 11 && offset < 2048) {
      text += static_cast<char>(offset >> 8 << 5 | (length - 4) << 2 | 1);
      text += static_cast<char>(offset);
    } else {
      const std::size_t size = offset < 65536 ? 2 : 4;
      text += static_cast<char>((length - 1) << 2 | (size == 2 ? 2U : 3U));
      for (std::size_t k = 0; k < size; ++k) text += static_cast<char>(offset >> (8 * k));
    }
    for (std::size_t k = 0; k < length; ++k) raw += raw[raw.size() - offset];
  }
};

// What a page's blocks are like.
enum class Blocks : std::uint8_t { alone, copy_from_before, literal_over_two };

SnappyText snappy_of(const std::vector<std::optional<std::size_t>>& sizes, Blocks blocks,
                     std::mt19937_64& random) {
  SnappyText all;
  bool is_odd = blocks == Blocks::alone;  // whether the one element that is not alone is there
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto random_bytes = [&](std::size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  };
  const auto in_blocks = [&](std::string bytes) {  // a literal for each block
    while (!bytes.empty()) {
      const std::size_t left = std::min(bytes.size(), kBlock - all.raw.size() % kBlock);
      all.literal(bytes.substr(0, left));
      bytes.erase(0, left);
    }
  };
  for (const std::optional<std::size_t>& size : sizes) {
    if (!size) continue;
    in_blocks(fixed32(static_cast<std::uint32_t>(*size)));
    const std::size_t end = all.raw.size() + *size;
    while (all.raw.size() < end) {
      const std::size_t in_block = all.raw.size() % kBlock;
      const std::size_t most = end - all.raw.size();
      const bool copies = blocks == Blocks::copy_from_before && in_block != all.raw.size();
      if (!is_odd && copies && most > 4 && kBlock - in_block > 4) {
        all.copy(in_block + 5, 4);
        is_odd = true;
      } else if (!is_odd && blocks == Blocks::literal_over_two && kBlock - in_block < most) {
        all.literal(random_bytes(most));
        is_odd = true;
      } else if (in_block > 0 && below(2) == 0) {
        all.copy(1 + below(in_block), std::min({most, kBlock - in_block, 1 + below(64)}));
      } else {
        in_blocks(random_bytes(std::min(most, 1 + below(below(4) == 0 ? 90'000 : 80))));
      }
    }
  }
  return all;
}

// Values as they are compressed, behind the length of what they become.
std::string packed(const SnappyText& values) { return varint(values.raw.size()) + values.text; }

using Sizes = std::vector<std::optional<std::size_t>>;  // of values, or nulls
constexpr int kPlain = 0;
constexpr int kDictionary = 8;  // RLE_DICTIONARY

// A page of a column of bytes; of the second version nulls are possible.
std::string page_of(const Sizes& sizes, const SnappyText& values, int encoding, bool is_second) {
  const auto count = static_cast<std::int64_t>(sizes.size());
  std::string levels;
  if (is_second)
    for (const auto& size : sizes) levels += varint(1 << 1) + static_cast<char>(size ? 1 : 0);
  const std::string body = levels + packed(values);
  const auto raw_bytes = static_cast<std::int64_t>(levels.size() + values.raw.size());
  const ThriftText v1 =
      ThriftText().integer(1, count).integer(2, encoding).integer(3, 3).integer(4, 3);
  const ThriftText v2 =
      ThriftText()
          .integer(1, count)
          .integer(2, std::ranges::count_if(sizes, [](const auto& size) { return !size; }))
          .integer(3, count)
          .integer(4, encoding)
          .integer(5, static_cast<std::int64_t>(levels.size()))
          .integer(6, 0)
          .header(7, 1, "");
  ThriftText header = ThriftText().integer(1, is_second ? 3 : 0).integer(2, raw_bytes);
  header.integer(3, static_cast<std::int64_t>(body.size()))
      .part(is_second ? 8 : 5, is_second ? v2 : v1);
  return header.end() + body;
}

struct RowGroup {
  std::string dictionary{};  // a page; empty: none
  std::vector<std::string> pages{};
  std::int64_t rows = 0;
};

struct Table {
  std::vector<RowGroup> groups;
  std::vector<std::optional<std::string>> rows;
};

// The values of a page, as `sizes` has them.
std::vector<std::optional<std::string>> values_in(const SnappyText& values, const Sizes& sizes) {
  std::vector<std::optional<std::string>> found;
  std::size_t at = 0;
  for (const auto& size : sizes) {
    found.push_back(size ? std::optional(values.raw.substr(at + 4, *size)) : std::nullopt);
    at += size ? 4 + *size : 0;
  }
  return found;
}

Table table_of(Blocks blocks, bool is_second, std::size_t largest, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Table table{.groups = {{.rows = 27}}, .rows = {}};
  for (int page = 0; page < 3; ++page) {
    Sizes sizes;
    for (int row = 0; row < 9; ++row) {
      std::optional<std::size_t> size = row == 4 ? 0 : random() % largest;
      if (is_second && row % 4 == 1) size.reset();
      sizes.push_back(size);
    }
    const SnappyText values = snappy_of(sizes, blocks, random);
    table.groups[0].pages.push_back(page_of(sizes, values, kPlain, is_second));
    std::ranges::move(values_in(values, sizes), std::back_inserter(table.rows));
  }
  return table;
}

// Two pages of the values of one dictionary, whose last value no row has.
RowGroup dictionary_group_of(Blocks blocks, bool is_second, std::size_t largest,
                             std::mt19937_64& random,
                             std::vector<std::optional<std::string>>& rows) {
  constexpr std::size_t kValues = 9;
  Sizes sizes;
  for (std::size_t value = 0; value < kValues; ++value)
    sizes.push_back(value == 4 ? 0 : random() % largest);
  const SnappyText dictionary = snappy_of(sizes, blocks, random);
  const auto raw_bytes = static_cast<std::int64_t>(dictionary.raw.size());
  ThriftText header = ThriftText().integer(1, 2).integer(2, raw_bytes);
  header.integer(3, static_cast<std::int64_t>(packed(dictionary).size()))
      .part(7, ThriftText().integer(1, kValues).integer(2, kPlain));
  RowGroup group{.dictionary = header.end() + packed(dictionary), .rows = 18};
  const auto values = values_in(dictionary, sizes);
  for (int page = 0; page < 2; ++page) {
    Sizes of_rows;
    std::string indices(1, '\4');  // bits of an index
    for (int row = 0; row < 9; ++row) {
      const auto index = static_cast<std::size_t>(random() % (kValues - 1));
      const bool is_null = is_second && row % 4 == 1;
      of_rows.push_back(is_null ? std::nullopt : sizes[index]);
      rows.push_back(is_null ? std::nullopt : values[index]);
      if (!is_null) indices += varint(1 << 1) + static_cast<char>(index);
    }
    SnappyText text;
    text.literal(indices);
    group.pages.push_back(page_of(of_rows, text, kDictionary, is_second));
  }
  return group;
}

Table dictionary_table_of(Blocks blocks, bool is_second, std::size_t largest, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Table table;
  for (int group = 0; group < 3; ++group)
    table.groups.push_back(dictionary_group_of(blocks, is_second, largest, random, table.rows));
  return table;
}

// Puts a row group's pages behind a file, and returns its metadata.
std::string add_group(std::string& file, const RowGroup& group) {
  const auto begin = static_cast<std::int64_t>(file.size());
  file += group.dictionary;
  const auto first_page = static_cast<std::int64_t>(file.size());
  for (const std::string& page : group.pages) file += page;
  const bool has_dictionary = !group.dictionary.empty();
  ThriftText data = ThriftText()
                        .integer(1, 6)
                        .list(2, 5, {zigzag(has_dictionary ? kDictionary : kPlain)})
                        .integer(4, 1)
                        .integer(5, group.rows, 6)
                        .integer(7, static_cast<std::int64_t>(file.size()) - begin, 6)
                        .integer(9, first_page, 6);
  if (has_dictionary) data.integer(11, begin, 6);
  const ThriftText chunk = ThriftText().integer(2, 0, 6).part(3, data);
  return ThriftText().list(1, 12, {chunk.end()}).integer(3, group.rows, 6).end();
}

void write_table(const fs::path& path, const Table& table, bool is_second) {
  std::string file = "PAR1";
  std::vector<std::string> groups;
  for (const RowGroup& group : table.groups) groups.push_back(add_group(file, group));
  const ThriftText column = ThriftText().integer(1, 6).integer(3, is_second ? 1 : 0).text(4, "x");
  const std::string footer =
      ThriftText()
          .integer(1, 1)
          .list(2, 12, {ThriftText().text(4, "root").integer(5, 1).end(), column.end()})
          .integer(3, static_cast<std::int64_t>(table.rows.size()), 6)
          .list(4, 12, groups)
          .end();
  file += footer + fixed32(static_cast<std::uint32_t>(footer.size())) + "PAR1";
  std::ofstream(path, std::ios::binary) << file;
}

std::string text_of(const ConstTensorView& value) {
  return {reinterpret_cast<const char*>(value.raw()), value.byte_size()};
}

class SnappyBlocksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (source::lacks_parquet_codec(source::ParquetCodec::snappy))
      GTEST_SKIP() << "built without libsnappy";
  }

  SourcePtr open(const Table& table, bool is_second) const {
    const fs::path path = folder_.path() / "rows.parquet";
    write_table(path, table, is_second);
    fs::remove(folder_.path() / ".rows.parquet.penstock-index");
    return source::parquet({path.string()},
                           {.columns = {{.name = "x", .required = false}}, .page_cache_bytes = 0});
  }

  // Reads each row twice, in a random order, and compares it. The bytes that were read the second time.
  static std::uint64_t expect_rows(const Source& rows, const Table& table, std::uint64_t seed) {
    std::vector<std::uint64_t> order;
    for (std::uint64_t row = 0; row < table.rows.size(); ++row) order.push_back(row);
    std::mt19937_64 random(seed);
    Record record;
    std::uint64_t bytes = 0;
    for (int pass = 0; pass < 2; ++pass) {
      std::ranges::shuffle(order, random);
      bytes = 0;
      for (const std::uint64_t row : order) {
        const auto result = rows.read(row, record);
        if (!result) {
          ADD_FAILURE() << row << ": " << result.fault().reason;
          continue;
        }
        EXPECT_TRUE(text_of(record[0]) == table.rows[row].value_or("")) << row;
        bytes += record.bytes_read();
      }
    }
    return bytes;
  }

  TemporaryFolder folder_;
};

std::uint64_t bytes_of(const Table& table) {
  std::uint64_t bytes = 0;
  for (const RowGroup& group : table.groups) {
    bytes += group.dictionary.size();
    for (const std::string& page : group.pages) bytes += page.size();
  }
  return bytes;
}

TEST_F(SnappyBlocksTest, EachValueIsReadWithItsOwnBlocks) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const bool is_second = seed % 2 == 1;
    const Table table = table_of(Blocks::alone, is_second, 400'000, seed);
    const SourcePtr rows = open(table, is_second);
    ASSERT_EQ(rows->size(), 27);
    EXPECT_LT(expect_rows(*rows, table, seed), 3 * bytes_of(table));
  }
}

// Read as a whole for each row, the dictionary would be read more than eight times.
TEST_F(SnappyBlocksTest, EachValueOfADictionaryIsReadWithItsOwnBlocks) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const bool is_second = seed % 2 == 1;
    const Table table = dictionary_table_of(Blocks::alone, is_second, 400'000, seed);
    const SourcePtr rows = open(table, is_second);
    ASSERT_EQ(rows->size(), 54);
    EXPECT_LT(expect_rows(*rows, table, seed), 5 * bytes_of(table));
  }
}

TEST_F(SnappyBlocksTest, DictionariesWhoseBlocksDoNotStandAloneAreReadWhole) {
  for (const Blocks blocks : {Blocks::copy_from_before, Blocks::literal_over_two})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << static_cast<int>(blocks));
      const Table table = dictionary_table_of(blocks, false, 400'000, seed);
      EXPECT_GT(expect_rows(*open(table, false), table, seed), 8 * bytes_of(table));
    }
}

TEST_F(SnappyBlocksTest, DictionariesOfSmallValuesAreReadWhole) {
  const Table table = dictionary_table_of(Blocks::alone, false, 60'000, 1);
  EXPECT_GT(expect_rows(*open(table, false), table, 1), 8 * bytes_of(table));
}

TEST_F(SnappyBlocksTest, PagesWhoseBlocksDoNotStandAloneAreReadWhole) {
  for (const Blocks blocks : {Blocks::copy_from_before, Blocks::literal_over_two})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << static_cast<int>(blocks));
      const Table table = table_of(blocks, false, 400'000, seed);
      EXPECT_GT(expect_rows(*open(table, false), table, seed), 5 * bytes_of(table));
    }
}

TEST_F(SnappyBlocksTest, PagesOfSmallValuesAreReadWhole) {
  const Table table = table_of(Blocks::alone, false, 60'000, 1);
  EXPECT_GT(expect_rows(*open(table, false), table, 1), 5 * bytes_of(table));
}

// Only the first bytes, where no more are wanted, such as of an image's header.
TEST_F(SnappyBlocksTest, ReadsOneBlockOfAValueThatIsCut) {
  const Table table = table_of(Blocks::alone, false, 400'000, 3);
  const SourcePtr rows = open(table, false);
  (void)expect_rows(*rows, table, 3);
  Record record;
  record.set_prefix_limit(100);
  int cut = 0;
  for (const std::uint64_t row : {1U, 10U, 19U}) {  // one page of three is in memory
    ASSERT_TRUE(rows->read(row, record));
    EXPECT_TRUE(table.rows[row]->starts_with(text_of(record[0]).substr(0, 100)));
    if (record[0].byte_size() != 100) continue;
    ++cut;
    EXPECT_GT(record.bytes_read(), 0);
    EXPECT_LE(record.bytes_read(), 2 * kBlock + 100);
  }
  EXPECT_GE(cut, 2);
}

TEST_F(SnappyBlocksTest, BytesThatChangedSinceAreAFault) {
  for (const bool has_dictionary : {false, true}) {
    const Table table =
        (has_dictionary ? dictionary_table_of : table_of)(Blocks::alone, false, 400'000, 5);
    const SourcePtr rows = open(table, false);
    (void)expect_rows(*rows, table, 5);
    const fs::path path = folder_.path() / "rows.parquet";
    const auto time = fs::last_write_time(path);
    std::mt19937_64 random(5);
    const std::uint64_t count = table.rows.size();
    std::size_t faults = 0;
    for (std::uint64_t round = 0; round < 60; ++round) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(4 + random() % (bytes_of(table) - 5000)));
      for (int k = 0; k < 5000; ++k) file.put(static_cast<char>(random()));
      file.close();
      fs::last_write_time(path, time);
      Record record;
      for (const std::uint64_t row : {round % count, count - 1 - round % count}) {
        const auto result = rows->read(row, record);
        if (result) {
          EXPECT_EQ(record[0].byte_size(), table.rows[row]->size());
          continue;
        }
        ++faults;
        EXPECT_THAT(result.fault().reason, HasSubstr("column 'x': "));
        EXPECT_THAT(result.fault().reason, HasSubstr("was changed after it was indexed"));
      }
    }
    EXPECT_GT(faults, 0);
  }
}

}  // namespace
}  // namespace penstock
