// Pearson's test: how likely are counts at least this far from their expectation, if the
// expectation is right?
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace penstock::order {

/// The probability that a chi-square variable of so many degrees of freedom is above `x`: the upper
/// incomplete gamma function, as its series or its continued fraction.
inline double chi_square_p(double x, double degrees) {
  const double a = degrees / 2;
  x /= 2;
  if (x <= 0) return 1;
  const double scale = std::exp(-x + a * std::log(x) - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (double n = a + 1; term > sum * 1e-16; ++n) sum += term *= x / n;
    return 1 - sum * scale;
  }
  double b = x + 1 - a;
  double c = 1e300;
  double d = 1 / b;
  double fraction = d;
  for (int i = 1; i < 100'000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    fraction *= d * c;
    if (std::abs(d * c - 1) < 1e-14) break;
  }
  return fraction * scale;
}

/// The p value of counts that should all be equal.
inline double evenness(const std::vector<std::uint64_t>& counts) {
  double total = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double x = 0;
  for (const std::uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    x += off * off / expected;
  }
  return chi_square_p(x, static_cast<double>(counts.size()) - 1);
}

/// 0 .. n!-1, which permutation of n different values this is.
template <typename Values>
std::size_t permutation_index(const Values& values) {
  std::size_t index = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t smaller_after = 0;
    for (std::size_t j = i + 1; j < values.size(); ++j) smaller_after += values[j] < values[i];
    index = index * (values.size() - i) + smaller_after;
  }
  return index;
}

constexpr std::size_t factorial(std::size_t n) { return n < 2 ? 1 : n * factorial(n - 1); }

}  // namespace penstock::order
