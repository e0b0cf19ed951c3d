// sync/collectives/element_types: which C++ type stands for a dtype, on the host and in kernels.
#pragma once

#include <cstdint>
#include <type_traits>

#include <penstock/core/tensor.hpp>

namespace penstock::sync {

/// Calls `body` with a value of the type of `dtype`; F16 and Bf16 are the caller's 16-bit floats.
template <class F16, class Bf16, class F>
void with_element_type(DType dtype, const F& body) {
  switch (dtype) {
    case DType::u8:
      return body(std::uint8_t{});
    case DType::i8:
      return body(std::int8_t{});
    case DType::u16:
      return body(std::uint16_t{});
    case DType::i16:
      return body(std::int16_t{});
    case DType::u32:
      return body(std::uint32_t{});
    case DType::i32:
      return body(std::int32_t{});
    case DType::u64:
      return body(std::uint64_t{});
    case DType::i64:
      return body(std::int64_t{});
    case DType::f16:
      return body(F16{});
    case DType::bf16:
      return body(Bf16{});
    case DType::f32:
      return body(float{});
    case DType::f64:
      return body(double{});
    case DType::boolean:  // Communicator refuses to add truth values
      return;
  }
}

/// The only classes among element types are the 16-bit floats.
template <class T>
inline constexpr bool kIs16BitFloat = std::is_class_v<T>;

/// What T is computed in.
template <class T>
using SumType = std::conditional_t<kIs16BitFloat<T>, float, T>;

/// What a value is computed in on its way from one type to another.
template <class From, class To>
using MoveType = std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>,
                                    double, SumType<To>>;

/// Values are converted only between floating types.
template <class From, class To>
inline constexpr bool kMovable = std::is_same_v<From, To> ||
                                 (!std::is_integral_v<From> && !std::is_integral_v<To>);

}  // namespace penstock::sync
