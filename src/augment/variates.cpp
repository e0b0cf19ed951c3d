#include "src/augment/variates.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/core/exact_math.hpp"

namespace penstock::augment {

namespace {

constexpr double kLeast = -1e300;

}  // namespace

double normal_variate(Random& random) noexcept {
  const double radius = std::sqrt(-2 * core::exact_log(1 - random.uniform()));
  return radius * core::exact_sine_cosine(360 * random.uniform()).cosine;
}

double log_gamma_variate(double shape, Random& random) noexcept {
  if (shape < 1) {
    const double log_uniform = core::exact_log(1 - random.uniform());
    // Two that are smaller than any double are equal.
    return log_gamma_variate(shape + 1, random) + std::max(log_uniform / shape, kLeast);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal_variate(random);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (core::exact_log(1 - random.uniform()) < 0.5 * x * x + d * (1 - v + core::exact_log(v)))
      return core::exact_log(d * v);
  }
}

double beta_variate(double alpha, Random& random) noexcept {
  std::array<double, 2> shares{};
  dirichlet_variate(alpha, random, shares);
  return shares[0];
}

void dirichlet_variate(double alpha, Random& random, std::span<double> shares) noexcept {
  for (double& share : shares) share = log_gamma_variate(alpha, random);
  const double largest = *std::ranges::max_element(shares);
  double sum = 0;
  for (double& share : shares) sum += share = core::exact_exp(share - largest);
  for (double& share : shares) share /= sum;
}

}  // namespace penstock::augment
