// core/exact_math: logarithms, powers, sines and cosines from IEEE +, -, *, / alone. The math library's own differ
// between systems in the last bit, and a bit is enough to move a crop by a pixel.
#pragma once

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace core {

/// The logarithm to base 2 of a positive, normal number; to about 1e-15.
[[nodiscard]] double exact_log2(double value) noexcept;
/// The natural logarithm; likewise.
[[nodiscard]] double exact_log(double value) noexcept;
/// 2 to the power of `value`, |value| < 1000; to about 1e-15, relative.
[[nodiscard]] double exact_exp2(double value) noexcept;
/// e to the power of `value`, |value| < 690; to about 1e-13, relative. What is smaller is 0.
[[nodiscard]] double exact_exp(double value) noexcept;

struct SineCosine {
  double sine = 0;
  double cosine = 1;
};
/// Of an angle in degrees, |degrees| < 1e9; to about 1e-15. Exact at multiples of 90.
[[nodiscard]] SineCosine exact_sine_cosine(double degrees) noexcept;

}  // namespace core
}  // namespace penstock
