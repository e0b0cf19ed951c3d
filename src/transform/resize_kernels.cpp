#include "src/transform/resize_kernels.hpp"

#include <algorithm>
#include <cstring>

#include "src/core/fixed_vectors.hpp"
#include "src/jpeg/pixels/rows.hpp"
#include "src/transform/resize_axis.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/transform/resize_kernels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// The same sums, one number at a time.
void SumRows(ResizeFilter filter, const std::uint8_t* const* rows, const std::int16_t* weights,
             int taps, int pairs, int lane, std::int16_t* between) {
  const int shift = kWeightBits - fraction_bits(filter);
  for (int x = 0; x < 2 * pairs; ++x) {
    std::int16_t* out = between + static_cast<std::size_t>(x / 2) * kGroup +
                        static_cast<std::size_t>(lane) * (kGroup / 2) + x % 2;
    for (std::size_t c = 0; c < jpeg::kPixelBytes; ++c) {
      std::int32_t sum = 1 << (shift - 1);
      for (int k = 0; k < taps; ++k)
        sum += rows[k][static_cast<std::size_t>(x) * jpeg::kPixelBytes + c] * weights[k];
      out[2 * c] = static_cast<std::int16_t>(sum >> shift);
    }
  }
}

void SumColumns(ResizeFilter filter, const std::int16_t* between, const PairTable& table, int width,
                std::uint8_t* first, std::uint8_t* second) {
  const int shift = kWeightBits + fraction_bits(filter);
  const auto level = [&](std::int32_t sum) {
    return static_cast<std::uint8_t>(std::clamp(sum >> shift, 0, 255));
  };
  for (int x = 0; x < width; ++x) {
    const std::int16_t* at = between + static_cast<std::size_t>(table.at[x]) * kGroup;
    const std::uint32_t* weights =
        table.weights + static_cast<std::size_t>(x) * static_cast<std::size_t>(table.pairs);
    for (std::size_t c = 0; c < 3; ++c) {
      std::int32_t sums[kRowsTogether] = {1 << (shift - 1), 1 << (shift - 1)};
      for (int k = 0; k < table.pairs; ++k) {
        const std::int32_t left = static_cast<std::int16_t>(weights[k] & 0xFFFF);
        const std::int32_t right = static_cast<std::int16_t>(weights[k] >> 16);
        const std::int16_t* group = at + static_cast<std::size_t>(k) * kGroup + 2 * c;
        sums[0] += group[0] * left + group[1] * right;
        sums[1] += group[kGroup / 2] * left + group[kGroup / 2 + 1] * right;
      }
      first[static_cast<std::size_t>(x) * 3 + c] = level(sums[0]);
      second[static_cast<std::size_t>(x) * 3 + c] = level(sums[1]);
    }
  }
}

#else

// Vectors of 128 bits, or of 256 where there are such: a group is one or two of them.
using D16 = hn::CappedTag<std::int16_t, kGroup>;
using D8 = hn::Rebind<std::uint8_t, D16>;
using D32 = hn::RepartitionToWide<D16>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;

// Sums of a[2i]*b[2i] + a[2i+1]*b[2i+1]. What the two parts hold before the end is the target's, so
// they begin with zeros, and another number is added at the end.
struct PairSum {
  V32 even, odd;
  HWY_INLINE void add(V16 a, V16 b) {
    even = hn::ReorderWidenMulAccumulate(D32(), a, b, even, odd);
  }
  HWY_INLINE V32 plus(V32 number) const {
    return hn::Add(hn::RearrangeToOddPlusEven(even, odd), number);
  }
};

HWY_INLINE V16 weight_pair(std::uint32_t pair) {
  return hn::BitCast(D16(), hn::Set(D32(), static_cast<std::int32_t>(pair)));
}

HWY_INLINE std::uint32_t join(std::int16_t low, std::int16_t high) {
  return static_cast<std::uint16_t>(low) |
         static_cast<std::uint32_t>(static_cast<std::uint16_t>(high)) << 16;
}

// kPairs pairs of rows; 0 stands for any number.
template <ResizeFilter kFilter, int kPairs>
void SumRowsOf(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int pairs,
               int lane, std::int16_t* between) {
  const D8 d8;
  const D16 d16;
  const D32 d32;
  constexpr std::size_t kLanes = hn::MaxLanes(d16);
  constexpr int kShift = kWeightBits - fraction_bits(kFilter);
  const std::size_t end = static_cast<std::size_t>(pairs) * 2 * jpeg::kPixelBytes;
  std::int16_t* out = between + static_cast<std::size_t>(lane) * (kGroup / 2);
  const V32 zero = hn::Zero(d32);
  const V32 half = hn::Set(d32, 1 << (kShift - 1));
  const V32 upper = hn::Set(d32, static_cast<std::int32_t>(0xFFFF0000U));

  const int row_pairs = kPairs == 0 ? (taps + 1) / 2 : kPairs;
  // A last row without a partner is its own, and weighs nothing the second time.
  const auto second = [&](int k) { return 2 * k + 1 < taps ? 2 * k + 1 : 2 * k; };
  const auto weight = [&](int k) HWY_ATTR {
    return weight_pair(
        join(weights[2 * k], 2 * k + 1 < taps ? weights[2 * k + 1] : std::int16_t{0}));
  };
  const std::uint8_t* a[kPairs + 1];
  const std::uint8_t* b[kPairs + 1];
  V16 w[kPairs + 1];
  for (int k = 0; k < kPairs; ++k) {
    a[k] = rows[2 * k];
    b[k] = rows[second(k)];
    w[k] = weight(k);
  }
  for (std::size_t at = 0; at < end; at += kLanes) {
    PairSum left{zero, zero};  // pixels 0 and 2 of the vector
    PairSum right{zero, zero};
    for (int k = 0; k < row_pairs; ++k) {
      const V16 pixels_a =
          hn::PromoteTo(d16, hn::LoadU(d8, (kPairs == 0 ? rows[2 * k] : a[k]) + at));
      const V16 pixels_b =
          hn::PromoteTo(d16, hn::LoadU(d8, (kPairs == 0 ? rows[second(k)] : b[k]) + at));
      const V16 weights_ab = kPairs == 0 ? weight(k) : w[k];
      left.add(hn::InterleaveLower(d16, pixels_a, pixels_b), weights_ab);
      right.add(hn::InterleaveUpper(d16, pixels_a, pixels_b), weights_ab);
    }
    V32 low = hn::ShiftRight<kShift>(left.plus(half));
    if constexpr (kFilter != ResizeFilter::bilinear)
      low = hn::AndNot(upper, low);  // may be below 0
    const V32 high = hn::And(hn::ShiftLeft<16 - kShift>(right.plus(half)), upper);
    const V16 sums = hn::BitCast(d16, hn::Or(low, high));
#if HWY_MAX_BYTES < 32
    hn::StoreU(sums, d16, out);
    out += kGroup;
#else
    const hn::Half<D16> d_half;
    hn::StoreU(hn::LowerHalf(d_half, sums), d_half, out);
    hn::StoreU(hn::UpperHalf(d_half, sums), d_half, out + kGroup);
    out += 2 * kGroup;
#endif
  }
}

template <ResizeFilter kFilter>
void SumRowsBy(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int pairs,
               int lane, std::int16_t* between) {
  switch ((taps + 1) / 2) {
    case 1:
      return SumRowsOf<kFilter, 1>(rows, weights, taps, pairs, lane, between);
    case 2:
      return SumRowsOf<kFilter, 2>(rows, weights, taps, pairs, lane, between);
    case 3:
      return SumRowsOf<kFilter, 3>(rows, weights, taps, pairs, lane, between);
    default:
      return SumRowsOf<kFilter, 0>(rows, weights, taps, pairs, lane, between);
  }
}

void SumRows(ResizeFilter filter, const std::uint8_t* const* rows, const std::int16_t* weights,
             int taps, int pairs, int lane, std::int16_t* between) {
  if (filter == ResizeFilter::bilinear)
    return SumRowsBy<ResizeFilter::bilinear>(rows, weights, taps, pairs, lane, between);
  return SumRowsBy<ResizeFilter::bicubic>(rows, weights, taps, pairs, lane, between);
}

// Lane by lane, the four bytes of the four pixels' sums; then R G B of each of them.
template <ResizeFilter kFilter>
HWY_INLINE hn::Vec<hn::Repartition<std::uint8_t, D32>> pack(V32 p0, V32 p1, V32 p2, V32 p3) {
  constexpr int kShift = kWeightBits + fraction_bits(kFilter);
  const D32 d32;
  if constexpr (kFilter != ResizeFilter::bilinear) {
    const V32 least = hn::Zero(d32);
    const V32 most = hn::Set(d32, (256 << kShift) - 1);
    p0 = hn::Clamp(p0, least, most);
    p1 = hn::Clamp(p1, least, most);
    p2 = hn::Clamp(p2, least, most);
    p3 = hn::Clamp(p3, least, most);
  }
  const hn::Repartition<std::uint8_t, D32> bytes;
  const V32 b0 = hn::ShiftRight<kShift>(p0);
  const V32 b1 = hn::And(hn::ShiftRight<kShift - 8>(p1), hn::Set(d32, 0xFF00));
  const V32 b2 = hn::And(hn::ShiftRight<kShift - 16>(p2), hn::Set(d32, 0xFF0000));
  const V32 b3 = hn::ShiftLeft<24>(hn::ShiftRight<kShift>(p3));
  alignas(16) static constexpr std::uint8_t kOrder[16] = {0,  4, 8, 1,  5,  9,  2,  6,
                                                          10, 3, 7, 11, 12, 13, 14, 15};
  return hn::TableLookupBytes(hn::BitCast(bytes, hn::Or(hn::Or(b0, b1), hn::Or(b2, b3))),
                              hn::LoadDup128(bytes, kOrder));
}

template <ResizeFilter kFilter, int kPairs>
void SumColumnsOf(const std::int16_t* between, const PairTable& table, int width,
                  std::uint8_t* first, std::uint8_t* second) {
  const D16 d16;
  const D32 d32;
  const int pairs = kPairs == 0 ? table.pairs : kPairs;
  const V32 zero = hn::Zero(d32);
  const V32 half = hn::Set(d32, 1 << (kWeightBits + fraction_bits(kFilter) - 1));
  const auto pixel = [&](int x, std::size_t part) HWY_ATTR {
    const std::int16_t* at = between + static_cast<std::size_t>(table.at[x]) * kGroup + part;
    const std::uint32_t* weights =
        table.weights + static_cast<std::size_t>(x) * static_cast<std::size_t>(pairs);
    PairSum sum{zero, zero};
    for (int k = 0; k < pairs; ++k)
      sum.add(hn::LoadU(d16, at + static_cast<std::size_t>(k) * kGroup), weight_pair(weights[k]));
    return sum.plus(half);
  };
  [[maybe_unused]] constexpr std::size_t kBlock = kGroup / 2;
  const hn::FixedTag<std::uint8_t, 16> d_block;
  for (int x = 0; x < width; x += 4) {
    // The last pixels again where fewer than four are left.
    const int x1 = x + 1 < width ? x + 1 : width - 1;
    const int x2 = x + 2 < width ? x + 2 : width - 1;
    const int x3 = x + 3 < width ? x + 3 : width - 1;
    const auto store = [&](auto block, std::uint8_t* row) HWY_ATTR {
      std::uint8_t* out = row + static_cast<std::size_t>(x) * 3;
      // A whole store spills over the next pixel and a third; those are written later.
      if (x + 6 <= width) {
        hn::StoreU(block, d_block, out);
      } else {
        alignas(16) std::uint8_t last[16];
        hn::Store(block, d_block, last);
        std::memcpy(out, last, static_cast<std::size_t>(width - x < 4 ? width - x : 4) * 3);
      }
    };
#if HWY_MAX_BYTES < 32
    store(pack<kFilter>(pixel(x, 0), pixel(x1, 0), pixel(x2, 0), pixel(x3, 0)), first);
    store(pack<kFilter>(pixel(x, kBlock), pixel(x1, kBlock), pixel(x2, kBlock), pixel(x3, kBlock)),
          second);
#else
    const auto both = pack<kFilter>(pixel(x, 0), pixel(x1, 0), pixel(x2, 0), pixel(x3, 0));
    store(hn::LowerHalf(d_block, both), first);
    store(hn::UpperHalf(d_block, both), second);
#endif
  }
}

template <ResizeFilter kFilter>
void SumColumnsBy(const std::int16_t* between, const PairTable& table, int width,
                  std::uint8_t* first, std::uint8_t* second) {
  switch (table.pairs) {
    case 1:
      return SumColumnsOf<kFilter, 1>(between, table, width, first, second);
    case 2:
      return SumColumnsOf<kFilter, 2>(between, table, width, first, second);
    case 3:
      return SumColumnsOf<kFilter, 3>(between, table, width, first, second);
    case 4:
      return SumColumnsOf<kFilter, 4>(between, table, width, first, second);
    default:
      return SumColumnsOf<kFilter, 0>(between, table, width, first, second);
  }
}

void SumColumns(ResizeFilter filter, const std::int16_t* between, const PairTable& table, int width,
                std::uint8_t* first, std::uint8_t* second) {
  if (filter == ResizeFilter::bilinear)
    return SumColumnsBy<ResizeFilter::bilinear>(between, table, width, first, second);
  return SumColumnsBy<ResizeFilter::bicubic>(between, table, width, first, second);
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace penstock::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::transform {

HWY_EXPORT(SumRows);
HWY_EXPORT(SumColumns);

void sum_rows(ResizeFilter filter, const std::uint8_t* const* rows, const std::int16_t* weights,
              int taps, int pairs, int lane, std::int16_t* between) {
  HWY_DYNAMIC_DISPATCH(SumRows)(filter, rows, weights, taps, pairs, lane, between);
}

void sum_columns(ResizeFilter filter, const std::int16_t* between, const PairTable& table,
                 int width, std::uint8_t* first, std::uint8_t* second) {
  HWY_DYNAMIC_DISPATCH(SumColumns)(filter, between, table, width, first, second);
}

}  // namespace penstock::transform
#endif
