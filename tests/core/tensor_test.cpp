#include <array>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>

namespace penstock {
namespace {

TEST(Shape, PrintsDynamicExtentsAsQuestionMarks) {
  EXPECT_EQ((Shape{224, 224, 3}).to_string(), "[224,224,3]");
  EXPECT_EQ((Shape{kDynamic}).to_string(), "[?]");
  EXPECT_EQ(Shape{}.to_string(), "[]");
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_TRUE((Shape{3, kDynamic}).is_dynamic());
  EXPECT_EQ((Shape{2, 3}).with_rows(8), (Shape{8, 2, 3}));
}

TEST(Shape, RefusesMoreExtentsThanItHolds) {
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), std::invalid_argument);
  EXPECT_THROW((Shape{-2}), std::invalid_argument);
  EXPECT_THROW((void)(Shape{1, 1, 1, 1, 1, 1}).with_rows(2), std::invalid_argument);
}

TEST(TensorView, GivesTypedDataOnlyForItsOwnType) {
  std::array<float, 4> values{1, 2, 3, 4};
  const TensorView view(reinterpret_cast<std::byte*>(values.data()), DType::f32, {2, 2});
  EXPECT_EQ(view.data<float>()[3], 4);
  EXPECT_EQ(view.byte_size(), 16U);
  const ConstTensorView read_only = view;
  EXPECT_EQ(read_only.data<float>()[1], 2);
  EXPECT_THAT(
      [&] { (void)view.data<std::int32_t>(); },
      testing::ThrowsMessage<std::invalid_argument>(testing::HasSubstr("holds f32, not i32")));
  std::array truths{std::byte{0}, std::byte{1}};
  const TensorView bools(truths.data(), DType::boolean, {2});
  EXPECT_EQ(bools.data<bool>()[1], true);
  EXPECT_EQ(bools.byte_size(), 2U);
  EXPECT_THAT([&] { (void)bools.data<std::uint8_t>(); },
              testing::ThrowsMessage<std::invalid_argument>(
                  testing::HasSubstr("holds bool, not u8: ask for data<bool>()")));
}

TEST(DType, HasANumberANameAndASize) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kDTypes[i]), i);
    EXPECT_NE(name_of(kDTypes[i]), "?");
    EXPECT_NE(size_of(kDTypes[i]), 0U);
  }
}

TEST(Digest, AddsModulo128BitsInAnyOrder) {
  Digest sum{.low = ~0ULL, .high = ~0ULL};
  sum += Digest{.low = 2, .high = 0};
  EXPECT_EQ(sum, (Digest{.low = 1, .high = 0}));
  Digest self{.low = (1ULL << 63) + 5, .high = 7};
  self += self;
  EXPECT_EQ(self, (Digest{.low = 10, .high = 15}));
  Digest large{.low = ~0ULL, .high = 3};
  large += Digest{.low = ~0ULL, .high = 4};
  EXPECT_EQ(large, (Digest{.low = ~0ULL - 1, .high = 8}));
}

TEST(Digest, RoundTripsThroughText) {
  const Digest digest{.low = 0x123456789abcdef0, .high = 0xfedcba9876543210};
  EXPECT_EQ(digest.to_string(), "fedcba9876543210123456789abcdef0");
  EXPECT_EQ(Digest::parse(digest.to_string()), digest);
  EXPECT_THROW((void)Digest::parse("12"), std::invalid_argument);
  EXPECT_THROW((void)Digest::parse(std::string(32, 'x')), std::invalid_argument);
}

TEST(RowHasher, DependsOnPlaceIdentityAndEveryField) {
  const std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  const auto hash = [&](std::uint64_t step, std::uint64_t row, SampleId id, std::size_t split) {
    RowHasher hasher(step, row, id);
    hasher.add(std::span(bytes).first(split));
    hasher.add(std::span(bytes).subspan(split));
    return hasher.finish();
  };
  const Digest reference = hash(1, 2, {.number = 3}, 1);
  EXPECT_EQ(hash(1, 2, {.number = 3}, 1), reference);
  EXPECT_NE(hash(2, 2, {.number = 3}, 1), reference);
  EXPECT_NE(hash(1, 1, {.number = 3}, 1), reference);
  EXPECT_NE(hash(1, 2, {.number = 4}, 1), reference);
  EXPECT_NE(hash(1, 2, {.number = 3, .epoch = 1}, 1), reference);
  EXPECT_NE(hash(1, 2, {.number = 3}, 2), reference);
  EXPECT_NE(hash(1, 2, {.number = 3, .draw = 1}, 1), reference);
  EXPECT_NE(hash(1, 2, {.number = 3, .draw = 1}, 1), hash(1, 2, {.number = 3, .draw = 2}, 1));
}

}  // namespace
}  // namespace penstock
