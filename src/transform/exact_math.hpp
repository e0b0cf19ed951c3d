// transform/exact_math: logarithm and power of two from IEEE +, -, *, / alone. The math library's
// own differ between systems in the last bit, and a bit is enough to move a crop by a pixel.
#pragma once

namespace penstock::transform {

/// The logarithm to base 2 of a positive, normal number; to about 1e-15.
[[nodiscard]] double exact_log2(double value) noexcept;
/// 2 to the power of `value`, |value| < 1000; to about 1e-15, relative.
[[nodiscard]] double exact_exp2(double value) noexcept;

}  // namespace penstock::transform
