// Fields of several Arrow files: whether they are the same.
#include "src/source/arrow/arrow_fields.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>

namespace penstock {
namespace {

using source::ArrowFields;
using source::ArrowKind;
using source::ArrowType;
using source::ArrowUnit;
using ::testing::HasSubstr;

ArrowFields column_of(const ArrowType& type) {
  ArrowFields fields;
  fields.nodes.push_back({.name = "", .type = {.kind = ArrowKind::structure}, .end = 1});
  const auto node = source::add_arrow_field(fields, {.name = "x", .type = type}, 0);
  source::close_arrow_field(fields, node);
  source::close_arrow_field(fields, 0);
  return fields;
}

// Why a column of one type is no column of another one; empty if it is.
std::string refusal(const ArrowType& first, const ArrowType& second) {
  const auto fields = source::resolve_arrow_columns(column_of(first), {}, "a.arrow");
  try {
    (void)source::find_arrow_fields(column_of(second), fields, "b.arrow", "a.arrow");
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ArrowFieldsOfFiles, HaveTheSameUnits) {
  for (const ArrowKind kind : {ArrowKind::timestamp, ArrowKind::time, ArrowKind::duration}) {
    const ArrowType ms{.kind = kind, .width = 8, .unit = ArrowUnit::milliseconds};
    const ArrowType us{.kind = kind, .width = 8, .unit = ArrowUnit::microseconds};
    EXPECT_EQ(refusal(ms, ms), "");
    EXPECT_THAT(refusal(ms, us), HasSubstr("in us, and in a.arrow it is x i64 []"));
    EXPECT_THAT(refusal(ms, us), HasSubstr("in ms: files of one data set must have the same"));
  }
  const ArrowType day{.kind = ArrowKind::date, .width = 4, .unit = ArrowUnit::days};
  const ArrowType time{.kind = ArrowKind::time, .width = 4, .unit = ArrowUnit::seconds};
  EXPECT_THAT(refusal(day, time), HasSubstr("a time in s, and in a.arrow"));
  EXPECT_THAT(refusal(day, {.kind = ArrowKind::integer, .width = 4, .is_signed = true}),
              HasSubstr("a date in days"));
}

}  // namespace
}  // namespace penstock
