// core/can_hold: whether a type has a number that was given as a double.
#pragma once

#include <cmath>

#include <penstock/core/tensor.hpp>

namespace penstock::core {

/// Whether a field of this type can be filled with the number: no integer becomes another one, and nothing finite infinite.
/// Fractions may be rounded. Of f16 and bf16, with which the host does no arithmetic, 0 alone.
[[nodiscard]] inline bool can_hold(DType dtype, double value) noexcept {
  const auto is_whole = [&](double low, double end) {
    return value >= low && value < end && std::trunc(value) == value;
  };
  switch (dtype) {
    case DType::boolean:
      return value == 0 || value == 1;
    case DType::u8:
      return is_whole(0, 0x1p8);
    case DType::i8:
      return is_whole(-0x1p7, 0x1p7);
    case DType::u16:
      return is_whole(0, 0x1p16);
    case DType::i16:
      return is_whole(-0x1p15, 0x1p15);
    case DType::u32:
      return is_whole(0, 0x1p32);
    case DType::i32:
      return is_whole(-0x1p31, 0x1p31);
    case DType::u64:
      return is_whole(0, 0x1p64);
    case DType::i64:
      return is_whole(-0x1p63, 0x1p63);
    case DType::f16:
    case DType::bf16:
      return value == 0;
    case DType::f32: {
      const auto rounded = static_cast<float>(value);
      if (!std::isfinite(value)) return true;
      return std::isfinite(rounded) && (std::trunc(value) != value || double{rounded} == value);
    }
    case DType::f64:
      return true;
  }
  return false;
}

}  // namespace penstock::core
