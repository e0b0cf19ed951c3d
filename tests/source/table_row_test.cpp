// Labels of tables: what of a column's integers and its default_value is one.
#include "src/source/tables/table_row.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

namespace penstock {
namespace {

template <class T>
std::optional<std::int64_t> label_of(DType dtype, T value) {
  return source::integer_of(dtype, reinterpret_cast<const std::byte*>(&value));
}

TEST(TableLabels, AreIntegersThatI64Has) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(label_of(DType::u64, kMost), kMost);
  EXPECT_EQ(label_of(DType::u64, kMost + 1), std::nullopt);
  EXPECT_EQ(label_of(DType::u64, ~std::uint64_t{0}), std::nullopt);
  EXPECT_EQ(label_of(DType::i64, std::int64_t{-1}), -1);
  EXPECT_EQ(label_of(DType::u32, ~std::uint32_t{0}), 0xFFFFFFFF);
  EXPECT_EQ(label_of(DType::i8, std::int8_t{-7}), -7);
}

TEST(TableLabels, AreDefaultsThatI64Has) {
  TableColumn column{.name = "label"};
  for (const double value : {-1.0, 0.0, 255.0, -0x1p63, 0x1p62}) {
    column.default_value = value;
    EXPECT_EQ(source::default_label(column), static_cast<std::int64_t>(value));
  }
  for (const double value : {0x1p63, 0x1.fp63}) {
    column.default_value = value;
    EXPECT_EQ(source::default_label(column), std::nullopt);
  }
}

}  // namespace
}  // namespace penstock
