#include "src/augment/variates.hpp"

#include <cmath>

#include "src/core/exact_math.hpp"

namespace penstock::augment {

double normal_variate(Random& random) noexcept {
  const double radius = std::sqrt(-2 * core::exact_log(1 - random.uniform()));
  return radius * core::exact_sine_cosine(360 * random.uniform()).cosine;
}

double gamma_variate(double shape, Random& random) noexcept {
  if (shape < 1) {
    const double log_uniform = core::exact_log(1 - random.uniform());
    return gamma_variate(shape + 1, random) * core::exact_exp(log_uniform / shape);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal_variate(random);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (core::exact_log(1 - random.uniform()) < 0.5 * x * x + d * (1 - v + core::exact_log(v)))
      return d * v;
  }
}

}  // namespace penstock::augment
