#include "src/batch/layout.hpp"

#include <array>
#include <cstdint>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(BatchLayout, AlignsEveryFieldAndKeepsRowsDense) {
  const batch::BatchLayout layout({{"image", DType::u8, {5, 5, 3}}, {"label", DType::i64, {}}}, 10);
  EXPECT_EQ(layout.row_bytes(), 75U + 8U);
  EXPECT_EQ(layout.slice_bytes(), 768U + 256U);  // 750 and 80 bytes, each rounded up to 256

  std::array<std::byte, 1024> slice{};
  EXPECT_EQ(layout.row(slice.data(), 0, 3), slice.data() + 225);
  EXPECT_EQ(layout.row(slice.data(), 1, 3), slice.data() + 768 + 24);
  const TensorView labels = layout.field(slice.data(), 1, 7);
  EXPECT_EQ(labels.shape(), (Shape{7}));
  EXPECT_EQ(labels.raw(), slice.data() + 768);
  EXPECT_EQ(layout.field(slice.data(), 0, 0).shape(), (Shape{0, 5, 5, 3}));
}

TEST(BatchLayout, FindsFieldsByName) {
  const batch::BatchLayout layout({{"image", DType::u8, {3}}, {"label", DType::i64, {}}}, 1);
  EXPECT_EQ(layout.find("label"), 1U);
  EXPECT_EQ(layout.find("labels"), std::nullopt);
}

TEST(BatchLayout, RefusesWhatCannotLieInABatch) {
  EXPECT_THAT(([] {
                batch::BatchLayout({{"image", DType::u8, {kDynamic}}}, 4);
              }),
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("image u8 [?]"), HasSubstr("decode_image"))));
  EXPECT_THAT(([] {
                batch::BatchLayout({{"x", DType::u8, {}}, {"x", DType::i64, {}}}, 4);
              }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("two fields are named 'x'")));
  for (const std::int64_t wraps : {std::int64_t{1} << 61, std::int64_t{1} << 62})
    EXPECT_THROW(batch::BatchLayout({{"x", DType::f64, {wraps}}}, 1), std::invalid_argument);
  const std::int64_t half = (std::int64_t{1} << 46) - 100;
  EXPECT_NO_THROW(batch::BatchLayout({{"x", DType::u8, {half}}, {"y", DType::u8, {half}}}, 1));
  EXPECT_THROW(batch::BatchLayout(
                   {{"x", DType::u8, {half}}, {"y", DType::u8, {half}}, {"z", DType::u8, {1}}}, 1),
               std::invalid_argument);
  EXPECT_THROW(batch::BatchLayout({{"x", DType::f64, {1 << 30, 1 << 30}}}, 1 << 10),
               std::invalid_argument);
}

}  // namespace
}  // namespace penstock
