// core/half: 16-bit floats on the host, without branches, so that compilers vectorise the loops.
#pragma once

#include <bit>
#include <cstdint>

namespace penstock::core {

struct Half {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

[[nodiscard]] inline float to_float(Bfloat16 value) noexcept {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

/// Source  Giesen, Float->half variants, public domain: a multiplication moves the exponent, also
///         that of subnormal numbers.
[[nodiscard]] inline float to_float(Half value) noexcept {
  constexpr float kRescale = 0x1p112F;
  constexpr std::uint32_t kInfinite = 0x7F800000U;
  const std::uint32_t magnitude = (value.bits & 0x7FFFU) << 13;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * kRescale);
  bits |= magnitude >= (0x7C00U << 13) ? kInfinite : 0U;
  return std::bit_cast<float>(bits | (value.bits & 0x8000U) << 16);
}

/// To nearest, ties to even; NaN stays NaN.
[[nodiscard]] inline Bfloat16 to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40U;
  return {static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet : rounded)};
}

/// To nearest, ties to even; too large becomes infinite, NaN stays NaN.
[[nodiscard]] inline Half to_half(float value) noexcept {
  constexpr std::uint32_t kSmallestInfinite = (127U + 16U) << 23;  // 65536
  constexpr std::uint32_t kSmallestNormal = (127U - 14U) << 23;
  constexpr float kDenormalMagic = 0.5F;  // aligns the ten bits of a subnormal half
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t special = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + kDenormalMagic) -
      std::bit_cast<std::uint32_t>(kDenormalMagic);
  const std::uint32_t normal =
      (magnitude - ((127U - 15U) << 23) + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  const std::uint32_t half = magnitude >= kSmallestInfinite ? special
                             : magnitude < kSmallestNormal  ? subnormal
                                                            : normal;
  return {static_cast<std::uint16_t>(half | (bits & 0x80000000U) >> 16)};
}

}  // namespace penstock::core
