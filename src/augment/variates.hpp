// augment/variates: random numbers that are not uniform, the same on every machine.
#pragma once

#include <penstock/core/random.hpp>

namespace penstock::augment {

/// Of mean 0 and standard deviation 1.
///
/// Source  Box, Muller: A Note on the Generation of Random Normal Deviates (1958)
[[nodiscard]] double normal_variate(Random& random) noexcept;

/// Of a shape above 0, and of scale 1.
///
/// Source  Marsaglia, Tsang: A Simple Method for Generating Gamma Variables (ACM TOMS 2000)
[[nodiscard]] double gamma_variate(double shape, Random& random) noexcept;

}  // namespace penstock::augment
