// jpeg/decoder/idct_block: the transform of one block, one number at a time. It says what the
// vectors have to come to, and stands in where they have nothing to go by.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <hwy/detect_compiler_arch.h>

#include "src/core/host_device.hpp"
#include "src/jpeg/decoder/idct.hpp"

namespace penstock::jpeg::idct {

// jidctint.c's factors, 13 bits of fraction.
constexpr int k0298 = 2446;
constexpr int k0390 = 3196;
constexpr int k0541 = 4433;
constexpr int k0765 = 6270;
constexpr int k0899 = 7373;
constexpr int k1175 = 9633;
constexpr int k1501 = 12299;
constexpr int k1847 = 15137;
constexpr int k1961 = 16069;
constexpr int k2053 = 16819;
constexpr int k2562 = 20995;
constexpr int k3072 = 25172;
constexpr int kConstBits = 13;
constexpr int kPass1Bits = 2;
constexpr int kShift1 = kConstBits - kPass1Bits;
constexpr int kShift2 = kConstBits + kPass1Bits + 3;

// What does not fit in 16 bits between the passes wraps around in libjpeg-turbo's vectors for ARM,
// and saturates in those for x86.
constexpr bool kWrapsBetween = HWY_ARCH_ARM != 0;

// There is a short cut for blocks whose only coefficients are in the first row, which always wraps
// around. From here on it and the long way differ, where that saturates.
constexpr int kShortCutLimit = 8192;

PENSTOCK_HOST_DEVICE constexpr std::int16_t wrap(std::int32_t value) {
  return static_cast<std::int16_t>(value);
}
PENSTOCK_HOST_DEVICE constexpr std::int16_t saturate(std::int32_t value) {
  return static_cast<std::int16_t>(value < -32768 ? -32768 : value > 32767 ? 32767 : value);
}

// A pass's sum, scaled down and rounded.
template <int kShift>
PENSTOCK_HOST_DEVICE constexpr std::int16_t narrow(std::uint32_t sum) {
  if constexpr (!kWrapsBetween)
    return saturate(static_cast<std::int32_t>(sum + (1U << (kShift - 1))) >> kShift);
  else if constexpr (kShift == kShift1)
    return wrap(static_cast<std::int32_t>(sum + (1U << (kShift - 1))) >> kShift);
  else  // the upper half is what gets rounded, and that does not wrap
    return wrap(((static_cast<std::int32_t>(sum) >> 16) + (1 << (kShift - 17))) >> (kShift - 16));
}

// One pass over eight numbers that are `step` apart. Sums wrap at 32 bits.
template <int kShift>
PENSTOCK_HOST_DEVICE inline void pass(std::int16_t* at, std::ptrdiff_t step) {
  const auto in = [&](int i) { return static_cast<std::int32_t>(at[i * step]); };
  const auto mul = [](std::int32_t a, std::int32_t b) {
    return static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b);
  };
  const std::uint32_t t0 = static_cast<std::uint32_t>(wrap(in(0) + in(4))) << kConstBits;
  const std::uint32_t t1 = static_cast<std::uint32_t>(wrap(in(0) - in(4))) << kConstBits;
  const std::uint32_t t3 = mul(in(2), k0541 + k0765) + mul(in(6), k0541);
  const std::uint32_t t2 = mul(in(2), k0541) + mul(in(6), k0541 - k1847);
  const std::uint32_t even[4] = {t0 + t3, t1 + t2, t1 - t2, t0 - t3};
  const std::int32_t z3 = wrap(in(7) + in(3));
  const std::int32_t z4 = wrap(in(5) + in(1));
  const std::uint32_t y3 = mul(z3, k1175 - k1961) + mul(z4, k1175);
  const std::uint32_t y4 = mul(z3, k1175) + mul(z4, k1175 - k0390);
  const std::uint32_t odd[4] = {mul(in(7), -k0899) + mul(in(1), k1501 - k0899) + y4,
                                mul(in(5), -k2562) + mul(in(3), k3072 - k2562) + y3,
                                mul(in(5), k2053 - k2562) + mul(in(3), -k2562) + y4,
                                mul(in(7), k0298 - k0899) + mul(in(1), -k0899) + y3};
  for (int i = 0; i < 4; ++i) {
    at[i * step] = narrow<kShift>(even[i] + odd[i]);
    at[(7 - i) * step] = narrow<kShift>(even[i] - odd[i]);
  }
}

// One block of dequantized coefficients in rows, which are lost. `first_row_only`: those of the other rows are no coefficients, not
// just zeros after a sum has wrapped around.
PENSTOCK_HOST_DEVICE inline void transform(std::int16_t* work, bool first_row_only,
                                           std::uint8_t* out, std::ptrdiff_t stride) {
  if (first_row_only) {
    for (int x = 0; x < 8; ++x)
      for (int y = 7; y >= 0; --y) work[8 * y + x] = wrap(work[x] << kPass1Bits);
  } else {
    for (int x = 0; x < 8; ++x) pass<kShift1>(work + x, 8);
  }
  for (int y = 0; y < 8; ++y) {
    pass<kShift2>(work + 8 * y, 1);
    for (int x = 0; x < 8; ++x) {
      const int level = work[8 * y + x] + 128;
      out[y * stride + x] = static_cast<std::uint8_t>(level < 0 ? 0 : level > 255 ? 255 : level);
    }
  }
}

// One block, whatever its coefficients.
inline void block(const Block& in, std::int16_t dc, const QuantTable& quant, std::uint8_t* out,
                  std::ptrdiff_t stride) {
  std::int16_t work[kBlockSize];
  bool first_row_only = true;
  for (std::size_t i = 0; i < kBlockSize; ++i) {
    const std::size_t k = kZigzagOf[i];
    const std::int32_t value = i == 0 ? dc : extend(in.raw[k], in.size[k] & 15U);
    if (i >= 8 && value != 0) first_row_only = false;
    work[i] = wrap(value * quant.zigzag[k]);
  }
  transform(work, first_row_only, out, stride);
}

}  // namespace penstock::jpeg::idct
