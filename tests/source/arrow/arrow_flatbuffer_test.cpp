// Flatbuffers that are read, and those that lead out of themselves, in circles, or to one table a million times.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/source/arrow/schema.hpp"
#include "tests/source/arrow/flat_writer.hpp"

namespace penstock {
namespace {

using source::ArrowOrigin;
using source::FlatBuffer;
using source::FlatTable;
using test::FlatWriter;
using ::testing::HasSubstr;

const ArrowOrigin kOrigin{.file = "a.arrow", .offset = 1000};

// What `use` says of a buffer's root table.
template <class Use>
std::string flat_fault(const std::string& text, const Use& use) {
  const std::vector<std::byte> bytes = test::bytes_of(text);
  FlatBuffer buffer(bytes, kOrigin);
  try {
    use(buffer.root());
  } catch (const DataError& error) {
    return error.fault().to_string();
  }
  return "";
}

std::string schema_fault(const FlatWriter& writer) {
  return flat_fault(writer.text(), [](const FlatTable& schema) {
    (void)source::read_arrow_schema(schema, kOrigin, {});
  });
}

// A table with a number, a text, a table and a vector of tables.
FlatWriter mixed() {
  FlatWriter writer;
  const auto root = writer.table(0, {8, 0, 4, 4, 4, 4});
  writer.put(root[0], std::int64_t{-7});
  writer.string(root[2], "text");
  const auto inner = writer.table(root[3], {1});
  writer.put(inner[0], std::uint8_t{1});
  const auto places = writer.offsets(root[4], 2);
  for (const std::size_t place : places) {
    const auto element = writer.table(place, {2});
    writer.put(element[0], static_cast<std::int16_t>(place));
  }
  writer.link(root[5]);
  writer.add(std::uint32_t{3});
  for (const char c : {'a', 'b', 'c'}) writer.add(c);
  return writer;
}

void read_mixed(const FlatTable& root) {
  EXPECT_EQ(root.number<std::int64_t>(0), -7);
  EXPECT_EQ(root.number<std::int32_t>(1, 5), 5);
  EXPECT_EQ(root.number<std::int32_t>(60, 6), 6);
  EXPECT_EQ(root.text(2), "text");
  EXPECT_EQ(root.text(1), "");
  ASSERT_TRUE(root.table(3));
  EXPECT_TRUE(root.table(3)->boolean(0));
  EXPECT_FALSE(root.table(1));
  ASSERT_EQ(root.tables(4).size(), 2U);
  EXPECT_NE(root.tables(4)[0].number<std::int16_t>(0), root.tables(4)[1].number<std::int16_t>(0));
  EXPECT_EQ(root.elements(5, 1).size(), 3U);
  EXPECT_TRUE(root.elements(1, 8).empty());
}

TEST(ArrowFlatbuffer, HasNumbersTextsTablesAndVectorsAndDefaultsForThoseLeftOut) {
  EXPECT_EQ(flat_fault(mixed().text(), read_mixed), "");
}

TEST(ArrowFlatbuffer, OfWhichEveryBeginningIsRefused) {
  const std::string text = mixed().text();
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_THAT(flat_fault(text.substr(0, size),
                           [](const FlatTable& root) {
                             (void)root.number<std::int64_t>(0);
                             (void)root.text(2);
                             (void)root.table(3)->boolean(0);
                             for (std::uint32_t i = 0; i < root.tables(4).size(); ++i)
                               (void)root.tables(4)[i].number<std::int16_t>(0);
                             (void)root.elements(5, 1);
                           }),
                HasSubstr("a.arrow"))
        << size;
}

TEST(ArrowFlatbuffer, FaultsNameTheByteOfTheFile) {
  FlatWriter writer = mixed();
  writer.put(0, std::uint32_t{9999});
  EXPECT_THAT(flat_fault(writer.text(), read_mixed), HasSubstr("a.arrow at byte 10999"));
}

TEST(ArrowFlatbuffer, FieldsWithinFieldsAreReadToADepth) {
  const auto fault_of_depth = [](std::uint32_t depth) {
    FlatWriter writer;
    std::size_t from = writer.table(0, {0, 4})[1];
    for (std::uint32_t level = 0; level < depth; ++level) {
      const auto field = writer.table(writer.offsets(from, 1)[0], {0, 0, 1, 4, 0, 4});
      writer.put(field[2], std::uint8_t{13});
      writer.table(field[3], {});
      from = field[5];
    }
    writer.offsets(from, 0);
    return schema_fault(writer);
  };
  EXPECT_EQ(fault_of_depth(source::kDeepestArrowField), "");
  EXPECT_THAT(fault_of_depth(source::kDeepestArrowField + 1),
              HasSubstr("more than 64 fields deep"));
}

TEST(ArrowFields, HaveShortPathsInMessages) {
  source::ArrowFields fields;
  std::uint32_t parent = 0;
  for (const std::string& name :
       {std::string(), std::string(300, 'a'), std::string("b"), std::string("c")}) {
    source::ArrowField field;
    field.name = name;
    parent = source::add_arrow_field(fields, field, parent);
  }
  EXPECT_EQ(fields.path(1), std::string(200, 'a'));
  EXPECT_EQ(fields.path(3), "...b.c");
}

TEST(ArrowFlatbuffer, OneTableThatManyOffsetsLeadToCostsNoMoreThanItsBytes) {
  FlatWriter writer;
  const auto schema = writer.table(0, {0, 4});
  std::size_t from = schema[1];
  constexpr int kLevels = 40;  // 2^40 fields
  for (int level = 0; level < kLevels; ++level) {
    const auto places = writer.offsets(from, 2);
    const auto field = writer.table(places[0], {0, 0, 1, 4, 0, 4});
    writer.link(places[1], field[2] - 4);
    writer.put(field[2], std::uint8_t{13});
    writer.table(field[3], {});
    from = field[5];
  }
  writer.offsets(from, 0);
  EXPECT_THAT(schema_fault(writer), HasSubstr("lead to some of them many times"));
}

TEST(ArrowFlatbuffer, OneTextThatManyOffsetsLeadToCostsNoMoreThanItsBytes) {
  FlatWriter writer;
  const auto schema = writer.table(0, {0, 4, 4});
  writer.offsets(schema[1], 0);
  constexpr std::uint32_t kEntries = 4000;
  const auto places = writer.offsets(schema[2], kEntries);
  std::vector<std::size_t> keys;
  for (const std::size_t place : places) keys.push_back(writer.table(place, {4, 0})[0]);
  const std::size_t text = writer.size();
  writer.string(keys[0], std::string(100000, 'k'));
  for (const std::size_t key : keys) writer.link(key, text);
  EXPECT_THAT(schema_fault(writer), HasSubstr("far more bytes than it"));
}

TEST(ArrowFlatbuffer, TypesHaveTheNumbersThatTheyCanHave) {
  const auto fault_of_type = [](std::uint8_t kind, std::int32_t first, std::int32_t second) {
    FlatWriter writer;
    const auto schema = writer.table(0, {0, 4});
    const auto fields = writer.offsets(schema[1], 1);
    const auto field = writer.table(fields[0], {4, 0, 1, 4});
    writer.put(field[2], kind);
    writer.string(field[0], "f");
    const auto type = writer.table(field[3], {4, 4});
    writer.put(type[0], first);
    writer.put(type[1], second);
    return schema_fault(writer);
  };
  EXPECT_THAT(fault_of_type(2, 7, 0), HasSubstr("an integer of 8 to 64 bits, and found 7"));
  EXPECT_THAT(fault_of_type(2, 128, 0), HasSubstr("found 128"));
  EXPECT_THAT(fault_of_type(3, 3, 0), HasSubstr("a precision from 0 to 2, and found 3"));
  EXPECT_THAT(fault_of_type(8, 2, 0), HasSubstr("a unit of dates from 0 to 1, and found 2"));
  EXPECT_THAT(fault_of_type(9, 0, 16), HasSubstr("a time of 32 to 64 bits, and found 16"));
  EXPECT_THAT(fault_of_type(10, 4, 0), HasSubstr("a unit of time from 0 to 3, and found 4"));
  EXPECT_THAT(fault_of_type(11, 3, 0), HasSubstr("a unit of intervals from 0 to 2, and found 3"));
  EXPECT_THAT(fault_of_type(15, -1, 0),
              HasSubstr("the bytes of a FixedSizeBinary to be 0 or more"));
  EXPECT_THAT(fault_of_type(16, -1, 0), HasSubstr("the size of a FixedSizeList to be 0 or more"));
  EXPECT_THAT(fault_of_type(12, 0, 0), HasSubstr("of type List to have 1 children, and found 0"));
  EXPECT_THAT(fault_of_type(0, 0, 0), HasSubstr("field 'f' has no type"));
  EXPECT_EQ(fault_of_type(99, 0, 0),
            "");  // what a later version may add is refused where it is used
}

}  // namespace
}  // namespace penstock
