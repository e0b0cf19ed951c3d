// Rows of MDS data sets: those in tests/source/mds/files, whose values python/tests/test_mds.py compares with streaming's, and
// damaged ones.
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/images.hpp>
#include <penstock/source/mds.hpp>

#include "tests/project_path.hpp"
#include "tests/source/mds_files.hpp"
#include "tests/source/shards.hpp"

namespace penstock {
namespace {

using test::describe_all;
using test::mds_bytes;
using test::MdsTestColumn;
using test::MdsTestRow;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

namespace fs = std::filesystem;

fs::path mds_fixture(const std::string& name) {
  return test::project_path("tests/source/mds/files/" + name);
}

MdsOptions mds_in_memory(std::vector<MdsColumn> columns = {}) {
  return {.columns = std::move(columns), .index = {.location = IndexLocation::memory}};
}

const std::vector<MdsTestColumn> kMdsColumns{{"label", "int", 8}, {"text", "str"}};

// Rows with the labels first, first + 1 and so on.
std::vector<MdsTestRow> some_mds_rows(int first, int count) {
  std::vector<MdsTestRow> rows;
  for (int i = first; i < first + count; ++i)
    rows.push_back(
        {mds_bytes(std::int64_t{i}), "row " + std::string(static_cast<std::size_t>(i % 7), 'x')});
  return rows;
}

void overwrite_bytes(const fs::path& path, std::size_t at, std::string_view bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at));
  file << bytes;
}

TEST(MdsSource, RowsOfSeveralShardsAreNumberedInTheirOrder) {
  const TemporaryFolder folder;
  test::write_mds(folder, kMdsColumns,
                  {some_mds_rows(0, 3), {}, some_mds_rows(3, 1), some_mds_rows(4, 5)});
  const SourcePtr source = source::mds(folder.path(), mds_in_memory());
  ASSERT_EQ(source->size(), 9U);
  EXPECT_EQ(source->fields()[0].to_string(), "label i64 []");
  EXPECT_EQ(source->fields()[1].to_string(), "text u8 [?]");
  const auto rows = describe_all(source);
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(rows[static_cast<std::size_t>(i)],
              fmt::format("label={} ;text=row {};", i,
                          std::string(static_cast<std::size_t>(i % 7), 'x')));
  EXPECT_EQ(source->label(8), 8);
  EXPECT_EQ(source->length(8), 5U);
  EXPECT_EQ(source->info(3).key, "shard.00002.mds:0");
  EXPECT_EQ(source->file_of(3), 2U);
  EXPECT_THAT(source->location(3), HasSubstr("shard.00002.mds:0"));
}

TEST(MdsSource, AnIndexIsKeptBesideTheShardAndTakenAgainUnlessItIsDamaged) {
  const TemporaryFolder folder;
  test::write_mds(folder, kMdsColumns, {some_mds_rows(0, 40)});
  const SourcePtr first = source::mds(folder.path());
  const fs::path index = folder / "shard.00000.mds.penstock-index";
  ASSERT_TRUE(fs::exists(index));
  const auto made = fs::last_write_time(index);
  const auto rows = describe_all(first);
  const SourcePtr second = source::mds(folder.path());
  EXPECT_EQ(fs::last_write_time(index), made);
  EXPECT_EQ(describe_all(second), rows);
  EXPECT_EQ(second->fingerprint(), first->fingerprint());
  const std::string good = test::read_text(index);
  for (std::size_t at = 0; at < good.size(); at += 31) {
    std::string broken = good;
    broken[at] = static_cast<char>(broken[at] ^ 0x20);
    std::ofstream(index, std::ios::binary) << broken;
    EXPECT_EQ(describe_all(source::mds(folder.path())), rows) << at;
  }
}

TEST(MdsSource, APlaceInTheHeaderThatLiesIsAFaultOfItsRowsAndMovesNoOther) {
  const TemporaryFolder folder;
  test::write_mds(folder, kMdsColumns, {some_mds_rows(0, 6), some_mds_rows(6, 2)});
  const fs::path shard = folder / "shard.00000.mds";
  const auto good = describe_all(source::mds(folder.path(), mds_in_memory()));
  const std::string bytes = test::read_text(shard);
  const std::string last = bytes.substr(4 * 7, 4);  // where the last row ends
  // Where row 3 begins, and row 2 ends: 0, within the header, a row before, a row behind, the last one's end, beyond the file.
  for (const std::string& place :
       {mds_bytes(std::uint32_t{0}), mds_bytes(std::uint32_t{20}), bytes.substr(8, 4),
        bytes.substr(4 * 6, 4), last, mds_bytes(std::uint32_t{0xFFFFFFFF})}) {
    overwrite_bytes(shard, 4 * 4, place);
    const auto rows = describe_all(source::mds(folder.path(), mds_in_memory()));
    ASSERT_EQ(rows.size(), good.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i == 2 || i == 3)
        EXPECT_THAT(rows[i], AllOf(StartsWith("fault: "), HasSubstr(fmt::format("mds:{}", i))))
            << i;
      else
        EXPECT_EQ(rows[i], good[i]) << i;
    }
  }
  // All at one place: an index could not be kept of them.
  for (std::size_t row = 0; row <= 6; ++row)
    overwrite_bytes(shard, 4 * (1 + row), bytes.substr(row % 2 == 0 ? 4 : 8, 4));
  const auto rows = describe_all(source::mds(folder.path()));
  EXPECT_EQ(rows[0], good[0]);
  for (std::size_t i = 1; i < 6; ++i) EXPECT_THAT(rows[i], StartsWith("fault: "));
  EXPECT_EQ(rows[6], good[6]);
  EXPECT_EQ(describe_all(source::mds(folder.path())), rows);  // through its index
}

TEST(MdsSource, SizesInARowThatDoNotFillItAreAFaultOfThatRow) {
  const TemporaryFolder folder;
  test::write_mds(folder, kMdsColumns, {some_mds_rows(0, 6)});
  const std::string bytes = test::read_text(folder / "shard.00000.mds");
  std::uint32_t begin = 0;
  std::memcpy(&begin, bytes.data() + 4 * 3, 4);  // of row 2
  for (const std::uint32_t size : {0U, 5U, 0xFFFFFFFFU}) {
    overwrite_bytes(folder / "shard.00000.mds", begin, mds_bytes(size));
    for (const bool all : {true, false}) {
      const auto rows = describe_all(source::mds(
          folder.path(), mds_in_memory(all ? std::vector<MdsColumn>{}
                                           : std::vector<MdsColumn>{{.name = "text"}})));
      EXPECT_THAT(rows[2], AllOf(HasSubstr("the columns of the row take"),
                                 HasSubstr("is damaged, or was changed")))
          << size;
      for (const std::size_t row : {0U, 1U, 3U, 4U, 5U})
        EXPECT_THAT(rows[row], HasSubstr("text=row ")) << row;
    }
  }
}

TEST(MdsSource, WhatTheIndexSaysOfALabelIsComparedWithTheRow) {
  const TemporaryFolder folder;
  test::write_mds(folder, kMdsColumns, {some_mds_rows(0, 6)});
  const fs::path shard = folder / "shard.00000.mds";
  const auto rows = describe_all(source::mds(folder.path()));
  const std::string bytes = test::read_text(shard);
  std::uint32_t begin = 0;
  std::memcpy(&begin, bytes.data() + 4 * 3, 4);
  const auto time = fs::last_write_time(shard);
  overwrite_bytes(shard, begin + 4, mds_bytes(std::int64_t{77}));
  fs::last_write_time(shard, time);
  const auto again = describe_all(source::mds(folder.path()));
  EXPECT_THAT(again[2],
              HasSubstr("column 'label': the value is 77 in the row, and 2 by the index"));
  EXPECT_EQ(again[3], rows[3]);
}

TEST(MdsSource, AShardThatIsReplacedAfterTheOpeningIsAFaultOfItsRows) {
  const TemporaryFolder folder;
  test::write_mds(folder, kMdsColumns, {some_mds_rows(0, 3), some_mds_rows(3, 3)});
  const SourcePtr source = source::mds(folder.path(), mds_in_memory());
  const std::string bytes = test::read_text(folder / "shard.00001.mds");
  fs::remove(folder / "shard.00001.mds");
  auto rows = describe_all(source);
  EXPECT_THAT(rows[0], StartsWith("label=0"));
  EXPECT_THAT(rows[3], AllOf(StartsWith("fault: "), HasSubstr("shard.00001.mds:0")));
  folder.write("shard.00001.mds", bytes + "more");
  rows = describe_all(source);
  EXPECT_THAT(rows[0], StartsWith("label=0"));
  for (std::size_t row = 3; row < 6; ++row) EXPECT_THAT(rows[row], HasSubstr("was changed")) << row;
}

TEST(MdsSource, ShardsThatAreNotThoseOfTheIndexAreRefusedWhenTheyAreOpened) {
  const auto refused = [](const TemporaryFolder& folder, const std::string& why) {
    EXPECT_THAT([&] { (void)source::mds(folder.path(), mds_in_memory()); },
                ThrowsMessage<Error>(AllOf(HasSubstr("shard.00000.mds"), HasSubstr(why))));
  };
  const TemporaryFolder folder;
  test::write_mds(folder, kMdsColumns, {some_mds_rows(0, 3)});
  const std::string bytes = test::read_text(folder / "shard.00000.mds");
  for (const std::size_t size : {bytes.size() - 1, std::size_t{10}, std::size_t{0}}) {
    test::rewrite(folder, "shard.00000.mds", bytes.substr(0, size));
    refused(folder, "as index.json says");
  }
  test::rewrite(folder, "shard.00000.mds", bytes);
  overwrite_bytes(folder / "shard.00000.mds", 0, mds_bytes(std::uint32_t{4}));
  refused(folder, "its header says 4 rows, and index.json 3");
  overwrite_bytes(folder / "shard.00000.mds", 0, mds_bytes(std::uint32_t{0xFFFFFFFF}));
  refused(folder, "its header says 4294967295 rows");
  fs::remove(folder / "shard.00000.mds");
  refused(folder, "cannot stat the shard");
}

TEST(MdsSource, AnIndexJsonThatLiesIsRefusedByWhatItSays) {
  const TemporaryFolder folder;
  const std::string shard = test::mds_shard(kMdsColumns, some_mds_rows(0, 3));
  folder.write("shard.00000.mds", shard);
  const std::string good =
      test::mds_index({test::mds_entry(kMdsColumns, 3, "shard.00000.mds", shard.size())});
  const auto refused = [&](const std::string& index, const std::string& why) {
    test::rewrite(folder, "index.json", index);
    EXPECT_THAT([&] { (void)source::mds(folder.path(), mds_in_memory()); },
                ThrowsMessage<Error>(AllOf(HasSubstr("index.json"), HasSubstr(why))))
        << index;
  };
  const auto replaced = [&](std::string_view what, std::string_view by) {
    std::string index = good;
    index.replace(index.find(what), what.size(), by);
    return index;
  };
  refused("", "expected a JSON object");
  refused("[1, 2]", "expected a JSON object");
  refused(good.substr(0, good.size() / 2), "expected a JSON object");
  refused("{}", "expected 'version'");
  refused(R"({"version": 1, "shards": []})", "expected version 2 of MDS, found 1");
  refused(R"({"version": 2, "shards": 7})", "expected shards to be a list");
  refused(R"({"version": 2, "shards": [7]})", "expected an object, found 7");
  refused(test::mds_index({}), "there are no shards");
  refused(
      R"({"version": 2, "shards": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
      "expected an object");
  refused(replaced("\"mds\"", "\"csv\""), R"(expected the format "mds", found "csv")");
  refused(replaced("\"mds\"", "\"json\""), R"(found "json", which is not read here)");
  refused(replaced("\"samples\": 3", "\"samples\": 2"), "its header says 3 rows, and index.json 2");
  refused(replaced("\"samples\": 3", "\"samples\": -3"),
          "expected 'samples' to be an integer from 0");
  refused(replaced("\"samples\": 3", "\"samples\": 4294967295"), "4294967295 rows take");
  refused(replaced("\"samples\": 3", "\"samples\": 1e300"), "expected 'samples' to be an integer");
  refused(replaced("\"bytes\": ", "\"bytes\": 1"), "as index.json says");
  refused(replaced("\"compression\": null", "\"compression\": \"br:11\""),
          "found 'br:11', which is not read here");
  refused(replaced("\"compression\": null", "\"compression\": 3"),
          "expected compression to be a string");
  for (const char* name : {"../shard.00000.mds", "/shard.00000.mds", "", "a/../../b", "a/"})
    refused(replaced("shard.00000.mds", name), "expected a basename to be a file in the folder");
  refused(replaced("[8, null]", "[4, null]"), "the size of 'label' is 4");
  refused(
      replaced("[8, null]", "[8, 5]"),
      "the size of 'text' is 5, and values of its encoding, str, have no fixed number of bytes");
  refused(replaced("[8, null]", "[8]"), "to be lists of one length");
  refused(replaced("[8, null]", "[\"8\", null]"), "expected the size of 'label'");
  refused(replaced("\"text\"", "\"label\""), "two columns are called 'label'");
  refused(
      test::mds_index({test::mds_entry(kMdsColumns, 3, "shard.00000.mds", shard.size()),
                       test::mds_entry({{"label", "int", 8}}, 3, "shard.00000.mds", shard.size())}),
      "shard 1: its columns are label int, and before it they are label int, text str");
  test::rewrite(folder, "index.json", good);
  EXPECT_EQ(source::mds(folder.path(), mds_in_memory())->size(), 3U);
}

TEST(MdsSource, AFolderWithoutAnIndexNamesTheSplitsInIt) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "train");
  folder.write("train/index.json", "{}");
  EXPECT_THAT(
      [&] { (void)source::mds(folder.path()); },
      ThrowsMessage<Error>(AllOf(HasSubstr("expected a folder of an MDS data set"),
                                 HasSubstr("name a split in it, such as"), HasSubstr("/train"))));
  EXPECT_THROW((void)source::mds(std::vector<std::string>{}), std::invalid_argument);
  EXPECT_THROW((void)source::mds(""), std::invalid_argument);
}

TEST(MdsSource, ArraysAndNumbersThatAreDamagedAreFaultsOfTheirRows) {
  const std::vector<MdsTestColumn> columns{{"array", "ndarray:int16"},
                                           {"images", "list[jpeg]"},
                                           {"number", "str_int"},
                                           {"real", "str_float"}};
  const auto array = [](int head, std::string_view rest) {
    return std::string(1, static_cast<char>(head)) + std::string(rest);
  };
  const std::string good_array = array(1 << 2, std::string("\2abcd", 5));
  const std::string good_list =
      mds_bytes(0U) + mds_bytes(2U) + mds_bytes(1U) + mds_bytes(2U) + "xyz";
  const std::vector<std::pair<MdsTestRow, std::string>> cases{
      {{good_array, good_list, "-7", "1e3"}, "array="},
      {{"", good_list, "1", "1"}, "the array ends before its shape"},
      {{array(1 << 2, ""), good_list, "1", "1"}, "the array ends within its shape"},
      {{array(1 << 2, "\3abcd"), good_list, "1", "1"},
       "the array has the shape [3] of i16, and 4 bytes"},
      {{array(1 << 2, "\2abc"), good_list, "1", "1"},
       "the array has the shape [2] of i16, and 3 bytes"},
      {{array(1 << 2, std::string_view("\0", 1)), good_list, "1", "1"},
       "the array has the shape [0]"},
      {{array(63 << 2, std::string(80, '\1')), good_list, "1", "1"}, "the array has 63 dimensions"},
      {{array(2 << 2, "\1\2abcd"), good_list, "1", "1"},
       "expected an array i16 [?], found i16 [1,2]"},
      {{array((1 << 2) | 3, std::string(8, '\xFF')), good_list, "1", "1"},
       "more than a shard holds"},
      {{good_array, "", "1", "1"}, "the list ends before the number"},
      {{good_array, mds_bytes(0U) + mds_bytes(0xFFFFFFFFU), "1", "1"},
       "the list has 4294967295 images"},
      {{good_array, mds_bytes(0U) + mds_bytes(1U) + mds_bytes(9U) + "xyz", "1", "1"},
       "take 9 bytes, and it has 3"},
      {{good_array, good_list, "1x", "1"},
       "column 'number': expected an integer from -2^63 to 2^63-1, found '1x'"},
      {{good_array, good_list, "9223372036854775808", "1"}, "found '9223372036854775808'"},
      {{good_array, good_list, "", "1"}, "expected an integer"},
      {{good_array, good_list, "1", "1,5"}, "column 'real': expected a number, found '1,5'"}};
  std::vector<MdsTestRow> rows;
  for (const auto& [row, text] : cases) rows.push_back(row);
  const TemporaryFolder folder;
  test::write_mds(folder, columns, {rows});
  const SourcePtr source =
      source::mds(folder.path(), mds_in_memory({{.name = "array"},
                                                {.name = "images", .lengths = "sizes"},
                                                {.name = "number"},
                                                {.name = "real"}}));
  const auto found = describe_all(source);
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_THAT(found[i], HasSubstr(cases[i].second)) << i;
  Record record;
  ASSERT_TRUE(source->read(0, record));
  EXPECT_EQ(record[0].shape(), Shape{2});
  EXPECT_EQ(test::text_of(record[1]), "xyz");
  EXPECT_THAT(std::span(record[2].data<std::int64_t>(), 2), ElementsAre(1, 2));
  EXPECT_EQ(*record[3].data<std::int64_t>(), -7);
  EXPECT_EQ(*record[4].data<double>(), 1000.0);
}

TEST(MdsSource, LengthsAreKnownWithoutReadingAndComparedWhenRead) {
  const std::vector<MdsTestColumn> columns{{"text", "str"}, {"tokens", "bytes"}};
  const TemporaryFolder folder;
  test::write_mds(folder, columns,
                  {{{"a", mds_bytes(std::int32_t{1})},
                    {"bcd", mds_bytes(std::int64_t{2})},
                    {"", ""},
                    {"", "abc"}}});
  const std::vector<MdsColumn> tokens{{.name = "tokens", .dtype = DType::i32}};
  const SourcePtr source = source::mds(folder.path(), {.columns = tokens});
  EXPECT_EQ(source->length(0), 1U);
  EXPECT_EQ(source->length(1), 2U);
  EXPECT_EQ(source->length(2), 0U);
  EXPECT_EQ(source->length(3), std::nullopt);
  const auto rows = describe_all(source);
  EXPECT_THAT(rows[3], HasSubstr("expected a multiple of 4 bytes, for i32, found 3"));
  // An array's length follows from its size.
  const TemporaryFolder other;
  std::string large;
  for (int i = 0; i < 300; ++i) large += mds_bytes(std::int16_t{7});
  test::write_mds(other, {{"x", "ndarray:int16"}},
                  {{{std::string("\4\2abcd", 6)}, {std::string("\5\x2C\1", 3) + large}}});
  const SourcePtr arrays = source::mds(other.path(), mds_in_memory());
  EXPECT_EQ(arrays->length(0), 2U);
  EXPECT_EQ(arrays->length(1), 300U);
  Record record;
  ASSERT_TRUE(arrays->read(1, record));
  EXPECT_EQ(record[0].shape(), Shape{300});
}

TEST(MdsSource, LabelsOfEveryIntegerTypeAreKnownAndMayBeWidened) {
  const auto label_of = [](const char* encoding, const std::string& value) {
    const TemporaryFolder folder;
    const bool is_text = std::string_view(encoding) == "str_int";
    const auto size = is_text ? std::optional<int>() : static_cast<int>(value.size());
    test::write_mds(folder, {{"a", "str"}, {"y", encoding, size}, {"z", "str"}},
                    {{{"abc", value, "d"}}});
    const SourcePtr source = source::mds(
        folder.path(), mds_in_memory({{.name = "label", .column = "y", .dtype = DType::i64}}));
    Record record;
    if (source->read(0, record)) {
      EXPECT_EQ(*record[0].data<std::int64_t>(), source->label(0));
    }
    return source->label(0);
  };
  EXPECT_EQ(label_of("int8", "\xFE"), -2);
  EXPECT_EQ(label_of("uint8", "\xFE"), 254);
  EXPECT_EQ(label_of("int16", "\xFE\xFF"), -2);
  EXPECT_EQ(label_of("uint16", "\xFE\xFF"), 65534);
  EXPECT_EQ(label_of("int32", "\xFE\xFF\xFF\xFF"), -2);
  EXPECT_EQ(label_of("uint32", "\xFE\xFF\xFF\xFF"), 4294967294);
  EXPECT_EQ(label_of("int64", mds_bytes(std::int64_t{-2})), -2);
  EXPECT_EQ(label_of("int", mds_bytes(INT64_MAX)), INT64_MAX);
  EXPECT_EQ(label_of("uint64", mds_bytes(std::uint64_t{7})), 7);
  EXPECT_EQ(label_of("uint64", mds_bytes(UINT64_MAX)), std::nullopt);  // and its row is a fault
  EXPECT_EQ(label_of("str_int", "-12"), -12);
  EXPECT_EQ(label_of("str_int", "twelve"), std::nullopt);
}

TEST(MdsSource, RowsLargerThanTheLimitAreFaults) {
  const TemporaryFolder folder;
  test::write_mds(folder, kMdsColumns, {some_mds_rows(0, 7)});
  MdsOptions options = mds_in_memory();
  options.max_record_bytes = 18;
  const auto rows = describe_all(source::mds(folder.path(), options));
  EXPECT_THAT(rows[2], StartsWith("label=2"));
  EXPECT_THAT(rows[6], HasSubstr("the row has 22 bytes, more than max_record_bytes = 18"));
  options.max_record_bytes = 0;
  EXPECT_THROW((void)source::mds(folder.path(), options), std::invalid_argument);
}

TEST(MdsSource, OnlyWhatIsNeededOfARowIsRead) {
  const std::vector<MdsTestColumn> columns{{"image", "jpeg"}, {"label", "int", 8}, {"mask", "png"}};
  const TemporaryFolder folder;
  const std::string image(100'000, 'i');
  const std::string mask(50'000, 'm');
  test::write_mds(folder, columns, {{{image, mds_bytes(std::int64_t{4}), mask}}});
  const auto bytes_of = [&](std::vector<MdsColumn> some, std::size_t prefix) {
    const SourcePtr source = source::mds(folder.path(), mds_in_memory(std::move(some)));
    Record record;
    record.set_prefix_limit(prefix);
    EXPECT_TRUE(source->read(0, record));
    for (std::size_t i = 0; i < record.size(); ++i) {
      const auto bytes = record[i].bytes();
      if (source->fields()[i].dtype == DType::i64) {
        EXPECT_EQ(*record[i].data<std::int64_t>(), 4);
        continue;
      }
      EXPECT_EQ(test::text_of(record[i]),
                (source->fields()[i].name == "mask" ? mask : image).substr(0, prefix));
    }
    return record.bytes_read();
  };
  EXPECT_EQ(bytes_of({}, SIZE_MAX), 150'016U);
  EXPECT_EQ(bytes_of({{.name = "mask"}}, SIZE_MAX), 4096U + 50'000U);
  EXPECT_EQ(bytes_of({{.name = "image"}}, 1000), 4096U);
  EXPECT_EQ(bytes_of({{.name = "image"}, {.name = "label"}}, SIZE_MAX), 4096U + 100'008U);
}

TEST(MdsSource, AnEmptyValueFarBehindTheRowsBeginningNeedsNoRead) {
  const std::vector<MdsTestColumn> columns{
      {"title", "str"}, {"image", "jpeg"}, {"caption", "str"}, {"label", "int", 8}};
  const TemporaryFolder folder;
  test::write_mds(folder, columns,
                  {{{"t", std::string(10'000, 'i'), "", mds_bytes(std::int64_t{4})}}});
  const auto bytes_of = [&](std::vector<MdsColumn> some, const std::string& expected) {
    const SourcePtr source = source::mds(folder.path(), mds_in_memory(std::move(some)));
    Record record;
    EXPECT_EQ(test::describe(*source, 0, record), expected);
    return record.bytes_read();
  };
  EXPECT_EQ(bytes_of({{.name = "caption"}}, "caption=;"), 4096U);
  EXPECT_EQ(bytes_of({{.name = "title"}, {.name = "caption"}}, "title=t;caption=;"), 4096U);
  EXPECT_EQ(bytes_of({{.name = "label"}, {.name = "caption"}}, "label=4 ;caption=;"), 4096U + 8U);
}

TEST(MdsSource, FingerprintsTellColumnsAndRowsApartButNotFolders) {
  const TemporaryFolder one;
  const TemporaryFolder same;
  const TemporaryFolder other;
  test::write_mds(one, kMdsColumns, {some_mds_rows(0, 6)});
  test::write_mds(same, kMdsColumns, {some_mds_rows(0, 6)});
  auto rows = some_mds_rows(0, 6);
  std::swap(rows[1], rows[5]);
  test::write_mds(other, kMdsColumns, {rows});
  const auto fingerprint = [](const TemporaryFolder& folder, std::vector<MdsColumn> columns = {}) {
    return source::mds(folder.path(), mds_in_memory(std::move(columns)))->fingerprint();
  };
  EXPECT_EQ(fingerprint(one), fingerprint(same));
  EXPECT_NE(fingerprint(one), fingerprint(other));
  EXPECT_NE(fingerprint(one), fingerprint(one, {{.name = "text"}}));
  EXPECT_NE(fingerprint(one, {{.name = "t", .column = "text"}}),
            fingerprint(one, {{.name = "text"}}));
}

TEST(MdsSource, ImagesAndLabelsAreFoundByTheirEncodings) {
  EXPECT_EQ(image_form("a/shard.00000.mds"), ImageForm::mds);
  EXPECT_EQ(image_form("a/shard.00000.MDS.zstd"), ImageForm::mds);
  EXPECT_EQ(image_form(mds_fixture("images")), ImageForm::mds);
  const TemporaryFolder folder;
  fs::copy(mds_fixture("images"), folder / "images");
  const SourcePtr images = source::images(folder / "images");
  ASSERT_EQ(images->size(), 9U);
  EXPECT_EQ(images->fields()[0].to_string(), "image u8 [?]");
  EXPECT_EQ(images->fields()[1].to_string(), "label i64 []");
  EXPECT_EQ(images->label(7), 3);
  EXPECT_THAT([&] { (void)source::images(mds_fixture("texts")); },
              ThrowsMessage<Error>(HasSubstr("which column is the image?")));
  // A candidate that cannot be read is passed over.
  const TemporaryFolder pickled;
  test::write_mds(pickled, {{"image", "jpeg"}, {"label", "pkl"}, {"cls", "int", 8}},
                  {{{"a", "b", mds_bytes(std::int64_t{5})}}});
  EXPECT_EQ(source::images(pickled.path())->label(0), 5);
  const TemporaryFolder unlabelled;
  test::write_mds(unlabelled, {{"label", "str"}, {"x", "png"}}, {{{"a", "b"}}});
  EXPECT_THAT([&] { (void)source::images(unlabelled.path()); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("which column is the label?"), HasSubstr("label str, x png"))));
}

}  // namespace
}  // namespace penstock
