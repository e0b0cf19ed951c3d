// augment/variates: random numbers that are not uniform, the same on every machine.
#pragma once

#include <span>

#include <penstock/core/random.hpp>

namespace penstock::augment {

/// Of mean 0 and standard deviation 1.
///
/// Source  Box, Muller: A Note on the Generation of Random Normal Deviates (1958)
[[nodiscard]] double normal_variate(Random& random) noexcept;

/// The natural logarithm of a Gamma variate of a shape above 0 and scale 1: of small shapes most are too small for a double.
///
/// Source  Marsaglia, Tsang: A Simple Method for Generating Gamma Variables (ACM TOMS 2000)
[[nodiscard]] double log_gamma_variate(double shape, Random& random) noexcept;

/// Beta(alpha, alpha), from 0 to 1.
[[nodiscard]] double beta_variate(double alpha, Random& random) noexcept;

/// A Dirichlet variate whose parameters are all `alpha`: numbers from 0 to 1 that add up to 1.
void dirichlet_variate(double alpha, Random& random, std::span<double> shares) noexcept;

}  // namespace penstock::augment
