// jpeg/decoder/coefficients-inl: from the bits of a few blocks, in zigzag order, to vectors of
// their dequantized coefficients, in rows; for files that are compiled once for every instruction
// set.
#if defined(PENSTOCK_JPEG_COEFFICIENTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_JPEG_COEFFICIENTS_INL
#undef PENSTOCK_JPEG_COEFFICIENTS_INL
#else
#define PENSTOCK_JPEG_COEFFICIENTS_INL
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <hwy/highway.h>

#include "src/jpeg/decoder/idct.hpp"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace penstock::jpeg::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
HWY_INLINE void AddShuffled(V16 from, V16& row) {
  if constexpr (ShuffleOf<kRow, kFrom>::kValue.used) {
    const D16 d;
    const hn::Repartition<std::uint8_t, D16> d8;
    const V16 part = hn::BitCast(
        d, hn::TableLookupBytesOr0(hn::BitCast(d8, from),
                                   hn::LoadDup128(d8, ShuffleOf<kRow, kFrom>::kValue.bytes)));
    row = hn::Or(row, part);
  }
}

template <std::size_t kRow, std::size_t... kFrom>
HWY_INLINE V16 NaturalRow(const V16* from, std::index_sequence<kFrom...>) {
  V16 row = hn::Zero(D16());
  (AddShuffled<kRow, kFrom>(from[kFrom], row), ...);
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

}  // namespace penstock::jpeg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
