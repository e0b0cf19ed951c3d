// Arithmetic on host buffers.
#include "src/sync/collectives/reduction.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/core/half.hpp"

namespace penstock::sync {
namespace {

using testing::ElementsAre;

// By the definition of the format, without tricks.
double value_of_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, -14);
  return sign * std::ldexp(1 + fraction, exponent - 15);
}

TEST(Half, EveryValueIsWhatTheFormatSaysAndComesBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const core::Half half{static_cast<std::uint16_t>(bits)};
    const double expected = value_of_half(half.bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(core::to_float(half)));
      EXPECT_TRUE(std::isnan(core::to_float(core::to_half(core::to_float(half)))));
      continue;
    }
    ASSERT_EQ(core::to_float(half), expected) << bits;
    ASSERT_EQ(core::to_half(core::to_float(half)).bits, half.bits) << bits;
  }
}

TEST(Half, RoundsToTheNearestWithTiesToEven) {
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) {
    // Every exponent around the range of halves, not only those near one.
    const auto value = static_cast<float>(std::ldexp(
        std::generate_canonical<double, 53>(random) + 1, static_cast<int>(random() % 44) - 28));
    const core::Half half = core::to_half(value);
    const double found = value_of_half(half.bits);
    if (value >= 65520.0F) {
      ASSERT_TRUE(std::isinf(found)) << value;
      continue;
    }
    const double below =
        half.bits == 0 ? 0 : value_of_half(static_cast<std::uint16_t>(half.bits - 1));
    const double above = value_of_half(static_cast<std::uint16_t>(half.bits + 1));
    ASSERT_LE(std::abs(found - value), std::abs(below - value)) << value;
    ASSERT_LE(std::abs(found - value), std::abs(above - value)) << value;
  }
  EXPECT_EQ(core::to_half(1 + 0x1p-11F).bits, core::to_half(1).bits);
  EXPECT_EQ(core::to_half(1 + 0x3p-11F).bits, core::to_half(1 + 0x1p-9F).bits);
  EXPECT_EQ(core::to_half(0x1p-25F).bits, 0);
  EXPECT_EQ(core::to_half(0x3p-25F).bits, 2);
}

TEST(Bfloat16, RoundsToTheNearestWithTiesToEven) {
  EXPECT_EQ(core::to_bfloat16(1.0F).bits, 0x3F80);
  EXPECT_EQ(core::to_bfloat16(1 + 0x1p-8F).bits, 0x3F80);
  EXPECT_EQ(core::to_bfloat16(1 + 0x3p-8F).bits, 0x3F82);
  EXPECT_EQ(core::to_bfloat16(1 + 0x1.1p-8F).bits, 0x3F81);
  EXPECT_TRUE(std::isnan(core::to_float(core::to_bfloat16(std::nanf("")))));
  EXPECT_TRUE(std::isinf(core::to_float(core::to_bfloat16(std::numeric_limits<float>::max()))));
  for (std::uint32_t bits = 0; bits < 0x7F80; ++bits)
    ASSERT_EQ(
        core::to_bfloat16(core::to_float(core::Bfloat16{static_cast<std::uint16_t>(bits)})).bits,
        bits);
}

template <class T>
std::vector<T> reduced(const std::vector<std::vector<T>>& inputs, ReduceOp op) {
  std::vector<const std::byte*> in;
  for (const auto& input : inputs) in.push_back(reinterpret_cast<const std::byte*>(input.data()));
  std::vector<T> result(inputs[0].size());
  reduce_elements(in, std::array{reinterpret_cast<std::byte*>(result.data())}, result.size(),
                  dtype_of<T>(), op, inputs.size());
  return result;
}

TEST(Reduce, DoesWhatItsNameSays) {
  const std::vector<std::vector<std::int32_t>> values{{1, -7, 3}, {5, 2, 3}, {4, 1, -9}};
  EXPECT_THAT(reduced(values, ReduceOp::sum), ElementsAre(10, -4, -3));
  EXPECT_THAT(reduced(values, ReduceOp::product), ElementsAre(20, -14, -81));
  EXPECT_THAT(reduced(values, ReduceOp::min), ElementsAre(1, -7, -9));
  EXPECT_THAT(reduced(values, ReduceOp::max), ElementsAre(5, 2, 3));
  EXPECT_THAT(reduced(values, ReduceOp::mean), ElementsAre(3, -1, -1));
  EXPECT_THAT(reduced<std::uint8_t>({{200}, {100}}, ReduceOp::sum), ElementsAre(44));
  EXPECT_THAT(reduced<std::int16_t>({{-32768}, {-1}}, ReduceOp::sum), ElementsAre(32767));
  EXPECT_THAT(reduced<double>({{1}, {0.5}}, ReduceOp::mean), ElementsAre(0.75));
}

TEST(Reduce, NanIsNotHiddenByMinAndMax) {
  for (const auto op : {ReduceOp::min, ReduceOp::max}) {
    EXPECT_TRUE(std::isnan(reduced<float>({{1}, {std::nanf("")}}, op)[0]));
    EXPECT_TRUE(std::isnan(reduced<float>({{std::nanf("")}, {1}}, op)[0]));
  }
}

TEST(Reduce, AddsSixteenBitFloatsInF32) {
  // In f16 each step would be lost: 2048 + 1 = 2048.
  std::vector<core::Half> big{core::to_half(2048)};
  std::vector<core::Half> one{core::to_half(1)};
  std::vector<const std::byte*> in{reinterpret_cast<const std::byte*>(big.data())};
  for (int i = 0; i < 8; ++i) in.push_back(reinterpret_cast<const std::byte*>(one.data()));
  core::Half result{};
  reduce_elements(in, std::array{reinterpret_cast<std::byte*>(&result)}, 1, DType::f16,
                  ReduceOp::sum, 9);
  EXPECT_EQ(core::to_float(result), 2056);
}

TEST(Reduce, LongBuffersInPlaceAreTheSameAsShortOnes) {
  constexpr std::size_t kCount = 10'001;  // several blocks and a part
  std::vector<float> a(kCount);
  std::vector<float> b(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = static_cast<float>(2 * i);
  }
  auto* const a_bytes = reinterpret_cast<std::byte*>(a.data());
  auto* const b_bytes = reinterpret_cast<std::byte*>(b.data());
  reduce_elements(std::array<const std::byte*, 2>{a_bytes, b_bytes}, std::array{a_bytes, b_bytes},
                  kCount, DType::f32, ReduceOp::sum, 2);
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(a[i], static_cast<float>(3 * i));
    ASSERT_EQ(b[i], a[i]);
  }
}

TEST(Move, ConvertsScalesAndAdds) {
  const auto bytes = [](auto& values) { return reinterpret_cast<std::byte*>(values.data()); };
  std::array<float, 3> values{1, 2.5, -3};
  std::array<core::Half, 3> halves{};
  move_elements(bytes(values), DType::f32, bytes(halves), DType::f16, 3, {.divisor = 2});
  EXPECT_EQ(core::to_float(halves[1]), 1.25);
  move_elements(bytes(halves), DType::f16, bytes(values), DType::f32, 3, {.add = true});
  EXPECT_THAT(values, ElementsAre(1.5, 3.75, -4.5));
  move_elements(bytes(values), DType::f32, bytes(values), DType::f32, 3,
                {.factor = 4, .divisor = 3});
  EXPECT_THAT(values, ElementsAre(2, 5, -6));
  std::array<std::int64_t, 2> whole{7, -7};
  move_elements(bytes(whole), DType::i64, bytes(whole), DType::i64, 2, {.divisor = 2});
  EXPECT_THAT(whole, ElementsAre(3, -3));
  values[0] = std::nanf("");
  move_elements(bytes(values), DType::f32, bytes(values), DType::f32, 3, {.factor = 0});
  EXPECT_THAT(values, ElementsAre(0, 0, 0));
  EXPECT_THROW(move_elements(bytes(whole), DType::i64, bytes(values), DType::f32, 2, {}),
               std::logic_error);
}

}  // namespace
}  // namespace penstock::sync
