#include "src/jpeg/decoder/pixels.hpp"

#include <algorithm>

#include "src/core/fixed_vectors.hpp"
#include "src/jpeg/decoder/pixel_numbers.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/jpeg/decoder/pixels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::jpeg::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void YccRow(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int h, int width,
            std::uint8_t* out) {
  for (int x = 0; x < width; ++x, out += 4) {
    pixel::from_ycc(y[x], cb[x / h], cr[x / h], out);
    out[3] = 0;
  }
}

void RgbRow(const std::uint8_t* r, const std::uint8_t* g, const std::uint8_t* b, int width,
            std::uint8_t* out) {
  for (int x = 0; x < width; ++x, out += 4) {
    out[0] = r[x];
    out[1] = g[x];
    out[2] = b[x];
    out[3] = 0;
  }
}

void SmoothH2(const std::uint8_t* in, int width, std::uint8_t* out) {
  for (int x = 0; x < width; ++x) {
    const int i = x / 2;
    const bool odd = x % 2 != 0;
    out[x] = static_cast<std::uint8_t>(pixel::smooth_h2(in[i], in[odd ? i + 1 : i - 1], odd));
  }
}

void SmoothH2V2(const std::uint8_t* near, const std::uint8_t* far, int width, std::uint8_t* out) {
  const auto sum = [&](int i) { return 3 * near[i] + far[i]; };
  for (int x = 0; x < width; ++x) {
    const int i = x / 2;
    const bool odd = x % 2 != 0;
    out[x] = static_cast<std::uint8_t>(pixel::smooth_h2v2(sum(i), sum(odd ? i + 1 : i - 1), odd));
  }
}

void SmoothV2(const std::uint8_t* near, const std::uint8_t* far, bool below, int width,
              std::uint8_t* out) {
  for (int x = 0; x < width; ++x)
    out[x] = static_cast<std::uint8_t>(pixel::smooth_v2(near[x], far[x], below));
}

#else

using D8 = hn::CappedTag<std::uint8_t, 32 < HWY_MAX_BYTES / 2 ? 32 : HWY_MAX_BYTES / 2>;
using D16 = hn::Rebind<std::int16_t, D8>;
using DU16 = hn::Rebind<std::uint16_t, D8>;
using D32 = hn::RepartitionToWide<D16>;
using V8 = hn::Vec<D8>;
using V16 = hn::Vec<D16>;
using VU16 = hn::Vec<DU16>;

// kSame samples in a row out of each.
template <int kSame>
HWY_INLINE V8 Repeated(const std::uint8_t* from) {
  const D8 d;
  if constexpr (kSame == 1) {
    return hn::LoadU(d, from);
  } else if constexpr (kSame == 2) {
    const hn::Half<D8> dh;
    const DU16 du;
    const hn::Rebind<std::uint16_t, hn::Half<D8>> du16;
    const auto wide = hn::PromoteTo(du16, hn::LoadU(dh, from));
    (void)du;
    return hn::BitCast(d, hn::Or(wide, hn::ShiftLeft<8>(wide)));
  } else {
    alignas(64) std::uint8_t row[64];
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) row[i] = from[i / 4];
    return hn::LoadU(d, row);
  }
}

HWY_INLINE V16 Pair(int even, int odd) {
  const std::uint32_t pair = static_cast<std::uint16_t>(even) |
                             static_cast<std::uint32_t>(static_cast<std::uint16_t>(odd)) << 16;
  return hn::BitCast(D16(), hn::Set(D32(), static_cast<std::int32_t>(pair)));
}

HWY_INLINE hn::Vec<D32> PairSums(V16 a, V16 b) {
  const D32 d;
  auto second = hn::Zero(d);
  const auto sums = hn::ReorderWidenMulAccumulate(d, a, b, hn::Zero(d), second);
  return hn::RearrangeToOddPlusEven(sums, second);
}

template <int kSame>
void YccRowOf(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width,
              std::uint8_t* out) {
  const D8 d8;
  const D16 d;
  const D32 d32;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d8));
  const V16 middle = hn::Set(d, std::int16_t{128});
  const V16 one = hn::Set(d, std::int16_t{1});
  // 1.402 = 1 + 26345 / 2^16; 1.772 = 2 - 14942 / 2^16; 0.71414 = 1 - 18734 / 2^16.
  const V16 red = hn::Set(d, std::int16_t{26345});
  const V16 blue = hn::Set(d, std::int16_t{-14942});
  const V16 green = Pair(-22554, 18734);
  const auto half = hn::Set(d32, 1 << 15);
  for (int x = 0; x < width; x += kLanes) {
    const V16 luma = hn::PromoteTo(d, hn::LoadU(d8, y + x));
    const V16 b = hn::Sub(hn::PromoteTo(d, Repeated<kSame>(cb + x / kSame)), middle);
    const V16 r = hn::Sub(hn::PromoteTo(d, Repeated<kSame>(cr + x / kSame)), middle);
    const V16 b2 = hn::Add(b, b);
    const V16 r2 = hn::Add(r, r);
    // The product's upper half of twice the number, rounded once more: 16 bits down in all.
    const auto part = [&](V16 twice, V16 factor) HWY_ATTR {
      return hn::ShiftRight<1>(hn::Add(hn::MulHigh(twice, factor), one));
    };
    const V16 out_r = hn::Add(hn::Add(luma, r), part(r2, red));
    const V16 out_b = hn::Add(hn::Add(luma, b2), part(b2, blue));
    const auto low =
        hn::ShiftRight<16>(hn::Add(PairSums(hn::InterleaveLower(d, b, r), green), half));
    const auto high =
        hn::ShiftRight<16>(hn::Add(PairSums(hn::InterleaveUpper(d, b, r), green), half));
    const V16 out_g = hn::Add(hn::Sub(luma, r), hn::ReorderDemote2To(d, low, high));
    const V8 red8 = hn::DemoteTo(d8, out_r);
    hn::StoreInterleaved4(red8, hn::DemoteTo(d8, out_g), hn::DemoteTo(d8, out_b), red8, d8,
                          out + std::ptrdiff_t{4} * x);
  }
}

void YccRow(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int h, int width,
            std::uint8_t* out) {
  switch (h) {
    case 1:
      return YccRowOf<1>(y, cb, cr, width, out);
    case 2:
      return YccRowOf<2>(y, cb, cr, width, out);
    default:
      return YccRowOf<4>(y, cb, cr, width, out);
  }
}

void RgbRow(const std::uint8_t* r, const std::uint8_t* g, const std::uint8_t* b, int width,
            std::uint8_t* out) {
  const D8 d;
  for (int x = 0; x < width; x += static_cast<int>(hn::Lanes(d))) {
    const V8 red = hn::LoadU(d, r + x);
    hn::StoreInterleaved4(red, hn::LoadU(d, g + x), hn::LoadU(d, b + x), red, d,
                          out + std::ptrdiff_t{4} * x);
  }
}

// Samples that alternate.
HWY_INLINE void StoreBoth(VU16 even, VU16 odd, std::uint8_t* out) {
  const hn::Repartition<std::uint8_t, DU16> d8;
  hn::StoreU(hn::BitCast(d8, hn::Or(even, hn::ShiftLeft<8>(odd))), d8, out);
}

HWY_INLINE VU16 Widened(const std::uint8_t* from) {
  return hn::PromoteTo(DU16(), hn::LoadU(D8(), from));
}

HWY_INLINE VU16 Thrice(VU16 v) { return hn::Add(hn::Add(v, v), v); }

void SmoothH2(const std::uint8_t* in, int width, std::uint8_t* out) {
  const DU16 d;
  const VU16 one = hn::Set(d, std::uint16_t{1});
  const VU16 two = hn::Set(d, std::uint16_t{2});
  for (int i = 0; 2 * i < width; i += static_cast<int>(hn::Lanes(d))) {
    const VU16 here = Thrice(Widened(in + i));
    const VU16 even = hn::ShiftRight<2>(hn::Add(hn::Add(here, Widened(in + i - 1)), one));
    const VU16 odd = hn::ShiftRight<2>(hn::Add(hn::Add(here, Widened(in + i + 1)), two));
    StoreBoth(even, odd, out + std::ptrdiff_t{2} * i);
  }
}

void SmoothH2V2(const std::uint8_t* near, const std::uint8_t* far, int width, std::uint8_t* out) {
  const DU16 d;
  const VU16 seven = hn::Set(d, std::uint16_t{7});
  const VU16 eight = hn::Set(d, std::uint16_t{8});
  for (int i = 0; 2 * i < width; i += static_cast<int>(hn::Lanes(d))) {
    const auto sum = [&](int at) HWY_ATTR {
      return hn::Add(Thrice(Widened(near + at)), Widened(far + at));
    };
    const VU16 here = Thrice(sum(i));
    const VU16 even = hn::ShiftRight<4>(hn::Add(hn::Add(here, sum(i - 1)), eight));
    const VU16 odd = hn::ShiftRight<4>(hn::Add(hn::Add(here, sum(i + 1)), seven));
    StoreBoth(even, odd, out + std::ptrdiff_t{2} * i);
  }
}

void SmoothV2(const std::uint8_t* near, const std::uint8_t* far, bool below, int width,
              std::uint8_t* out) {
  const DU16 d;
  const D8 d8;
  const VU16 bias = hn::Set(d, static_cast<std::uint16_t>(below ? 2 : 1));
  for (int x = 0; x < width; x += static_cast<int>(hn::Lanes(d))) {
    const VU16 sum = hn::Add(hn::Add(Thrice(Widened(near + x)), Widened(far + x)), bias);
    hn::StoreU(hn::DemoteTo(d8, hn::BitCast(D16(), hn::ShiftRight<2>(sum))), d8, out + x);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace penstock::jpeg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::jpeg {

HWY_EXPORT(YccRow);
HWY_EXPORT(RgbRow);
HWY_EXPORT(SmoothH2);
HWY_EXPORT(SmoothH2V2);
HWY_EXPORT(SmoothV2);

void ycc_row(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int h,
             int width, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(YccRow)(y, cb, cr, h, width, out);
}

void rgb_row(const std::uint8_t* r, const std::uint8_t* g, const std::uint8_t* b, int width,
             std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(RgbRow)(r, g, b, width, out);
}

void smooth_h2(const std::uint8_t* in, int width, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SmoothH2)(in, width, out);
}

void smooth_h2v2(const std::uint8_t* near, const std::uint8_t* far, int width, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SmoothH2V2)(near, far, width, out);
}

void smooth_v2(const std::uint8_t* near, const std::uint8_t* far, bool below, int width,
               std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SmoothV2)(near, far, below, width, out);
}

}  // namespace penstock::jpeg
#endif
