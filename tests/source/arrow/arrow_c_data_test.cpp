// Arrays of the C data interface, made as producers make them: offsets, nulls, dictionaries, and who releases what.
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/source/arrow/c_format.hpp"
#include "src/source/arrow/c_import.hpp"
#include "tests/source/arrow/flat_writer.hpp"
#include "tests/source/arrow/producer.hpp"

namespace penstock {
namespace {

using source::ArrowColumn;
using source::ArrowFields;
using source::ArrowKind;
using source::ArrowOwner;
using test::arrow_text;
using test::ArrowProducer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ArrowFields fields_of(const ::ArrowSchema& schema) {
  auto fields = source::import_arrow_schema(schema, "producer");
  if (!fields) throw DataError(fields.fault());
  return std::move(*fields);
}

std::string schema_fault(const ::ArrowSchema& schema) {
  const auto fields = source::import_arrow_schema(schema, "producer");
  return fields ? "" : fields.fault().to_string();
}

Result<ArrowColumn> import(const ArrowFields& fields, ::ArrowArray* array) {
  return source::import_arrow_array(fields, std::make_shared<const ArrowOwner<::ArrowArray>>(array),
                                    "producer");
}

std::string array_fault(const ArrowFields& fields, ::ArrowArray array) {
  const auto column = import(fields, &array);
  return column ? "" : column.fault().to_string();
}

constexpr std::array<std::int32_t, 5> kNumbers{10, 11, 12, 13, 14};
constexpr std::array<std::int32_t, 5> kEnds{0, 1, 3, 3, 6};
constexpr std::array<char, 6> kLetters{'a', 'b', 'c', 'd', 'e', 'f'};
constexpr std::uint8_t kValidity = 0b10101;

TEST(ArrowCData, HasColumnsWithNullsAndOffsets) {
  ArrowProducer producer;
  const ArrowFields fields =
      fields_of(*producer.schema("+s", "", {producer.schema("i", "n"), producer.schema("u", "s")}));
  EXPECT_EQ(fields.nodes[0].children.size(), 2U);
  EXPECT_TRUE(fields.nodes[1].nullable);
  ::ArrowArray* numbers = producer.array(4, {&kValidity, kNumbers.data()});
  numbers->offset = 1;
  ::ArrowArray* texts = producer.array(4, {nullptr, kEnds.data(), kLetters.data()});
  ::ArrowArray* both = producer.array(3, {nullptr}, {numbers, texts});
  both->offset = 1;
  {
    const auto column = import(fields, both);
    ASSERT_TRUE(column) << column.fault().to_string();
    EXPECT_EQ(both->release, nullptr);  // it was moved
    EXPECT_EQ(column->length(), 3U);
    EXPECT_EQ(column->child(0).integer(0), 12);
    EXPECT_FALSE(column->child(0).is_null(0));
    EXPECT_TRUE(column->child(0).is_null(1));
    EXPECT_EQ(arrow_text(column->child(1).value(0)), "bc");
    EXPECT_EQ(arrow_text(column->child(1).value(2)), "def");
    EXPECT_EQ(producer.released_arrays(), 0);
  }
  EXPECT_EQ(producer.released_arrays(), 1);  // not its children: that is the producer's part
}

TEST(ArrowCData, ReleasesAnArrayOnceWhenItsLastColumnIsGone) {
  ArrowProducer producer;
  const ArrowFields fields = fields_of(*producer.schema("+s", "", {producer.schema("i", "n")}));
  std::optional<ArrowColumn> kept;
  {
    const auto column = import(
        fields, producer.array(2, {nullptr}, {producer.array(2, {nullptr, kNumbers.data()})}));
    ASSERT_TRUE(column) << column.fault().to_string();
    kept = column->child(0);
  }
  EXPECT_EQ(producer.released_arrays(), 0);
  EXPECT_EQ(kept->integer(1), 11);
  kept.reset();
  EXPECT_EQ(producer.released_arrays(), 1);
}

TEST(ArrowCData, ReleasesAnArrayThatItRefuses) {
  ArrowProducer producer;
  const ArrowFields fields = fields_of(*producer.schema("i"));
  ::ArrowArray* array = producer.array(-1, {nullptr, kNumbers.data()});
  EXPECT_FALSE(import(fields, array));
  EXPECT_EQ(producer.released_arrays(), 1);
}

TEST(ArrowCData, OwnersMoveAndReleaseOnce) {
  ArrowProducer producer;
  {
    ArrowOwner<::ArrowSchema> first(producer.schema("i"));
    ArrowOwner<::ArrowSchema> second(std::move(first));
    EXPECT_TRUE(first.is_released());  // NOLINT(bugprone-use-after-move)
    ArrowOwner<::ArrowSchema> third(producer.schema("l"));
    third = std::move(second);
    EXPECT_EQ(producer.released_schemas(), 1);
    EXPECT_EQ(std::string(third->format), "i");
  }
  EXPECT_EQ(producer.released_schemas(), 2);
}

TEST(ArrowCData, HasListsOfListsAndDictionaries) {
  ArrowProducer producer;
  ::ArrowSchema* words = producer.schema("c", "item");
  words->dictionary = producer.schema("u");
  const ArrowFields fields = fields_of(*producer.schema(
      "+s", "", {producer.schema("+l", "l", {producer.schema("+w:2", "item", {words})})}));
  ASSERT_TRUE(fields.nodes[3].dictionary);
  EXPECT_EQ(fields.nodes[3].type.kind, ArrowKind::utf8);
  EXPECT_EQ(fields.nodes[3].dictionary->index.width, 1U);
  static constexpr std::array<std::int8_t, 6> kEntries{0, 1, 2, 2, 1, 0};
  ::ArrowArray* entries = producer.array(6, {nullptr, kEntries.data()});
  entries->dictionary = producer.array(3, {nullptr, kEnds.data(), kLetters.data()});
  ::ArrowArray* pairs = producer.array(3, {nullptr}, {entries});
  static constexpr std::array<std::int32_t, 3> kLists{0, 1, 3};
  ::ArrowArray* lists = producer.array(2, {nullptr, kLists.data()}, {pairs});
  const auto column = import(fields, producer.array(2, {nullptr}, {lists}));
  ASSERT_TRUE(column) << column.fault().to_string();
  const ArrowColumn& list = column->child(0);
  std::vector<std::string> texts;
  for (std::uint64_t i = list.range(1).begin; i < list.range(1).end; ++i) {
    const source::ArrowValues pair = list.child(0).range(i);
    for (std::uint64_t k = pair.begin; k < pair.end; ++k)
      texts.push_back(arrow_text(list.child(0).child(0).value(k)));
  }
  EXPECT_THAT(texts, ElementsAre("", "", "bc", "a"));
}

TEST(ArrowCData, RefusesArraysThatCannotBe) {
  ArrowProducer producer;
  const ArrowFields numbers = fields_of(*producer.schema("i", "n"));
  const ::ArrowArray good = *producer.array(3, {nullptr, kNumbers.data()});
  const auto with = [&](const auto& change) {
    ::ArrowArray array = good;
    change(array);
    return array_fault(numbers, array);
  };
  EXPECT_EQ(with([](::ArrowArray&) {}), "");
  EXPECT_THAT(with([](::ArrowArray& a) { a.length = -1; }), HasSubstr("has -1 values from 0 on"));
  EXPECT_THAT(with([](::ArrowArray& a) { a.offset = -2; }), HasSubstr("has 3 values from -2 on"));
  EXPECT_THAT(with([](::ArrowArray& a) { a.length = std::int64_t{1} << 62; }),
              HasSubstr("breaks the C data interface"));
  EXPECT_THAT(with([](::ArrowArray& a) { a.null_count = 4; }), HasSubstr("of which 4 are null"));
  EXPECT_THAT(with([](::ArrowArray& a) { a.null_count = 2; }),
              HasSubstr("has 2 nulls, and no validity bits"));
  EXPECT_THAT(with([](::ArrowArray& a) { a.n_buffers = 1; }),
              HasSubstr("has 1 buffers, and needs 2"));
  EXPECT_THAT(with([](::ArrowArray& a) { a.buffers = nullptr; }), HasSubstr("needs 2"));
  EXPECT_THAT(with([](::ArrowArray& a) { a.n_children = 1; }),
              HasSubstr("has 1 children, and needs 0"));
  const ::ArrowArray missing = *producer.array(3, {nullptr, nullptr});
  EXPECT_THAT(array_fault(numbers, missing),
              HasSubstr("needs 12 bytes in buffer 1, which is missing"));
  EXPECT_EQ(array_fault(numbers, *producer.array(0, {nullptr, nullptr})), "");
  const ArrowFields texts = fields_of(*producer.schema("u", "s"));
  static constexpr std::array<std::int32_t, 2> kNegative{0, -5};
  EXPECT_THAT(array_fault(texts, *producer.array(1, {nullptr, kNegative.data(), kLetters.data()})),
              HasSubstr("ends at byte -5 of its values"));
  EXPECT_EQ(array_fault(texts, *producer.array(0, {nullptr, nullptr, nullptr})), "");
  ::ArrowSchema* coded = producer.schema("c", "d");
  coded->dictionary = producer.schema("u");
  EXPECT_THAT(array_fault(fields_of(*coded), good),
              HasSubstr("array of field 'd' has no dictionary"));
}

TEST(ArrowCData, RefusesSchemasThatCannotBe) {
  ArrowProducer producer;
  EXPECT_THAT(schema_fault(*producer.schema("q", "f")),
              HasSubstr("a format of Arrow's C data interface for field 'f', and found 'q'"));
  EXPECT_THAT(schema_fault(*producer.schema("+l", "f")),
              HasSubstr("to have 1 children, and found 0"));
  ::ArrowSchema* schema = producer.schema("g");
  schema->n_children = -1;
  EXPECT_THAT(schema_fault(*schema), HasSubstr("has -1 children"));
  schema = producer.schema(nullptr);
  EXPECT_THAT(schema_fault(*schema), HasSubstr("has no format"));
  schema = producer.schema("g");
  schema->dictionary = producer.schema("u");
  EXPECT_THAT(schema_fault(*schema), HasSubstr("numbers of its entries of type Float64"));
  schema = producer.schema("i");
  schema->release = nullptr;
  EXPECT_THAT(schema_fault(*schema), HasSubstr("is released"));
  schema = producer.schema("i");
  for (std::uint32_t depth = 0; depth <= source::kDeepestArrowField; ++depth)
    schema = producer.schema("+s", "", {schema});
  EXPECT_THAT(schema_fault(*schema), HasSubstr("more than 64 deep"));
}

TEST(ArrowCData, RefusesByNameWhatIsNotRead) {
  ArrowProducer producer;
  const ArrowFields fields =
      fields_of(*producer.schema("+vl", "view", {producer.schema("i", "item")}));
  EXPECT_THAT(
      array_fault(fields, *producer.array(0, {nullptr, nullptr, nullptr})),
      HasSubstr("ListView in column 'view' is not read: convert the column to another type"));
}

TEST(ArrowCData, HasViewsOfTextsAndRefusesThoseThatLeadOutside) {
  struct View {
    std::int32_t length;
    std::array<char, 4> begins;
    std::int32_t buffer;
    std::int32_t offset;
  };
  static constexpr std::string_view kLong = "a text of more than twelve bytes";
  ArrowProducer producer;
  const ArrowFields fields = fields_of(*producer.schema("vu", "view"));
  static const std::array<View, 5> views{View{3, {'a', 'b', 'c'}, 0, 0},
                                         {0, {}, 0, 0},
                                         {13, {'t', 'e', 'x', 't'}, 0, 2},
                                         {31, {'x'}, 0, 2},
                                         {13, {'x'}, 1, 0}};
  static constexpr std::array<std::int64_t, 1> kSizes{kLong.size()};
  const auto column =
      import(fields, producer.array(5, {nullptr, views.data(), kLong.data(), kSizes.data()}));
  ASSERT_TRUE(column) << column.fault().to_string();
  EXPECT_EQ(arrow_text(column->value(0)), "abc");
  EXPECT_EQ(arrow_text(column->value(1)), "");
  EXPECT_EQ(arrow_text(column->value(2)), "text of more ");
  EXPECT_THROW((void)column->value(3), DataError);
  EXPECT_THROW((void)column->value(4), DataError);
  EXPECT_THAT(array_fault(fields, *producer.array(5, {nullptr, views.data()})),
              HasSubstr("has no sizes of its buffers"));
}

TEST(ArrowCData, HasTheMetadataOfSchemas) {
  ArrowProducer producer;
  ::ArrowSchema* schema = producer.schema("+s");
  std::string metadata;
  const auto add = [&](std::int32_t number, const std::string& text) {
    metadata.append(reinterpret_cast<const char*>(&number), sizeof number);
    metadata += text;
  };
  add(2, "");
  for (const char* text : {"huggingface", "{}", "empty", ""})
    add(static_cast<std::int32_t>(std::strlen(text)), text);
  schema->metadata = metadata.data();
  const ArrowFields fields = fields_of(*schema);
  EXPECT_EQ(*fields.nodes[0].find_metadata("huggingface"), "{}");
  EXPECT_EQ(*fields.nodes[0].find_metadata("empty"), "");
  metadata[3] = '\x80';
  EXPECT_THAT(schema_fault(*schema), HasSubstr("the metadata of a schema says"));
}

TEST(ArrowCData, ReadsEveryFormat) {
  const auto name = [](const char* format) {
    return name_of(source::parse_arrow_format(format, "f", {.file = "producer"}));
  };
  std::vector<std::string> names;
  for (const char* format : {"n", "b", "c", "C", "s", "S", "i", "I", "l", "L", "e", "f", "g", "z",
                             "Z", "u", "U", "vz", "vu"})
    names.push_back(name(format));
  EXPECT_THAT(names,
              ElementsAre("Null", "Bool", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32",
                          "Int64", "UInt64", "Float16", "Float32", "Float64", "Binary",
                          "LargeBinary", "Utf8", "LargeUtf8", "BinaryView", "Utf8View"));
  EXPECT_EQ(name("d:19,10"), "Decimal128(19, 10)");
  EXPECT_EQ(name("d:5,-2,32"), "Decimal32(5, -2)");
  EXPECT_EQ(name("w:42"), "FixedSizeBinary(42)");
  EXPECT_EQ(name("+w:3"), "FixedSizeList(3)");
  EXPECT_EQ(name("tdD"), "Date32");
  EXPECT_EQ(name("tdm"), "Date64");
  EXPECT_EQ(name("ttm"), "Time32");
  EXPECT_EQ(name("ttn"), "Time64");
  EXPECT_EQ(name("tss:"), "Timestamp(s)");
  EXPECT_EQ(name("tsu:Europe/Berlin"), "Timestamp(us, Europe/Berlin)");
  EXPECT_EQ(name("tDm"), "Duration(ms)");
  EXPECT_EQ(name("tin"), "Interval");
  EXPECT_EQ(name("+ud:1,2"), "Union");
  EXPECT_EQ(name("+m"), "Map");
  for (const char* format : {"",       "x",   "t",    "td",   "tdx",           "tdDD",
                             "tss",    "ts:", "d:",   "d:1",  "d:1,",          "d:1,2,7",
                             "d:1,2x", "w:",  "w:-1", "w:3x", "w:99999999999", "+",
                             "+x",     "+w:", "ll"})
    EXPECT_THROW((void)name(format), DataError) << format;
}

}  // namespace
}  // namespace penstock
