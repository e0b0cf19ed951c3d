#include "src/core/exact_math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace penstock::core {

namespace {

constexpr double kLn2 = 0.693147180559945309417;
constexpr double kLeastExponent = -690;
constexpr int kMantissaBits = 52;
constexpr int kExponentBias = 1023;

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + kExponentBias)
                               << kMantissaBits);
}

}  // namespace

double exact_log2(double value) noexcept {
  constexpr double kSqrt2 = 1.41421356237309504880;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  int exponent = static_cast<int>(bits >> kMantissaBits) - kExponentBias;
  double mantissa = value / power_of_two(exponent);  // in [1, 2)
  if (mantissa > kSqrt2) {
    mantissa /= 2;
    ++exponent;
  }
  // ln m = 2 artanh s, s = (m - 1) / (m + 1); |s| < 0.172, so eleven terms reach double precision.
  const double s = (mantissa - 1) / (mantissa + 1);
  double sum = 0;
  for (int k = 10; k >= 0; --k) sum = sum * s * s + 1.0 / (2 * k + 1);
  return exponent + 2 * s * sum / kLn2;
}

double exact_exp2(double value) noexcept {
  const double whole = std::floor(value + 0.5);
  const double x =
      (value - whole) * kLn2;  // |x| < 0.35: fifteen terms of the series reach double precision
  double sum = 1;
  for (int k = 15; k > 0; --k) sum = 1 + sum * x / k;
  return sum * power_of_two(static_cast<int>(whole));
}

double exact_log(double value) noexcept { return exact_log2(value) * kLn2; }

double exact_exp(double value) noexcept {
  return value < kLeastExponent ? 0 : exact_exp2(value / kLn2);
}

SineCosine exact_sine_cosine(double degrees) noexcept {
  constexpr double kPi = 3.14159265358979323846;
  const double turns = std::floor(degrees / 360);
  const double within = degrees - turns * 360;
  const double quadrant = std::floor(within / 90 + 0.5);
  const double x = (within - quadrant * 90) * (kPi / 180);  // |x| <= pi / 4
  double sine = 1;
  double cosine = 1;
  for (int k = 18; k > 0; k -= 2) {
    sine = 1 - sine * x * x / (k * (k + 1));
    cosine = 1 - cosine * x * x / (k * (k - 1));
  }
  sine *= x;
  switch (static_cast<int>(quadrant) % 4) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace penstock::core
