#include "testing/simulated_nccl/arithmetic.hpp"

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace penstock::simulated_nccl {

namespace {

// What a type is computed in, and rounded from.
float wide(__half value) { return __half2float(value); }
float wide(__nv_bfloat16 value) { return __bfloat162float(value); }
float wide(__nv_fp8_e4m3 value) { return static_cast<float>(value); }
float wide(__nv_fp8_e5m2 value) { return static_cast<float>(value); }
template <class T>
requires std::is_arithmetic_v<T> T wide(T value) { return value; }

template <class T>
auto narrow(decltype(wide(T{})) value) {
  if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(value);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(value);
  else
    return T(value);
}

template <class T>
constexpr bool kWhole = std::is_integral_v<T>;

// Without the undefined behaviour of an overflow.
template <class T>
T sum(T a, T b) {
  if constexpr (kWhole<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}
template <class T>
T product(T a, T b) {
  if constexpr (kWhole<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}

template <class F>
void with_type(ncclDataType_t type, const F& body) {
  switch (type) {
    case ncclInt8:
      return body(std::int8_t{});
    case ncclUint8:
      return body(std::uint8_t{});
    case ncclInt32:
      return body(std::int32_t{});
    case ncclUint32:
      return body(std::uint32_t{});
    case ncclInt64:
      return body(std::int64_t{});
    case ncclUint64:
      return body(std::uint64_t{});
    case ncclFloat16:
      return body(__half{});
    case ncclFloat32:
      return body(float{});
    case ncclFloat64:
      return body(double{});
    case ncclBfloat16:
      return body(__nv_bfloat16{});
    case ncclFloat8e4m3:
      return body(__nv_fp8_e4m3{});
    case ncclFloat8e5m2:
      return body(__nv_fp8_e5m2{});
    case ncclNumTypes:
      break;
  }
}

// A rank's value as the mean takes it.
template <class T>
T divided(T value, int ranks) {
  using W = decltype(wide(T{}));
  if constexpr (kWhole<T>)
    return value;
  else
    return narrow<T>(wide(value) * wide(narrow<T>(static_cast<W>(1.0 / ranks))));
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  std::size_t size = 0;
  with_type(type, [&](auto value) { size = sizeof value; });
  return size;
}

const char* name_of(ncclDataType_t type) {
  constexpr const char* kNames[] = {"i8",  "u8",  "i32", "u32",  "i64",  "u64",
                                    "f16", "f32", "f64", "bf16", "e4m3", "e5m2"};
  return size_of(type) > 0 ? kNames[type] : "unknown";
}

const char* name_of(ncclRedOp_t op) {
  constexpr const char* kNames[] = {"sum", "product", "max", "min", "mean"};
  return op >= 0 && op < ncclNumOps ? kNames[op] : nullptr;
}

void Reduction::begin(std::byte* result, std::size_t count) const {
  if (op != ncclAvg) return;
  with_type(type, [&](auto value) {
    using T = decltype(value);
    auto* const out = reinterpret_cast<T*>(result);
    for (std::size_t i = 0; i < count; ++i) out[i] = divided(out[i], ranks);
  });
}

void Reduction::add(std::byte* result, const std::byte* next, std::size_t count) const {
  with_type(type, [&](auto value) {
    using T = decltype(value);
    auto* const out = reinterpret_cast<T*>(result);
    const auto* const in = reinterpret_cast<const T*>(next);
    for (std::size_t i = 0; i < count; ++i) {
      const auto a = wide(out[i]);
      const auto b = wide(op == ncclAvg ? divided(in[i], ranks) : in[i]);
      switch (op) {
        case ncclProd:
          out[i] = narrow<T>(product(a, b));
          break;
        case ncclMax:
          out[i] = narrow<T>(a < b ? b : a);
          break;
        case ncclMin:
          out[i] = narrow<T>(b < a ? b : a);
          break;
        default:
          out[i] = narrow<T>(sum(a, b));
          break;
      }
    }
  });
}

void Reduction::end(std::byte* result, std::size_t count) const {
  if (op != ncclAvg) return;
  with_type(type, [&](auto value) {
    using T = decltype(value);
    if constexpr (kWhole<T>) {
      auto* const out = reinterpret_cast<T*>(result);
      for (std::size_t i = 0; i < count; ++i)
        out[i] = static_cast<T>(
            out[i] /
            static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(
                ranks));
    }
  });
}

}  // namespace penstock::simulated_nccl
