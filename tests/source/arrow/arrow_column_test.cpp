// Columns made by hand: what is in them, and what their buffers cannot hold.
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/source/arrow/column.hpp"
#include "tests/source/arrow/flat_writer.hpp"

namespace penstock {
namespace {

using source::ArrowColumn;
using source::ArrowColumnParts;
using source::ArrowField;
using source::ArrowKind;
using source::ArrowType;
using source::ArrowValues;
using test::arrow_text;
using ::testing::HasSubstr;

// A copy at an odd address, whose end a sanitizer sees.
template <class T>
class Unaligned {
 public:
  explicit Unaligned(const std::vector<T>& values) : memory_(1 + values.size() * sizeof(T)) {
    if (!values.empty()) std::memcpy(memory_.data() + 1, values.data(), values.size() * sizeof(T));
  }
  [[nodiscard]] source::ArrowBuffer buffer() const {
    return {std::span<const std::byte>(memory_).subspan(1), 100};
  }

 private:
  std::vector<std::byte> memory_;
};

ArrowField field_of(ArrowType type) {
  ArrowField field;
  field.name = "c";
  field.type = std::move(type);
  return field;
}

ArrowColumnParts parts_of(const ArrowField& field, std::uint64_t length) {
  ArrowColumnParts parts;
  parts.field = &field;
  parts.path = "c";
  parts.file = std::make_shared<const std::string>("a.arrow");
  parts.length = length;
  return parts;
}

const ArrowField kInt16 = field_of(
    {.kind = ArrowKind::integer, .width = 2, .is_signed = true});  // NOLINT(cert-err58-cpp)
const ArrowField kUtf8 = field_of({.kind = ArrowKind::utf8});      // NOLINT(cert-err58-cpp)
const ArrowField kList = field_of({.kind = ArrowKind::list});      // NOLINT(cert-err58-cpp)

template <class Use>
std::string column_fault(const Use& use) {
  try {
    use();
  } catch (const DataError& error) {
    return error.fault().to_string();
  }
  return "";
}

TEST(ArrowColumn, HasValuesAtAnyAddressAndOffset) {
  const Unaligned<std::int16_t> values({1, -2, 3, -4});
  const Unaligned<std::uint8_t> validity({0b1011});
  ArrowColumnParts parts = parts_of(kInt16, 3);
  parts.offset = 1;
  parts.first = values.buffer();
  parts.validity = validity.buffer();
  parts.may_have_nulls = true;
  const ArrowColumn column(parts);
  EXPECT_EQ(column.integer(0), -2);
  EXPECT_EQ(column.integer(2), -4);
  EXPECT_FALSE(column.is_null(0));
  EXPECT_TRUE(column.is_null(1));
  EXPECT_EQ(column.values(1, 2).size(), 4U);
  EXPECT_EQ(column.value(0).size(), 2U);
}

TEST(ArrowColumn, ExtendsIntegersByTheirSign) {
  const Unaligned<std::uint8_t> bytes({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF});
  for (const std::uint32_t width : {1U, 2U, 4U, 8U}) {
    for (const bool is_signed : {false, true}) {
      const ArrowField field =
          field_of({.kind = ArrowKind::integer, .width = width, .is_signed = is_signed});
      ArrowColumnParts parts = parts_of(field, 1);
      parts.first = bytes.buffer();
      const std::int64_t expected =
          is_signed || width == 8 ? -1 : (std::int64_t{1} << (8 * width)) - 1;
      EXPECT_EQ(ArrowColumn(parts).integer(0), expected) << width;
    }
  }
}

TEST(ArrowColumn, RefusesBuffersThatAreTooSmall) {
  const Unaligned<std::int16_t> values({1, 2});
  const auto fault_of = [&](std::uint64_t length, std::uint64_t offset) {
    return column_fault([&] {
      ArrowColumnParts parts = parts_of(kInt16, length);
      parts.offset = offset;
      parts.first = values.buffer();
      (void)ArrowColumn(parts);
    });
  };
  EXPECT_EQ(fault_of(2, 0), "");
  EXPECT_EQ(fault_of(1, 1), "");
  EXPECT_THAT(
      fault_of(3, 0),
      HasSubstr("a.arrow at byte 100: column 'c' of type Int16: expected 3 values of 2 bytes, "
                "and found 4 bytes"));
  EXPECT_THAT(fault_of(2, 1), HasSubstr("expected 3 values"));
  EXPECT_THAT(fault_of(1, ~std::uint64_t{0}), HasSubstr("has 1 values from"));
  EXPECT_THAT(fault_of(std::uint64_t{1} << 62, std::uint64_t{1} << 62), HasSubstr("values from"));
}

TEST(ArrowColumn, RefusesValidityBitsThatAreTooFew) {
  const Unaligned<std::int16_t> values(std::vector<std::int16_t>(9));
  const Unaligned<std::uint8_t> validity({0xFF});
  ArrowColumnParts parts = parts_of(kInt16, 9);
  parts.first = values.buffer();
  parts.validity = validity.buffer();
  (void)ArrowColumn(parts);  // without nulls it needs none
  parts.may_have_nulls = true;
  EXPECT_THAT(column_fault([&] { (void)ArrowColumn(parts); }),
              HasSubstr("expected 2 validity bits of 1 bytes, and found 1 bytes"));
}

TEST(ArrowColumn, ChecksEachSliceAsItIsRead) {
  const Unaligned<std::int32_t> offsets({0, 3, 2, 5, 9, -1});
  const Unaligned<char> bytes({'a', 'b', 'c', 'd', 'e', 'f'});
  ArrowColumnParts parts = parts_of(kUtf8, 5);
  parts.first = offsets.buffer();
  parts.second = bytes.buffer();
  const ArrowColumn column(parts);
  EXPECT_EQ(arrow_text(column.value(0)), "abc");
  EXPECT_EQ(arrow_text(column.value(2)), "cde");
  EXPECT_THAT(
      column_fault([&] { (void)column.value(1); }),
      HasSubstr("a.arrow at byte 104: column 'c' of type Utf8: value 1 is from 3 to 2 of 6"));
  EXPECT_THAT(column_fault([&] { (void)column.value(3); }),
              HasSubstr("value 3 is from 5 to 9 of 6"));
  EXPECT_THAT(column_fault([&] { (void)column.value(4); }),
              HasSubstr("value 4 is from 9 to -1 of 6"));
}

TEST(ArrowColumn, ChecksEachListAsItIsRead) {
  const Unaligned<std::int32_t> offsets({0, 2, 2, 4});
  const Unaligned<std::int16_t> values({7, 8, 9});
  ArrowColumnParts child = parts_of(kInt16, 3);
  child.first = values.buffer();
  ArrowColumnParts parts = parts_of(kList, 3);
  parts.first = offsets.buffer();
  parts.children.emplace_back(child);
  const ArrowColumn column(parts);
  EXPECT_EQ(column.range(0).end, 2U);
  EXPECT_EQ(column.range(1).size(), 0U);
  EXPECT_EQ(column.child(0).integer(column.range(0).begin + 1), 8);
  EXPECT_THAT(column_fault([&] { (void)column.range(2); }),
              HasSubstr("value 2 is from 2 to 4 of 3"));
}

TEST(ArrowColumn, OfListsOfOneSizeNeedsAllTheirValues) {
  const Unaligned<std::int16_t> values({1, 2, 3, 4, 5, 6});
  ArrowColumnParts child = parts_of(kInt16, 6);
  child.first = values.buffer();
  const ArrowField field = field_of({.kind = ArrowKind::fixed_size_list, .list_size = 2});
  ArrowColumnParts parts = parts_of(field, 2);
  parts.offset = 1;
  parts.children.emplace_back(child);
  const ArrowColumn column(parts);
  EXPECT_EQ(column.range(1).begin, 4U);
  EXPECT_EQ(column.range(1).end, 6U);
  parts.length = 3;
  EXPECT_THAT(column_fault([&] { (void)ArrowColumn(parts); }),
              HasSubstr("expected 8 values in child 0, and found 6"));
  parts.length = std::uint64_t{1} << 62;
  EXPECT_THAT(column_fault([&] { (void)ArrowColumn(parts); }), HasSubstr("values"));
}

TEST(ArrowColumn, OfAStructLeavesOutOfItsFieldsWhatItsOffsetLeavesOut) {
  const Unaligned<std::int16_t> values({1, 2, 3, 4, 5});
  ArrowColumnParts child = parts_of(kInt16, 4);
  child.offset = 1;
  child.first = values.buffer();
  const ArrowField field = field_of({.kind = ArrowKind::structure});
  ArrowColumnParts inner = parts_of(field, 3);
  inner.offset = 1;
  inner.children.emplace_back(child);
  ArrowColumnParts outer = parts_of(field, 2);
  outer.offset = 1;
  outer.children.emplace_back(inner);
  const ArrowColumn column(outer);
  EXPECT_EQ(column.child(0).child(0).length(), 2U);
  EXPECT_EQ(column.child(0).child(0).integer(0), 4);
  EXPECT_EQ(column.child(0).child(0).integer(1), 5);
  outer.length = 3;
  EXPECT_THAT(column_fault([&] { (void)ArrowColumn(outer); }),
              HasSubstr("expected 4 values in child 0, and found 3"));
}

TEST(ArrowColumn, LooksUpItsDictionaryAndChecksEachNumber) {
  const Unaligned<std::int32_t> first_offsets({0, 3, 6});
  const Unaligned<std::int32_t> second_offsets({0, 4});
  const Unaligned<char> first_bytes({'c', 'a', 't', 'd', 'o', 'g'});
  const Unaligned<char> second_bytes({'b', 'i', 'r', 'd'});
  const Unaligned<std::uint8_t> validity({0b01});
  const Unaligned<std::int8_t> numbers({2, 0, 1, 3, -1});
  ArrowField field = kUtf8;
  field.dictionary = {.id = 1,
                      .index = {.kind = ArrowKind::integer, .width = 1, .is_signed = true}};
  const auto part_of = [&](std::uint64_t length, source::ArrowBuffer offsets,
                           source::ArrowBuffer bytes) {
    ArrowColumnParts part = parts_of(field, length);
    part.is_dictionary = true;
    part.first = offsets;
    part.second = bytes;
    return part;
  };
  ArrowColumnParts first = part_of(2, first_offsets.buffer(), first_bytes.buffer());
  first.may_have_nulls = true;
  first.validity = validity.buffer();
  ArrowColumnParts parts = parts_of(field, 5);
  parts.first = numbers.buffer();
  auto entries = std::make_shared<source::ArrowEntries>();
  entries->add(ArrowColumn(first));
  entries->add(ArrowColumn(part_of(1, second_offsets.buffer(), second_bytes.buffer())));
  parts.dictionary = entries;
  const ArrowColumn column(parts);
  EXPECT_TRUE(column.has_dictionary());
  EXPECT_EQ(arrow_text(column.value(0)), "bird");
  EXPECT_EQ(arrow_text(column.value(1)), "cat");
  EXPECT_FALSE(column.is_null(1));
  EXPECT_TRUE(column.is_null(2));  // its entry is
  EXPECT_TRUE(column.value(2).empty());
  EXPECT_EQ(column.entry(0).number, 0U);
  EXPECT_THAT(column_fault([&] { (void)column.value(3); }),
              HasSubstr("value 3 is entry 3 of a dictionary of 3 entries"));
  EXPECT_THAT(column_fault([&] { (void)column.is_null(4); }),
              HasSubstr("value 4 is entry -1 of a dictionary of 3 entries"));
}

TEST(ArrowColumn, SaysWhichTypeItHasWhereAnotherIsRead) {
  const Unaligned<std::int16_t> values({1});
  ArrowColumnParts parts = parts_of(kInt16, 1);
  parts.first = values.buffer();
  const ArrowColumn column(parts);
  EXPECT_THAT(column_fault([&] { (void)column.boolean(0); }),
              HasSubstr("expected column 'c' to have booleans, and found Int16"));
  EXPECT_THAT(column_fault([&] { (void)column.range(0); }), HasSubstr("to have lists"));
  const ArrowColumn nothing(parts_of(field_of({.kind = ArrowKind::null}), 5));
  EXPECT_TRUE(nothing.is_null(4));
  EXPECT_THAT(column_fault([&] { (void)nothing.value(0); }), HasSubstr("found Null"));
}

}  // namespace
}  // namespace penstock
