// Pages: where they are and what is read to find them, where values are, and damage of them.
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/source/parquet/delta.hpp"
#include "src/source/parquet/hybrid.hpp"
#include "tests/project_path.hpp"
#include "tests/source/parquet/read_file.hpp"
#include "tests/source/parquet/thrift_text.hpp"

namespace penstock {
namespace {

using source::ParquetChunk;
using source::ParquetFooter;
using source::ParquetLeaf;
using source::ParquetOrigin;
using source::ParquetPage;
using source::ParquetPages;
using test::ParquetFileInMemory;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

// The first row group's chunk of a leaf.
struct OpenedChunk {
  OpenedChunk(const std::string& name, const std::string& path)
      : file(test::project_path("tests/source/parquet/files/" + name + ".parquet")),
        footer(*file.footer()),
        leaf(*footer.schema.find(path)),
        chunk(footer.row_groups[0]
                  .chunks[static_cast<std::size_t>(&leaf - footer.schema.leaves.data())]) {}
  Result<ParquetPages> scan(const source::ParquetLimits& limits = {}) {
    return scan_parquet_chunk(leaf, chunk, footer.row_groups[0].rows, file.reader(), file.name(),
                              limits);
  }
  std::string decode_fault(const source::ParquetLimits& limits = {}) {
    const auto read =
        test::for_each_parquet_page(leaf, chunk, footer.row_groups[0].rows, file.reader(),
                                    file.name(), limits, [](const auto&, const auto&) {});
    return read ? "" : read.fault().to_string();
  }
  ParquetFileInMemory file;
  ParquetFooter footer;
  const ParquetLeaf& leaf;
  ParquetChunk& chunk;
};

TEST(ParquetPages, ReadsNoBodiesOfPagesWithoutLists) {
  OpenedChunk opened("plain", "string");
  const auto pages = opened.scan();
  ASSERT_TRUE(pages) << pages.fault().to_string();
  EXPECT_THAT(pages->data, SizeIs(1));
  EXPECT_LE(opened.file.bytes_read(), 256U);
}

TEST(ParquetPages, TakesTheRowsOfListsFromAnOffsetIndexThatAgrees) {
  OpenedChunk with("indexed_nested", "images.list.element.bytes");
  ASSERT_TRUE(with.chunk.offset_index);
  const auto pages = with.scan();
  ASSERT_TRUE(pages) << pages.fault().to_string();
  const std::uint64_t read_with = with.file.bytes_read();

  OpenedChunk without("indexed_nested", "images.list.element.bytes");
  without.chunk.offset_index.reset();
  const auto decoded = without.scan();
  ASSERT_TRUE(decoded) << decoded.fault().to_string();
  EXPECT_GT(without.file.bytes_read(), read_with);

  // One that has other pages counts for nothing.
  OpenedChunk damaged("indexed_nested", "images.list.element.bytes");
  damaged.file.bytes()[damaged.chunk.offset_index->begin + 3] ^= std::byte{2};
  const auto repaired = damaged.scan();
  ASSERT_TRUE(repaired) << repaired.fault().to_string();

  ASSERT_THAT(pages->data, SizeIs(Gt(1U)));
  ASSERT_EQ(pages->data.size(), decoded->data.size());
  ASSERT_EQ(pages->data.size(), repaired->data.size());
  for (std::size_t i = 0; i < pages->data.size(); ++i)
    for (const ParquetPages* others : {&*decoded, &*repaired}) {
      EXPECT_EQ(pages->data[i].first_row, others->data[i].first_row);
      EXPECT_EQ(pages->data[i].rows, others->data[i].rows);
      EXPECT_EQ(pages->data[i].offset, others->data[i].offset);
    }
}

TEST(ParquetPages, HaveTheirPlacesInAnOffsetIndex) {
  OpenedChunk opened("plain_nested", "image.bytes");
  const auto pages = opened.scan();
  ASSERT_TRUE(pages) << pages.fault().to_string();
  const auto places = read_parquet_offset_index(opened.chunk, opened.footer.row_groups[0].rows,
                                                opened.file.reader(), "a");
  ASSERT_TRUE(places) << places.fault().to_string();
  ASSERT_EQ(places->size(), pages->data.size());
  for (std::size_t i = 0; i < places->size(); ++i) {
    EXPECT_EQ((*places)[i].offset, pages->data[i].offset);
    EXPECT_EQ((*places)[i].first_row, pages->data[i].first_row);
    EXPECT_EQ((*places)[i].offset + (*places)[i].bytes, pages->data[i].end());
  }
}

TEST(ParquetPages, OfBytesAreDecodedWithoutACopy) {
  OpenedChunk opened("plain_nested", "image.bytes");
  const auto pages = opened.scan();
  ASSERT_TRUE(pages);
  const ParquetPage& page = pages->data[0];
  const auto body = std::span<const std::byte>(opened.file.bytes())
                        .subspan(page.begin(), page.header.packed_bytes);
  const ParquetOrigin origin{.file = "a", .offset = page.begin()};
  const auto decoded = source::decode_parquet_page({.leaf = opened.leaf,
                                                    .codec = opened.chunk.codec,
                                                    .header = page.header,
                                                    .bytes = body,
                                                    .origin = origin},
                                                   nullptr);
  ASSERT_TRUE(decoded) << decoded.fault().to_string();
  EXPECT_EQ(decoded->values.owner, nullptr);
  EXPECT_GE(decoded->values.bytes.data(), body.data());
  EXPECT_LE(decoded->values.bytes.data() + decoded->values.bytes.size(), body.data() + body.size());
}

TEST(ParquetPages, HaveTheirValuesInTheFileWhereTheyAreSaidToBe) {
  for (const char* path :
       {"image.bytes", "images.list.element.bytes", "words.list.element.list.element"}) {
    OpenedChunk opened("plain_nested", path);
    const auto pages = opened.scan();
    ASSERT_TRUE(pages) << pages.fault().to_string();
    std::size_t number = 0;
    const auto read = test::for_each_parquet_page(
        opened.leaf, opened.chunk, opened.footer.row_groups[0].rows, opened.file.reader(), "a", {},
        [&](const ParquetPage& page, const source::ParquetDecodedPage& decoded) {
          EXPECT_EQ(page.offset, pages->data[number++].offset);
          const std::vector<std::byte> kept(decoded.values.bytes.begin(),
                                            decoded.values.bytes.end());
          const std::vector<source::ParquetSlice> slices = decoded.values.slices;
          const std::vector<std::uint8_t> levels = decoded.levels.definition;
          const auto found =
              find_parquet_values(opened.leaf, opened.chunk.codec, page, opened.file.reader(), "a");
          ASSERT_TRUE(found) << found.fault().to_string();
          ASSERT_EQ(found->values.size(), slices.size());
          EXPECT_EQ(found->levels.definition, levels);
          for (std::size_t i = 0; i < slices.size(); ++i) {
            ASSERT_EQ(found->values[i].bytes, slices[i].bytes);
            EXPECT_TRUE(std::equal(
                kept.begin() + slices[i].begin, kept.begin() + slices[i].begin + slices[i].bytes,
                opened.file.bytes().begin() + static_cast<std::ptrdiff_t>(found->values[i].begin)));
          }
        });
    ASSERT_TRUE(read) << read.fault().to_string();
  }
}

TEST(ParquetPages, OfAnotherKindHaveNoValuesInTheFile) {
  OpenedChunk opened("zstd_v1", "string");
  const auto pages = opened.scan();
  ASSERT_TRUE(pages) << pages.fault().to_string();
  const auto found = find_parquet_values(opened.leaf, opened.chunk.codec, pages->data[0],
                                         opened.file.reader(), "a");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.fault().to_string(), HasSubstr("expected a data page of uncompressed PLAIN"));
}

TEST(ParquetPages, WithAnotherChecksumAreRefused) {
  OpenedChunk opened("none_v1", "f64");
  const auto pages = opened.scan();
  ASSERT_TRUE(pages) << pages.fault().to_string();
  ASSERT_TRUE(pages->data[0].header.crc);
  opened.file.bytes()[pages->data[0].begin() + 5] ^= std::byte{1};
  EXPECT_THAT(opened.decode_fault(), HasSubstr("expected a page with the checksum"));
}

TEST(ParquetPages, BeyondTheLimitsAreRefused) {
  EXPECT_THAT(OpenedChunk("gzip_v1", "f64").decode_fault({.page_bytes = 20}),
              HasSubstr("at most 20 are read"));
  EXPECT_THAT(OpenedChunk("all_null", "n").decode_fault({.page_values = 99}),
              HasSubstr("a page has 100 values; at most 99 are read"));
}

TEST(ParquetPages, OfAChunkThatIsEncryptedOrElsewhereAreRefused) {
  OpenedChunk opened("plain", "string");
  opened.chunk.is_encrypted = true;
  EXPECT_THAT(opened.decode_fault(), HasSubstr("encrypted"));
  opened.chunk.is_encrypted = false;
  opened.chunk.other_file = "b.parquet";
  EXPECT_THAT(opened.decode_fault(), HasSubstr("in another file (b.parquet)"));
}

TEST(ParquetPages, ThatBeginWithinARowAreRefusedWhereThatCannotBe) {
  OpenedChunk first("nested_none_v1", "ints.list.element");
  first.file.bytes()[first.scan()->data[0].begin() + 5] ^= std::byte{1};  // a repetition level
  EXPECT_THAT(first.decode_fault(), HasSubstr("column 'ints.list.element' begins within a row"));
  OpenedChunk any("nested_none_v2", "ints.list.element");
  any.file.bytes()[any.scan()->data[1].begin() + 1] ^= std::byte{1};
  EXPECT_THAT(any.decode_fault(),
              HasSubstr("a DATA_PAGE_V2 of column 'ints.list.element' begins within a row"));
}

TEST(ParquetPages, HaveTheSlotsAtWhichRowsBegin) {
  OpenedChunk opened("nested_snappy_v1", "ints.list.element");
  std::uint64_t rows = 0;
  const auto read = test::for_each_parquet_page(
      opened.leaf, opened.chunk, opened.footer.row_groups[0].rows, opened.file.reader(), "a", {},
      [&](const ParquetPage& page, const source::ParquetDecodedPage& decoded) {
        EXPECT_EQ(page.first_row, rows);
        for (const std::uint32_t slot : decoded.levels.rows())
          EXPECT_EQ(decoded.levels.repetition[slot], 0);
        rows += decoded.levels.rows().size();
      });
  ASSERT_TRUE(read) << read.fault().to_string();
  EXPECT_EQ(rows, opened.footer.row_groups[0].rows);
}

TEST(ParquetPages, WithFewerValuesOrRowsThanTheFooterSaysAreRefused) {
  OpenedChunk opened("plain", "string");
  ++opened.chunk.values;
  EXPECT_THAT(opened.decode_fault(),
              HasSubstr("expected 51 values in column 'string', and found 50"));
  OpenedChunk rows("plain", "string");
  ++rows.footer.row_groups[0].rows;
  EXPECT_THAT(rows.decode_fault(), HasSubstr("expected 51 rows in column 'string', and found 50"));
}

TEST(ParquetPages, AreReadOrRefusedWhateverByteIsDamaged) {
  const source::ParquetLimits limits{.page_bytes = 1 << 16, .page_values = 1 << 12};
  for (const char* name : {"polars_gzip", "huggingface", "encodings_nulls_v1", "nested_none_v2"}) {
    ParquetFileInMemory file(
        test::project_path(std::string("tests/source/parquet/files/") + name + ".parquet"));
    const auto footer = file.footer();
    ASSERT_TRUE(footer);
    const source::ParquetRowGroup& group = footer->row_groups[0];
    for (std::size_t i = 0; i < group.chunks.size(); ++i) {
      const source::ParquetRange range = group.chunks[i].pages;
      for (std::uint64_t at = range.begin; at < range.end() && at < range.begin + 80; at += 3) {
        const std::byte before = file.bytes()[at];
        for (const unsigned value : {0x00U, 0x7FU, 0xFFU}) {
          file.bytes()[at] = static_cast<std::byte>(value);
          (void)test::for_each_parquet_page(footer->schema.leaves[i], group.chunks[i], group.rows,
                                            file.reader(), "a", limits,
                                            [](const auto&, const auto&) {});
        }
        file.bytes()[at] = before;
      }
    }
  }
}

std::vector<std::byte> bytes_of(std::initializer_list<unsigned> values) {
  std::vector<std::byte> bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::vector<std::uint32_t> hybrid(std::initializer_list<unsigned> values, unsigned width,
                                  std::uint32_t most, std::size_t count) {
  std::vector<std::uint32_t> out(count);
  source::decode_hybrid(std::span<const std::byte>(bytes_of(values)), width, most, std::span(out),
                        {.file = "a"});
  return out;
}

TEST(ParquetHybrid, DecodesRunsAndGroups) {
  EXPECT_THAT(hybrid({0x03, 0x88, 0xC6, 0xFA}, 3, 7, 8), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(hybrid({0x06, 0x05, 0x03, 0x88, 0xC6, 0xFA}, 3, 7, 5), ElementsAre(5, 5, 5, 0, 1));
  EXPECT_THAT(hybrid({0x04}, 0, 0, 2), ElementsAre(0, 0));
  EXPECT_THAT(hybrid({0x04, 0xFF, 0xFF, 0xFF, 0xFF}, 32, 0xFFFFFFFF, 1), ElementsAre(0xFFFFFFFF));
  // The last group is cut behind the values that are needed.
  EXPECT_THAT(hybrid({0x03, 0x88}, 3, 7, 2), ElementsAre(0, 1));
}

TEST(ParquetHybrid, RefusesWhatEndsOrIsTooLarge) {
  const auto refuses = [](const std::string& text) {
    return ThrowsMessage<DataError>(HasSubstr(text));
  };
  EXPECT_THAT([] { hybrid({0x03, 0x88}, 3, 7, 8); }, refuses("8 numbers of 3 bits do not fit"));
  EXPECT_THAT([] { hybrid({0x04}, 3, 7, 2); }, refuses("a run ends within its value"));
  EXPECT_THAT([] { hybrid({0x04, 0x07}, 3, 6, 2); }, refuses("numbers of at most 6, and found 7"));
  EXPECT_THAT([] { hybrid({0x04, 0x07}, 3, 7, 3); }, refuses("expected 3 numbers, and found 2"));
  EXPECT_THAT([] { hybrid({0x00, 0x07, 0x80}, 3, 7, 3); }, refuses("does not end"));
}

TEST(ParquetDelta, DecodesTheSpecificationsNumbers) {
  const auto bytes = bytes_of({0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 0, 0, 0, 0});
  std::vector<std::uint64_t> out(5);
  EXPECT_EQ(source::decode_delta_binary(bytes, out, {.file = "a"}), bytes.size());
  EXPECT_THAT(out, ElementsAre(1, 2, 3, 4, 5));
}

// As pyarrow 12 wrote them: the least difference is -4 as an unsigned integer of 32 bits.
TEST(ParquetDelta, LengthsWhoseDifferencesOverflowAreThoseOf32Bits) {
  std::string text = test::varint(128) + test::varint(4) + test::varint(3) + test::zigzag(3);
  text += test::zigzag((std::int64_t{1} << 32) - 4) + std::string({8, 0, 0, 0});
  text += std::string({4, 2}) + std::string(30, '\0') + "abcdefg";
  const ParquetLeaf leaf{.path = "a", .type = source::ParquetType::byte_array};
  const source::ParquetEncoded encoded{.encoding = source::ParquetEncoding::delta_length_byte_array,
                                       .count = 3,
                                       .bytes = std::as_bytes(std::span(text))};
  const auto values = source::decode_parquet_values(leaf, encoded, {}, {.file = "a"});
  std::vector<std::string> found;
  for (std::size_t i = 0; i < values.count; ++i)
    found.emplace_back(reinterpret_cast<const char*>(values[i].data()), values[i].size());
  EXPECT_THAT(found, ElementsAre("abc", "def", "g"));
}

TEST(ParquetDelta, RefusesBlocksAndCountsThatCannotBe) {
  std::vector<std::uint64_t> out(5);
  const auto decode = [&](std::initializer_list<unsigned> values) {
    return [&out, bytes = bytes_of(values)] {
      (void)source::decode_delta_binary(bytes, out, {.file = "a"});
    };
  };
  EXPECT_THAT(decode({0x7F, 0x04, 0x05, 0x02}),
              ThrowsMessage<DataError>(HasSubstr("multiple of 128")));
  EXPECT_THAT(decode({0x80, 0x01, 0x00, 0x05, 0x02}),
              ThrowsMessage<DataError>(HasSubstr("in 0 parts")));
  EXPECT_THAT(decode({0x80, 0x01, 0x04, 0x06, 0x02}),
              ThrowsMessage<DataError>(HasSubstr("expected 5 integers, and found 6")));
  EXPECT_THAT(decode({0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 65, 0, 0, 0}),
              ThrowsMessage<DataError>(HasSubstr("65 bits")));
  EXPECT_THAT(decode({0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 8, 0, 0, 0}),
              ThrowsMessage<DataError>(HasSubstr("do not fit")));
}

TEST(ParquetPages, WithLevelsThatAreBitPackedAreRefusedByName) {
  OpenedChunk opened("plain", "string");
  const auto pages = opened.scan();
  ASSERT_TRUE(pages);
  source::ParquetPageHeader header = pages->data[0].header;
  header.definition_encoding = source::ParquetEncoding::bit_packed;
  const auto body = std::span<const std::byte>(opened.file.bytes())
                        .subspan(pages->data[0].begin(), header.packed_bytes);
  const ParquetOrigin origin{.file = "a"};
  const auto decoded = source::decode_parquet_page(
      {.leaf = opened.leaf, .header = header, .bytes = body, .origin = origin}, nullptr);
  ASSERT_FALSE(decoded);
  EXPECT_THAT(decoded.fault().to_string(),
              HasSubstr("BIT_PACKED of levels in column 'string' is not read here"));
}

}  // namespace
}  // namespace penstock
