// Single values found in files whose bodies are not read, compared with those of opened columns.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/source/arrow/place.hpp"
#include "tests/project_path.hpp"
#include "tests/source/arrow/flat_writer.hpp"
#include "tests/source/arrow/read_file.hpp"

namespace penstock {
namespace {

using source::ArrowBatch;
using source::ArrowColumns;
using source::ArrowFields;
using source::ArrowPlaces;
using test::arrow_text;
using test::ArrowFileInMemory;
using ::testing::HasSubstr;

ArrowFileInMemory placed_file(const std::string& name) {
  return ArrowFileInMemory(test::project_path("tests/source/arrow/files/" + name + ".arrow"));
}

TEST(ArrowPlaces, AreThoseOfTheColumnsValues) {
  for (const char* name : {"nulls_file", "flat_stream", "sliced_flat_file"}) {
    ArrowFileInMemory file = placed_file(name);
    const ArrowColumns columns = file.columns();
    const ArrowFields& fields = columns.index().fields;
    const source::ArrowRead read = file.reader();
    std::size_t compared = 0;
    for (std::size_t batch = 0; batch < columns.index().batches.size(); ++batch) {
      const auto located = columns.locate(batch);
      ASSERT_TRUE(located);
      const ArrowPlaces places(fields, *located, read, name);
      for (const std::uint32_t node : fields.nodes[0].children) {
        const auto layout = source::arrow_layout(fields.nodes[node].type.kind);
        if (layout != source::ArrowLayout::fixed && layout != source::ArrowLayout::slices) continue;
        const auto column = columns.open(batch, *located, node);
        ASSERT_TRUE(column);
        for (std::uint64_t i = 0; i < column->length(); ++i) {
          const auto place = places.value(node, i);
          ASSERT_TRUE(place) << place.fault().to_string();
          ASSERT_EQ(place->has_value(), !column->is_null(i)) << fields.path(node) << " " << i;
          if (!*place) continue;
          const auto bytes = source::read_arrow_range(read, (*place)->begin, (*place)->bytes, name);
          EXPECT_EQ(arrow_text(bytes), arrow_text(column->value(i))) << fields.path(node);
          ++compared;
        }
      }
    }
    EXPECT_GT(compared, std::string(name) == "sliced_flat_file" ? 100U : 500U) << name;
  }
}

TEST(ArrowPlaces, OfListsLeadToTheirChildrensValues) {
  ArrowFileInMemory file = placed_file("nested_stream");
  const ArrowColumns columns = file.columns();
  const ArrowFields& fields = columns.index().fields;
  const source::ArrowRead read = file.reader();
  const auto located = columns.locate(1);
  ASSERT_TRUE(located);
  const std::string name = "nested_stream";
  const ArrowPlaces places(fields, *located, read, name);
  for (const char* list : {"ints", "large", "images", "triple", "boxes"}) {
    const std::uint32_t node = *fields.find(list);
    const auto column = columns.open(1, *located, node);
    ASSERT_TRUE(column);
    for (std::uint64_t i = 0; i < column->length(); ++i) {
      const auto range = places.list(node, i);
      ASSERT_TRUE(range) << range.fault().to_string();
      ASSERT_EQ(range->has_value(), !column->is_null(i)) << list;
      if (!*range) continue;
      EXPECT_EQ((*range)->begin, column->range(i).begin) << list;
      EXPECT_EQ((*range)->end, column->range(i).end) << list;
    }
  }
  const std::uint32_t bytes = *fields.find("bytes", *fields.find("item", *fields.find("images")));
  EXPECT_TRUE(places.value(bytes, 0));
}

TEST(ArrowPlaces, ReadAFewBytesOfABody) {
  ArrowFileInMemory file = placed_file("huggingface_cache");
  const ArrowColumns columns = file.columns();
  const ArrowFields& fields = columns.index().fields;
  const auto located = columns.locate(0);
  ASSERT_TRUE(located);
  const source::ArrowRead read = file.reader();
  const std::uint64_t before = file.bytes_read();
  const std::uint32_t bytes = *fields.find("bytes", *fields.find("image"));
  const auto place = ArrowPlaces(fields, *located, read, file.name()).value(bytes, 3);
  ASSERT_TRUE(place) << place.fault().to_string();
  EXPECT_EQ((*place)->bytes, 6U);
  EXPECT_EQ(file.bytes_read() - before, 8U);
}

TEST(ArrowPlaces, AreNotThereForWhatMustBeOpened) {
  const auto fault_of = [](const char* name, const char* column, std::uint64_t number) {
    ArrowFileInMemory file = placed_file(name);
    const ArrowColumns columns = file.columns();
    const auto located = columns.locate(0);
    const source::ArrowRead read = file.reader();
    const auto place = ArrowPlaces(columns.index().fields, *located, read, file.name())
                           .value(*columns.index().fields.find(column), number);
    return place ? "" : place.fault().to_string();
  };
  EXPECT_THAT(
      fault_of("dictionary_file", "i8", 0),
      HasSubstr("column 'i8' of type Utf8 with a dictionary have no places in the file: open "
                "the column"));
  EXPECT_THAT(fault_of("zstd_file", "string", 0),
              HasSubstr("of type Utf8, compressed have no places"));
  EXPECT_THAT(fault_of("nested_file", "image", 0), HasSubstr("of type Struct have no places"));
  EXPECT_THAT(fault_of("flat_file", "bool", 0), HasSubstr("of type Bool have no places"));
  EXPECT_THAT(fault_of("flat_file", "i16", 20),
              HasSubstr("expected a value 20, and found 20 values"));
}

TEST(ArrowPlaces, AreCheckedAgainstTheirBuffers) {
  // One column of Binary, with the offsets 0, 5, 3 and 9, and 8 bytes.
  ArrowFields fields;
  source::ArrowField root;
  root.type.kind = source::ArrowKind::structure;
  source::add_arrow_field(fields, root, 0);
  source::ArrowField binary;
  binary.name = "b";
  binary.type.kind = source::ArrowKind::binary;
  source::add_arrow_field(fields, binary, 0);
  std::string text;
  for (const std::int32_t offset : {0, 5, 3, 9})
    text.append(reinterpret_cast<const char*>(&offset), sizeof offset);
  ArrowFileInMemory file("a.arrow", test::bytes_of(text + "12345678"));
  ArrowBatch batch;
  batch.body = {0, 24};
  batch.nodes = {source::ArrowNode{},
                 source::ArrowNode{.length = 5, .first_buffer = 0, .buffers = 3}};
  batch.buffers = {{}, {0, 16}, {16, 8}};
  const source::ArrowRead read = file.reader();
  const ArrowPlaces places(fields, batch, read, file.name());
  EXPECT_EQ((*places.value(1, 0))->bytes, 5U);
  EXPECT_THAT(places.value(1, 1).fault().reason, HasSubstr("value 1 is from 5 to 3 of 8"));
  EXPECT_THAT(places.value(1, 2).fault().reason, HasSubstr("value 2 is from 3 to 9 of 8"));
  EXPECT_THAT(places.value(1, 3).fault().reason,
              HasSubstr("expected 2 elements of 4 bytes from 3 on, and found 16 bytes"));
  batch.nodes[1]->null_count = 1;
  EXPECT_THAT(places.value(1, 0).fault().reason,
              HasSubstr("expected 1 elements of 1 bytes from 0 on, and found 0 bytes"));
}

}  // namespace
}  // namespace penstock
