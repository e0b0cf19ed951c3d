#include "src/transform/jpeg/idct.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

// Vectors without a size at compile time cannot be kept in arrays; those CPUs have others, too.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/transform/jpeg/idct.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

#ifndef PENSTOCK_JPEG_IDCT_CONSTANTS
#define PENSTOCK_JPEG_IDCT_CONSTANTS
namespace penstock::detail::idct {

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

// libjpeg-turbo's vectors have a short cut for blocks whose only coefficients are in the first row:
// it wraps around where the long way saturates. From here on they differ.
constexpr int kShortCutLimit = 8192;

constexpr std::int16_t wrap(std::int32_t value) { return static_cast<std::int16_t>(value); }
constexpr std::int16_t saturate(std::int32_t value) {
  return static_cast<std::int16_t>(std::clamp(value, -32768, 32767));
}

// One pass over eight numbers that are `step` apart. Sums wrap at 32 bits.
template <int kShift>
inline void pass(std::int16_t* at, std::ptrdiff_t step) {
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
    constexpr std::uint32_t kHalf = 1U << (kShift - 1);
    at[i * step] = saturate(static_cast<std::int32_t>(even[i] + odd[i] + kHalf) >> kShift);
    at[(7 - i) * step] = saturate(static_cast<std::int32_t>(even[i] - odd[i] + kHalf) >> kShift);
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
  for (int x = 0; x < 8; ++x) {
    if (first_row_only)
      for (int y = 7; y >= 0; --y) work[8 * y + x] = wrap(work[x] << kPass1Bits);
    else
      pass<kShift1>(work + x, 8);
  }
  for (int y = 0; y < 8; ++y) {
    pass<kShift2>(work + 8 * y, 1);
    for (int x = 0; x < 8; ++x)
      out[y * stride + x] = static_cast<std::uint8_t>(std::clamp(work[8 * y + x] + 128, 0, 255));
  }
}

}  // namespace penstock::detail::idct
#endif

HWY_BEFORE_NAMESPACE();
namespace penstock::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace idct;

#if HWY_TARGET == HWY_SCALAR

void InverseDct(const BlockRow& row, const QuantTable& quant, std::uint8_t* out,
                std::ptrdiff_t stride) {
  for (int i = 0; i < row.count; ++i)
    block(row.blocks[row.number[i]], row.dc[i], quant, out + std::ptrdiff_t{8} * i, stride);
}

#else

// A vector holds one row of eight numbers of each of its blocks.
using D16 = hn::CappedTag<std::int16_t, 32>;
using DU16 = hn::RebindToUnsigned<D16>;
using D32 = hn::RepartitionToWide<D16>;
using D8 = hn::Rebind<std::uint8_t, D16>;
using V16 = hn::Vec<D16>;
using VU16 = hn::Vec<DU16>;
using V32 = hn::Vec<D32>;
constexpr std::size_t kLanes = HWY_MAX_BYTES / 2 < 32 ? HWY_MAX_BYTES / 2 : 32;
constexpr int kBlocks = static_cast<int>(kLanes / 8);

// Eight numbers from each of a vector's blocks.
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadEach(D d, const T* a, const T* b, const T* c, const T* e) {
  if constexpr (kBlocks == 1) {
    return hn::LoadU(d, a);
  } else {
    const hn::Half<D> dh;
    if constexpr (kBlocks == 2) {
      return hn::Combine(d, hn::LoadU(dh, b), hn::LoadU(dh, a));
    } else {
      const hn::Half<decltype(dh)> dq;
      return hn::Combine(d, hn::Combine(dh, hn::LoadU(dq, e), hn::LoadU(dq, c)),
                         hn::Combine(dh, hn::LoadU(dq, b), hn::LoadU(dq, a)));
    }
  }
}

// The numbers that the lowest `size` bits stand for.
HWY_INLINE V16 Extend(VU16 raw, VU16 size) {
  const D16 d;
  const DU16 du;
#if HWY_TARGET <= HWY_AVX3
  const V16 above = hn::BitCast(d, hn::Shl(hn::Set(du, std::uint16_t{0xFFFF}), size));
#else
  // 2^size - 1, a byte at a time.
  alignas(16) static constexpr std::uint8_t kLow[16] = {0,   1,   3,   7,   15,  31,  63,  127,
                                                        255, 255, 255, 255, 255, 255, 255, 255};
  alignas(16) static constexpr std::uint8_t kHigh[16] = {0, 0, 0, 0, 0,  0,  0,  0,
                                                         0, 1, 3, 7, 15, 31, 63, 127};
  const hn::Repartition<std::uint8_t, D16> d8;
  const auto index = hn::BitCast(d8, size);
  const auto low = hn::BitCast(du, hn::TableLookupBytes(hn::LoadDup128(d8, kLow), index));
  const auto high = hn::BitCast(du, hn::TableLookupBytes(hn::LoadDup128(d8, kHigh), index));
  const V16 above = hn::BitCast(d, hn::Not(hn::Or(low, hn::ShiftLeft<8>(high))));
#endif
  const V16 bits = hn::AndNot(above, hn::BitCast(d, raw));
  // Below half: the top one of the bits is not set.
  const V16 negative = hn::BroadcastSignBit(hn::Add(hn::Add(bits, bits), above));
  return hn::Sub(bits, hn::AndNot(above, negative));
}

// Which lane of source vector `from` goes to each byte of natural row `row`; 0x80 for none.
struct Shuffle {
  alignas(16) std::uint8_t bytes[16];
  bool used;
};
constexpr Shuffle make_shuffle(std::size_t row, std::size_t from) {
  Shuffle shuffle{};
  shuffle.used = false;
  for (std::size_t x = 0; x < 8; ++x) {
    const std::size_t at = kZigzagOf[8 * row + x];
    const bool here = at / 8 == from;
    shuffle.used |= here;
    shuffle.bytes[2 * x] = here ? static_cast<std::uint8_t>(2 * (at % 8)) : 0x80;
    shuffle.bytes[2 * x + 1] = here ? static_cast<std::uint8_t>(2 * (at % 8) + 1) : 0x80;
  }
  return shuffle;
}
template <std::size_t kRow, std::size_t kFrom>
struct ShuffleOf {
  static constexpr Shuffle kValue = make_shuffle(kRow, kFrom);
};

template <std::size_t kRow, std::size_t kFrom>
HWY_INLINE void AddShuffled(V16 from, V16& row, bool& first) {
  if constexpr (ShuffleOf<kRow, kFrom>::kValue.used) {
    const D16 d;
    const hn::Repartition<std::uint8_t, D16> d8;
    const V16 part = hn::BitCast(
        d, hn::TableLookupBytesOr0(hn::BitCast(d8, from),
                                   hn::LoadDup128(d8, ShuffleOf<kRow, kFrom>::kValue.bytes)));
    row = first ? part : hn::Or(row, part);
    first = false;
  }
}

template <std::size_t kRow, std::size_t... kFrom>
HWY_INLINE V16 NaturalRow(const V16* from, std::index_sequence<kFrom...>) {
  V16 row = hn::Undefined(D16());
  bool first = true;
  (AddShuffled<kRow, kFrom>(from[kFrom], row, first), ...);
  return row;
}

template <std::size_t... kRow>
HWY_INLINE void NaturalRows(const V16* from, V16* rows, std::index_sequence<kRow...>) {
  ((rows[kRow] = NaturalRow<kRow>(from, std::make_index_sequence<8>())), ...);
}

// The dequantized coefficients of the vector's blocks, in rows.
HWY_INLINE void LoadRows(const Block* const* blocks, const std::int16_t* dc,
                         const QuantTable& quant, V16* rows) {
  const D16 d;
  const DU16 du;
  const D8 d8;
#if HWY_TARGET <= HWY_AVX3
  // Whole blocks: two vectors each, then rows of four blocks out of rows of one.
  alignas(64) static constexpr auto kNatural = [] {
    std::array<std::uint16_t, 64> natural{};
    for (std::size_t i = 0; i < 64; ++i) natural[i] = kZigzagOf[i];
    return natural;
  }();
  const __m512i top = _mm512_load_si512(kNatural.data());
  const __m512i bottom = _mm512_load_si512(kNatural.data() + 32);
  const VU16 q0 = hn::Load(du, quant.zigzag.data());
  const VU16 q1 = hn::Load(du, quant.zigzag.data() + 32);
  __m512i upper[4];
  __m512i lower[4];
  for (int i = 0; i < 4; ++i) {
    const Block& b = *blocks[i];
    V16 v0 = Extend(hn::Load(du, b.raw.data()), hn::PromoteTo(du, hn::Load(d8, b.size.data())));
    const V16 v1 = Extend(hn::Load(du, b.raw.data() + 32),
                          hn::PromoteTo(du, hn::Load(d8, b.size.data() + 32)));
    v0 = V16{_mm512_mask_set1_epi16(v0.raw, 1, dc[i])};
    const V16 x = hn::Mul(v0, hn::BitCast(d, q0));
    const V16 y = hn::Mul(v1, hn::BitCast(d, q1));
    upper[i] = _mm512_permutex2var_epi16(x.raw, top, y.raw);
    lower[i] = _mm512_permutex2var_epi16(x.raw, bottom, y.raw);
  }
  const auto turn = [](const __m512i* x, V16* out) HWY_ATTR {
    const __m512i a = _mm512_shuffle_i32x4(x[0], x[1], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(x[0], x[1], 0xEE);
    const __m512i c = _mm512_shuffle_i32x4(x[2], x[3], 0x44);
    const __m512i e = _mm512_shuffle_i32x4(x[2], x[3], 0xEE);
    out[0] = V16{_mm512_shuffle_i32x4(a, c, 0x88)};
    out[1] = V16{_mm512_shuffle_i32x4(a, c, 0xDD)};
    out[2] = V16{_mm512_shuffle_i32x4(b, e, 0x88)};
    out[3] = V16{_mm512_shuffle_i32x4(b, e, 0xDD)};
  };
  turn(upper, rows);
  turn(lower, rows + 4);
#else
  const Block& b0 = *blocks[0];
  const Block& b1 = *blocks[kBlocks > 1 ? 1 : 0];
  const Block& b2 = *blocks[kBlocks > 2 ? 2 : 0];
  const Block& b3 = *blocks[kBlocks > 2 ? 3 : 0];
  V16 from[8];
  for (std::size_t k = 0; k < 8; ++k) {
    const VU16 raw = LoadEach(du, &b0.raw[8 * k], &b1.raw[8 * k], &b2.raw[8 * k], &b3.raw[8 * k]);
    const VU16 size = hn::PromoteTo(
        du, LoadEach(d8, &b0.size[8 * k], &b1.size[8 * k], &b2.size[8 * k], &b3.size[8 * k]));
    from[k] = Extend(raw, size);
    if (k == 0) {
      // The first of each block's eight numbers.
      alignas(16) static constexpr std::int16_t kFirst[8] = {-1};
      alignas(64) std::int16_t values[kLanes] = {};
      for (std::size_t b = 0; b < kBlocks; ++b) values[8 * b] = dc[b];
      from[0] = hn::Or(hn::AndNot(hn::LoadDup128(d, kFirst), from[0]), hn::Load(d, values));
    }
    from[k] = hn::Mul(from[k], hn::BitCast(d, hn::LoadDup128(du, quant.zigzag.data() + 8 * k)));
  }
  NaturalRows(from, rows, std::make_index_sequence<8>());
#endif
}

HWY_INLINE V16 Pair(int even, int odd) {
  const D16 d;
  const std::uint32_t pair = static_cast<std::uint16_t>(even) |
                             static_cast<std::uint32_t>(static_cast<std::uint16_t>(odd)) << 16;
  return hn::BitCast(d, hn::Set(D32(), static_cast<std::int32_t>(pair)));
}

// a[2i] * b[2i] + a[2i+1] * b[2i+1].
HWY_INLINE V32 PairSums(V16 a, V16 b) {
  const D32 d;
  V32 second = hn::Zero(d);
  const V32 sums = hn::ReorderWidenMulAccumulate(d, a, b, hn::Zero(d), second);
  return hn::RearrangeToOddPlusEven(sums, second);
}

// One half of the columns: what comes out is in 32 bits, not yet scaled.
struct Half {
  V32 out[8];
};
HWY_INLINE Half HalfPass(V16 r26, V16 r71, V16 r53, V16 z34, V32 t0, V32 t1) {
  const V32 t3 = PairSums(r26, Pair(k0541 + k0765, k0541));
  const V32 t2 = PairSums(r26, Pair(k0541, k0541 - k1847));
  const V32 e0 = hn::Add(t0, t3);
  const V32 e3 = hn::Sub(t0, t3);
  const V32 e1 = hn::Add(t1, t2);
  const V32 e2 = hn::Sub(t1, t2);
  const V32 y3 = PairSums(z34, Pair(k1175 - k1961, k1175));
  const V32 y4 = PairSums(z34, Pair(k1175, k1175 - k0390));
  const V32 o0 = hn::Add(PairSums(r71, Pair(-k0899, k1501 - k0899)), y4);
  const V32 o1 = hn::Add(PairSums(r53, Pair(-k2562, k3072 - k2562)), y3);
  const V32 o2 = hn::Add(PairSums(r53, Pair(k2053 - k2562, -k2562)), y4);
  const V32 o3 = hn::Add(PairSums(r71, Pair(k0298 - k0899, -k0899)), y3);
  return {{hn::Add(e0, o0), hn::Add(e1, o1), hn::Add(e2, o2), hn::Add(e3, o3), hn::Sub(e3, o3),
           hn::Sub(e2, o2), hn::Sub(e1, o1), hn::Sub(e0, o0)}};
}

template <int kShift>
HWY_INLINE void Pass(V16* r) {
  const D16 d;
  const D32 d32;
  const V16 zero = hn::Zero(d);
  const V16 sum = hn::Add(r[0], r[4]);
  const V16 difference = hn::Sub(r[0], r[4]);
  const V16 z3 = hn::Add(r[7], r[3]);
  const V16 z4 = hn::Add(r[5], r[1]);
  const V32 half = hn::Set(d32, 1 << (kShift - 1));
  // A number in the upper half of 32 bits, and 3 bits down: times 2^13.
  constexpr int kDown = 16 - kConstBits;
  const auto low = [&](V16 x) HWY_ATTR {
    return hn::Add(hn::ShiftRight<kDown>(hn::BitCast(d32, hn::InterleaveLower(d, zero, x))), half);
  };
  const auto high = [&](V16 x) HWY_ATTR {
    return hn::Add(hn::ShiftRight<kDown>(hn::BitCast(d32, hn::InterleaveUpper(d, zero, x))), half);
  };
  const Half a = HalfPass(hn::InterleaveLower(d, r[2], r[6]), hn::InterleaveLower(d, r[7], r[1]),
                          hn::InterleaveLower(d, r[5], r[3]), hn::InterleaveLower(d, z3, z4),
                          low(sum), low(difference));
  const Half b = HalfPass(hn::InterleaveUpper(d, r[2], r[6]), hn::InterleaveUpper(d, r[7], r[1]),
                          hn::InterleaveUpper(d, r[5], r[3]), hn::InterleaveUpper(d, z3, z4),
                          high(sum), high(difference));
  for (int i = 0; i < 8; ++i)
    r[i] =
        hn::ReorderDemote2To(d, hn::ShiftRight<kShift>(a.out[i]), hn::ShiftRight<kShift>(b.out[i]));
}

// Within every block.
HWY_INLINE void Transpose(V16* r) {
  const D16 d;
  const D32 d32;
  const hn::RepartitionToWide<D32> d64;
  V32 a[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = hn::BitCast(d32, hn::InterleaveLower(d, r[2 * i], r[2 * i + 1]));
    a[2 * i + 1] = hn::BitCast(d32, hn::InterleaveUpper(d, r[2 * i], r[2 * i + 1]));
  }
  hn::Vec<decltype(d64)> b[8];
  for (int i = 0; i < 2; ++i) {
    b[4 * i] = hn::BitCast(d64, hn::InterleaveLower(d32, a[4 * i], a[4 * i + 2]));
    b[4 * i + 1] = hn::BitCast(d64, hn::InterleaveUpper(d32, a[4 * i], a[4 * i + 2]));
    b[4 * i + 2] = hn::BitCast(d64, hn::InterleaveLower(d32, a[4 * i + 1], a[4 * i + 3]));
    b[4 * i + 3] = hn::BitCast(d64, hn::InterleaveUpper(d32, a[4 * i + 1], a[4 * i + 3]));
  }
  for (int i = 0; i < 4; ++i) {
    r[2 * i] = hn::BitCast(d, hn::InterleaveLower(d64, b[i], b[i + 4]));
    r[2 * i + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, b[i], b[i + 4]));
  }
}

// Bytes of a, then of b, within every block; 0 to 255.
HWY_INLINE hn::Vec<hn::Repartition<std::uint8_t, D16>> Pack(V16 a, V16 b) {
  const hn::Repartition<std::uint8_t, D16> d8;
  using V8 = hn::Vec<decltype(d8)>;
#if HWY_TARGET <= HWY_AVX3
  return V8{_mm512_packus_epi16(a.raw, b.raw)};
#elif HWY_TARGET == HWY_AVX2
  return V8{_mm256_packus_epi16(a.raw, b.raw)};
#elif HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  return V8{_mm_packus_epi16(a.raw, b.raw)};
#else
  static_assert(kBlocks == 1);
  const D8 half;
  return hn::Combine(d8, hn::DemoteTo(half, b), hn::DemoteTo(half, a));
#endif
}

// Writes eight columns of samples, less 128, as rows.
HWY_INLINE void StoreColumns(const V16* columns, std::uint8_t* out, std::ptrdiff_t stride) {
  const D16 d;
  const hn::Repartition<std::uint8_t, D16> d8;
  const hn::RepartitionToWide<D32> d64;
  const V16 middle = hn::Set(d, std::int16_t{128});
  alignas(16) static constexpr std::uint8_t kPairs[16] = {0, 8,  1, 9,  2, 10, 3, 11,
                                                          4, 12, 5, 13, 6, 14, 7, 15};
  const auto order = hn::LoadDup128(d8, kPairs);
  // Two columns side by side, then four, then all eight: two rows in each block.
  V16 pairs[4];
  for (int i = 0; i < 4; ++i)
    pairs[i] =
        hn::BitCast(d, hn::TableLookupBytes(Pack(hn::SaturatedAdd(columns[2 * i], middle),
                                                 hn::SaturatedAdd(columns[2 * i + 1], middle)),
                                            order));
  const D32 d32;
  const V32 a = hn::BitCast(d32, hn::InterleaveLower(d, pairs[0], pairs[1]));
  const V32 b = hn::BitCast(d32, hn::InterleaveUpper(d, pairs[0], pairs[1]));
  const V32 c = hn::BitCast(d32, hn::InterleaveLower(d, pairs[2], pairs[3]));
  const V32 e = hn::BitCast(d32, hn::InterleaveUpper(d, pairs[2], pairs[3]));
  const V32 rows[4] = {hn::InterleaveLower(d32, a, c), hn::InterleaveUpper(d32, a, c),
                       hn::InterleaveLower(d32, b, e), hn::InterleaveUpper(d32, b, e)};
  const hn::Half<decltype(d64)> d_row;
  for (int i = 0; i < 4; ++i) {
    auto two = hn::BitCast(d64, rows[i]);
    // The first row's eight bytes of every block, then the second's.
#if HWY_TARGET <= HWY_AVX3
    two.raw = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), two.raw);
#elif HWY_TARGET == HWY_AVX2
    two.raw = _mm256_permute4x64_epi64(two.raw, 0xD8);
#endif
    std::uint8_t* const to = out + 2 * i * stride;
    hn::StoreU(hn::LowerHalf(d_row, two), d_row, reinterpret_cast<std::int64_t*>(to));
    hn::StoreU(hn::UpperHalf(d_row, two), d_row, reinterpret_cast<std::int64_t*>(to + stride));
  }
}

// No coefficient but the first, in any of the blocks.
HWY_INLINE bool FirstOnly(const Block* const* blocks) {
  const hn::CappedTag<std::uint8_t, 64> d;
  constexpr std::size_t kVector = hn::MaxLanes(d);
  alignas(64) static constexpr std::uint8_t kFirst[64] = {0xFF};
  auto first = hn::Zero(d);
  auto others = hn::Zero(d);
  for (int b = 0; b < kBlocks; ++b) {
    first = hn::Or(first, hn::Load(d, blocks[b]->size.data()));
    for (std::size_t k = kVector; k < kBlockSize; k += kVector)
      others = hn::Or(others, hn::Load(d, blocks[b]->size.data() + k));
  }
  others = hn::Or(others, hn::AndNot(hn::Load(d, kFirst), first));
  return hn::AllTrue(d, hn::Eq(others, hn::Zero(d)));
}

HWY_INLINE void FillBlock(std::int16_t dc, const QuantTable& quant, std::uint8_t* out,
                          std::ptrdiff_t stride) {
  const std::int32_t value = wrap(wrap(dc * quant.zigzag[0]) << kPass1Bits);
  const std::int32_t sample =
      saturate(((value << kConstBits) + (1 << (kShift2 - 1))) >> kShift2) + 128;
  const auto level = static_cast<std::uint8_t>(std::clamp(sample, 0, 255));
  const std::uint64_t row = level * std::uint64_t{0x0101010101010101};
  for (int y = 0; y < 8; ++y) std::memcpy(out + y * stride, &row, 8);
}

HWY_INLINE void InverseDctOfGroup(const Block* const* blocks, const std::int16_t* dc,
                                  const QuantTable& quant, std::uint8_t* out,
                                  std::ptrdiff_t stride) {
  const D16 d;
  if (FirstOnly(blocks)) {
    for (int b = 0; b < kBlocks; ++b) FillBlock(dc[b], quant, out + std::ptrdiff_t{8} * b, stride);
    return;
  }
  V16 rows[8];
  LoadRows(blocks, dc, quant, rows);
  const V16 limit = hn::Set(d, static_cast<std::int16_t>(kShortCutLimit - 1));
  const auto beyond = hn::Gt(hn::Max(rows[0], hn::Not(rows[0])), limit);
  if (HWY_UNLIKELY(!hn::AllFalse(d, beyond))) {
    for (int b = 0; b < kBlocks; ++b)
      block(*blocks[b], dc[b], quant, out + std::ptrdiff_t{8} * b, stride);
    return;
  }
  Pass<kShift1>(rows);
  Transpose(rows);
  Pass<kShift2>(rows);
  StoreColumns(rows, out, stride);
}

void InverseDct(const BlockRow& row, const QuantTable& quant, std::uint8_t* out,
                std::ptrdiff_t stride) {
  for (int first = 0; first < row.count; first += kBlocks) {
    const Block* blocks[kBlocks];
    std::int16_t dc[kBlocks];
    const int here = std::min(kBlocks, row.count - first);
    for (int b = 0; b < kBlocks; ++b) {
      // The last block again, where there is none.
      const int i = first + std::min(b, here - 1);
      blocks[b] = row.blocks + row.number[i];
      dc[b] = row.dc[i];
    }
    if (HWY_LIKELY(here == kBlocks)) {
      InverseDctOfGroup(blocks, dc, quant, out + std::ptrdiff_t{8} * first, stride);
      continue;
    }
    alignas(64) std::uint8_t samples[8 * 8 * kBlocks];
    constexpr std::ptrdiff_t kStride = std::ptrdiff_t{8} * kBlocks;
    InverseDctOfGroup(blocks, dc, quant, samples, kStride);
    for (int y = 0; y < 8; ++y)
      std::memcpy(out + y * stride + std::ptrdiff_t{8} * first, samples + y * kStride,
                  static_cast<std::size_t>(8 * here));
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace penstock::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::detail {

HWY_EXPORT(InverseDct);

void inverse_dct(const BlockRow& blocks, const QuantTable& quant, std::uint8_t* out,
                 std::ptrdiff_t stride) {
  HWY_DYNAMIC_DISPATCH(InverseDct)(blocks, quant, out, stride);
}

}  // namespace penstock::detail
#endif
