#include "src/jpeg/decoder/idct.hpp"

#include <algorithm>
#include <cstring>

#include "src/core/fixed_vectors.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/jpeg/decoder/idct.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

#include "src/jpeg/decoder/coefficients-inl.hpp"
#include "src/jpeg/decoder/idct_block.hpp"

HWY_BEFORE_NAMESPACE();
namespace penstock::jpeg::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace idct;

#if HWY_TARGET == HWY_SCALAR

void InverseDct(const BlockRow& row, const QuantTable& quant, std::uint8_t* out,
                std::ptrdiff_t stride) {
  for (int i = 0; i < row.count; ++i)
    block(row.blocks[row.number[i]], row.dc[i], quant, out + std::ptrdiff_t{8} * i, stride);
}

#else

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

// idct::narrow of two vectors of sums, which what rounds is part of where it does not come last.
template <int kShift>
HWY_INLINE V16 Narrow(V32 a, V32 b) {
  const D16 d;
  if constexpr (!kWrapsBetween) {
    return hn::ReorderDemote2To(d, hn::ShiftRight<kShift>(a), hn::ShiftRight<kShift>(b));
  } else if constexpr (kShift == kShift1) {
    return hn::ConcatEven(d, hn::BitCast(d, hn::ShiftRight<kShift>(b)),
                          hn::BitCast(d, hn::ShiftRight<kShift>(a)));
  } else {
    const V16 upper = hn::ConcatOdd(d, hn::BitCast(d, b), hn::BitCast(d, a));
    return hn::ShiftRight<kShift - 16>(
        hn::SaturatedAdd(upper, hn::Set(d, std::int16_t{1 << (kShift - 17)})));
  }
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
  const V32 half = hn::Set(d32, kWrapsBetween && kShift == kShift2 ? 0 : 1 << (kShift - 1));
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
  for (int i = 0; i < 8; ++i) r[i] = Narrow<kShift>(a.out[i], b.out[i]);
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
#if HWY_TARGET <= HWY_AVX3
  return {_mm512_packus_epi16(a.raw, b.raw)};
#elif HWY_TARGET == HWY_AVX2
  return {_mm256_packus_epi16(a.raw, b.raw)};
#elif HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  return {_mm_packus_epi16(a.raw, b.raw)};
#else
  static_assert(kBlocks == 1);
  const hn::Repartition<std::uint8_t, D16> d8;
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
  if (!kWrapsBetween && HWY_UNLIKELY(!hn::AllFalse(d, beyond))) {
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

}  // namespace penstock::jpeg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::jpeg {

HWY_EXPORT(InverseDct);

void inverse_dct(const BlockRow& blocks, const QuantTable& quant, std::uint8_t* out,
                 std::ptrdiff_t stride) {
  HWY_DYNAMIC_DISPATCH(InverseDct)(blocks, quant, out, stride);
}

}  // namespace penstock::jpeg
#endif
