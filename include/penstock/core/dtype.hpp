// core/dtype: the element types that a tensor can have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace penstock {

/// Element types. f16 and bf16 are storage only: the host does no arithmetic on them.
enum class DType : std::uint8_t { u8, i8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64 };

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::u8:
    case DType::i8:
      return 1;
    case DType::i16:
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i32:
    case DType::u32:
    case DType::f32:
      return 4;
    case DType::i64:
    case DType::u64:
    case DType::f64:
      return 8;
  }
  return 0;
}

/// "u8", "f32" and so on.
[[nodiscard]] constexpr std::string_view name_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::u8:
      return "u8";
    case DType::i8:
      return "i8";
    case DType::i16:
      return "i16";
    case DType::u16:
      return "u16";
    case DType::i32:
      return "i32";
    case DType::u32:
      return "u32";
    case DType::i64:
      return "i64";
    case DType::u64:
      return "u64";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
  }
  return "?";
}

/// The DType of a C++ arithmetic type.
template <class T>
[[nodiscard]] constexpr DType dtype_of() noexcept {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) {
    return DType::f32;
  } else if constexpr (std::is_same_v<U, double>) {
    return DType::f64;
  } else {
    static_assert(std::is_integral_v<U> && !std::is_same_v<U, bool>, "no DType for this C++ type");
    constexpr bool kSigned = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return kSigned ? DType::i8 : DType::u8;
    if constexpr (sizeof(U) == 2) return kSigned ? DType::i16 : DType::u16;
    if constexpr (sizeof(U) == 4) return kSigned ? DType::i32 : DType::u32;
    if constexpr (sizeof(U) == 8) return kSigned ? DType::i64 : DType::u64;
  }
}

}  // namespace penstock
