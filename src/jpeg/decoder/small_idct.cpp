#include "src/jpeg/decoder/small_idct.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace penstock::jpeg {
namespace {

// jidctred.c's factors, 13 bits of fraction.
constexpr int k0211 = 1730;
constexpr int k0509 = 4176;
constexpr int k0601 = 4926;
constexpr int k0720 = 5906;
constexpr int k0765 = 6270;
constexpr int k0850 = 6967;
constexpr int k0899 = 7373;
constexpr int k1061 = 8697;
constexpr int k1272 = 10426;
constexpr int k1451 = 11893;
constexpr int k1847 = 15137;
constexpr int k2172 = 17799;
constexpr int k2562 = 20995;
constexpr int k3624 = 29692;
constexpr int kConstBits = 13;
constexpr int kPass1Bits = 2;

// What coefficients, the numbers between the passes, and samples less 128 may be at most: plenty
// more than those of 8-bit images, and little enough for 32 bits.
constexpr int kLargest = 4096;
constexpr int kLargestBetween = 8191;
constexpr int kLargestSample = 511;

constexpr auto kNaturalOf = [] {
  std::array<std::uint8_t, kBlockSize> natural{};
  for (std::size_t i = 0; i < kBlockSize; ++i) natural[kZigzagOf[i]] = static_cast<std::uint8_t>(i);
  return natural;
}();

using Coefficients = std::array<std::int32_t, kBlockSize>;  // 8 * row + column

constexpr std::int32_t descale(std::int32_t value, int bits) {
  return (value + (1 << (bits - 1))) >> bits;
}

// False where libjpeg's plain code wraps around, and its vectors do not.
bool put(std::int32_t value, std::uint8_t& out) {
  out = static_cast<std::uint8_t>(std::clamp(value + 128, 0, 255));
  return std::abs(value) <= kLargestSample;
}

bool fits(std::int32_t value) { return std::abs(value) <= kLargestBetween; }

struct Four {
  std::int32_t out[4];
};
Four four_of(std::int32_t c0, std::int32_t c1, std::int32_t c2, std::int32_t c3, std::int32_t c5,
             std::int32_t c6, std::int32_t c7, int bits) {
  const std::int32_t even = c0 * (1 << (kConstBits + 1));
  const std::int32_t t2 = c2 * k1847 - c6 * k0765;
  const std::int32_t o0 = -c7 * k0211 + c5 * k1451 - c3 * k2172 + c1 * k1061;
  const std::int32_t o2 = -c7 * k0509 - c5 * k0601 + c3 * k0899 + c1 * k2562;
  return {{descale(even + t2 + o2, bits), descale(even - t2 + o0, bits),
           descale(even - t2 - o0, bits), descale(even + t2 - o2, bits)}};
}

bool transform4(const Coefficients& in, std::uint8_t* out, std::ptrdiff_t stride) {
  std::int32_t work[4][8];
  for (int x = 0; x < 8; ++x) {
    if (x == 4) continue;
    const auto c = [&](int y) { return in[static_cast<std::size_t>(8 * y + x)]; };
    const Four column =
        four_of(c(0), c(1), c(2), c(3), c(5), c(6), c(7), kConstBits - kPass1Bits + 1);
    for (int y = 0; y < 4; ++y) {
      work[y][x] = column.out[y];
      if (!fits(work[y][x])) return false;
    }
  }
  for (int y = 0; y < 4; ++y) {
    const std::int32_t* w = work[y];
    const Four row = four_of(w[0], w[1], w[2], w[3], w[5], w[6], w[7], kConstBits + kPass1Bits + 4);
    for (int x = 0; x < 4; ++x)
      if (!put(row.out[x], out[y * stride + x])) return false;
  }
  return true;
}

std::int32_t odd_of_two(std::int32_t c1, std::int32_t c3, std::int32_t c5, std::int32_t c7) {
  return -c7 * k0720 + c5 * k0850 - c3 * k1272 + c1 * k3624;
}

bool transform2(const Coefficients& in, std::uint8_t* out, std::ptrdiff_t stride) {
  std::int32_t work[2][8];
  for (const int x : {0, 1, 3, 5, 7}) {
    const auto c = [&](int y) { return in[static_cast<std::size_t>(8 * y + x)]; };
    const std::int32_t even = c(0) * (1 << (kConstBits + 2));
    const std::int32_t odd = odd_of_two(c(1), c(3), c(5), c(7));
    work[0][x] = descale(even + odd, kConstBits - kPass1Bits + 2);
    work[1][x] = descale(even - odd, kConstBits - kPass1Bits + 2);
    if (!fits(work[0][x]) || !fits(work[1][x])) return false;
  }
  for (int y = 0; y < 2; ++y) {
    const std::int32_t* w = work[y];
    const std::int32_t even = w[0] * (1 << (kConstBits + 2));
    const std::int32_t odd = odd_of_two(w[1], w[3], w[5], w[7]);
    constexpr int kBits = kConstBits + kPass1Bits + 5;
    if (!put(descale(even + odd, kBits), out[y * stride]) ||
        !put(descale(even - odd, kBits), out[y * stride + 1]))
      return false;
  }
  return true;
}

// With no other coefficient, all transforms come to this.
bool fill(std::int32_t dc, int side, std::uint8_t* out, std::ptrdiff_t stride) {
  std::uint8_t level;
  if (!put(descale(dc, 3), level)) return false;
  for (int y = 0; y < side; ++y)
    std::memset(out + y * stride, level, static_cast<std::size_t>(side));
  return true;
}

bool transform(const Block& block, std::int16_t dc, const QuantTable& quant, int side,
               std::uint8_t* out, std::ptrdiff_t stride) {
  const std::int32_t first = dc * std::int32_t{quant.zigzag[0]};
  if (std::abs(first) > kLargest) return false;
  if (side == 1) return fill(first, side, out, stride);
  alignas(64) Coefficients in{};
  bool any = false;
  // Most coefficients are zero: eight sizes at a time.
  for (std::size_t from = 0; from < kBlockSize; from += 8) {
    std::uint64_t sizes;
    std::memcpy(&sizes, block.size.data() + from, sizeof(sizes));
    if constexpr (std::endian::native == std::endian::big) sizes = __builtin_bswap64(sizes);
    if (from == 0) sizes &= ~std::uint64_t{0xFF};
    while (sizes != 0) {
      const int lowest = std::countr_zero(sizes) / 8;
      sizes &= ~(std::uint64_t{0xFF} << (8 * lowest));
      const std::size_t k = from + static_cast<std::size_t>(lowest);
      const std::int32_t value =
          extend(block.raw[k], block.size[k] & 15U) * std::int32_t{quant.zigzag[k]};
      if (std::abs(value) > kLargest) return false;
      in[kNaturalOf[k]] = value;
      any = true;
    }
  }
  if (!any) return fill(first, side, out, stride);
  in[0] = first;
  return side == 4 ? transform4(in, out, stride) : transform2(in, out, stride);
}

}  // namespace

bool small_inverse_dct(const BlockRow& blocks, const QuantTable& quant, int side, std::uint8_t* out,
                       std::ptrdiff_t stride) {
  for (int i = 0; i < blocks.count; ++i)
    if (!transform(blocks.blocks[blocks.number[i]], blocks.dc[i], quant, side,
                   out + std::ptrdiff_t{side} * i, stride))
      return false;
  return true;
}

}  // namespace penstock::jpeg
