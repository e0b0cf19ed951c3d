// sync/collectives/reduction: arithmetic on host buffers of any element type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <penstock/core/tensor.hpp>
#include <penstock/sync/communicator.hpp>

namespace penstock::sync {

/// out[i] = op over inputs[k][i], k in ascending order; `op` mean divides the sum by `ranks`.
/// 16-bit floats are computed in f32 and rounded once, to nearest even. `out` may be one of the
/// inputs, or several outs may be: out of `outs` all get the same.
void reduce_elements(std::span<const std::byte* const> inputs, std::span<std::byte* const> outs,
                     std::size_t count, DType dtype, ReduceOp op, std::uint64_t ranks);

/// How a value comes from one buffer into another of the same or another floating type.
struct Move {
  double factor = 1;   ///< multiplied with
  double divisor = 1;  ///< divided by; integers are cut towards zero
  bool add = false;    ///< onto what is there
};

/// to[i] (+)= from[i] * factor / divisor. Types differ only where both are floating; a factor of 0
/// makes zeros, whatever `from` holds.
void move_elements(const std::byte* from, DType from_dtype, std::byte* to, DType to_dtype,
                   std::size_t count, const Move& how);

[[nodiscard]] constexpr bool is_float(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}
/// The type in which values of `dtype` are summed up.
[[nodiscard]] constexpr DType sum_dtype(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

}  // namespace penstock::sync
