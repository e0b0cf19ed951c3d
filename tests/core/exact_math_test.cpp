#include "src/core/exact_math.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace penstock::core {
namespace {

TEST(ExactMath, AgreesWithTheMathLibraryToTheLastBits) {
  for (double value = 0.01; value < 100; value *= 1.003) {
    EXPECT_NEAR(exact_log2(value), std::log2(value),
                2e-15 * std::max(1.0, std::abs(std::log2(value))));
    EXPECT_NEAR(exact_log(value), std::log(value),
                2e-15 * std::max(1.0, std::abs(std::log(value))));
    EXPECT_NEAR(exact_exp2(value / 7) / std::exp2(value / 7), 1, 1e-14);
    EXPECT_NEAR(exact_exp2(-value / 7) * std::exp2(value / 7), 1, 1e-14);
    EXPECT_NEAR(exact_exp(value) / std::exp(value), 1, 1e-13);
    EXPECT_NEAR(exact_exp(-value) * std::exp(value), 1, 1e-13);
  }
  EXPECT_EQ(exact_exp(-1e6), 0);
}

TEST(ExactMath, SinesAndCosinesAreThoseOfTheMathLibraryAndExactAtRightAngles) {
  for (double degrees = -800; degrees < 800; degrees += 0.37) {
    const SineCosine found = exact_sine_cosine(degrees);
    const double radians = degrees * std::numbers::pi / 180;
    ASSERT_NEAR(found.sine, std::sin(radians), 4e-15) << degrees;
    ASSERT_NEAR(found.cosine, std::cos(radians), 4e-15) << degrees;
  }
  for (int quarter = -8; quarter <= 8; ++quarter) {
    const SineCosine found = exact_sine_cosine(90.0 * quarter);
    const int turned = (quarter + 8) % 4;
    EXPECT_EQ(found.sine, turned == 1 ? 1 : turned == 3 ? -1 : 0) << quarter;
    EXPECT_EQ(found.cosine, turned == 0 ? 1 : turned == 2 ? -1 : 0) << quarter;
  }
}

}  // namespace
}  // namespace penstock::core
