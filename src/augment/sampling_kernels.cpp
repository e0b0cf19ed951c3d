#include "src/augment/sampling_kernels.hpp"

#include <cstddef>
#include <cstring>

#include "src/core/fixed_vectors.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/augment/sampling_kernels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::augment::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void SampleLine(const Picture& from, Sampler sampler, const SourcePlace* places, int count,
                std::uint8_t* to) {
  Step step;
  for (int x = 0; x < count; ++x, to += 3) {
    step.sampler = sampler;
    sample<3>(from, step, {places[x].u + kWholePixel / 2, places[x].v + kWholePixel / 2}, to);
  }
}

#else

// The channels of a pixel, and a fourth number that counts for nothing.
using Channels = hn::FixedTag<std::int32_t, 4>;
using ChannelVector = hn::Vec<Channels>;
using FourBytes = hn::FixedTag<std::uint8_t, 4>;

HWY_INLINE ChannelVector load_pixel(const std::uint8_t* pixel) {
  return hn::PromoteTo(Channels(), hn::LoadU(FourBytes(), pixel));
}

HWY_INLINE void store_pixel(ChannelVector levels, std::uint8_t* to) {
  HWY_ALIGN std::uint8_t bytes[4];
  hn::StoreU(hn::DemoteTo(FourBytes(), levels), FourBytes(), bytes);
  std::memcpy(to, bytes, 3);
}

void bilinear_line(const Picture& from, std::int32_t half, const SourcePlace* places, int count,
                   std::uint8_t* to) {
  const Channels d;
  const std::size_t below = static_cast<std::size_t>(from.width) * 3;
  const auto rounding = hn::Set(d, half);
  for (int x = 0; x < count; ++x, to += 3) {
    const std::uint8_t* const upper = from.at(whole_part(places[x].u), whole_part(places[x].v));
    const std::uint8_t* const lower = upper + below;
    const std::int32_t right_share = share_of(places[x].u);
    const std::int32_t lower_share = share_of(places[x].v);
    const auto right = hn::Set(d, right_share);
    const auto left = hn::Set(d, kAllShares - right_share);
    const auto of_upper =
        hn::Add(hn::Mul(load_pixel(upper), left), hn::Mul(load_pixel(upper + 3), right));
    const auto of_lower =
        hn::Add(hn::Mul(load_pixel(lower), left), hn::Mul(load_pixel(lower + 3), right));
    const auto sum = hn::Add(hn::Mul(of_upper, hn::Set(d, kAllShares - lower_share)),
                             hn::Mul(of_lower, hn::Set(d, lower_share)));
    store_pixel(hn::ShiftRight<2 * kShareBits>(hn::Add(sum, rounding)), to);
  }
}

void bicubic_line(const Picture& from, const SourcePlace* places, int count, std::uint8_t* to) {
  const Channels d;
  const std::size_t below = static_cast<std::size_t>(from.width) * 3;
  for (int x = 0; x < count; ++x, to += 3) {
    const std::uint8_t* const first =
        from.at(whole_part(places[x].u) - 1, whole_part(places[x].v) - 1);
    const CubicWeights& across = kCubicTable[static_cast<std::size_t>(share_of(places[x].u))];
    const CubicWeights& down = kCubicTable[static_cast<std::size_t>(share_of(places[x].v))];
    // Four pixels' columns, as they lie.
    HWY_ALIGN std::int32_t columns[13];
    columns[12] = 0;
    for (std::size_t at = 0; at < 12; at += 4) {
      auto sum = hn::Mul(load_pixel(first + at), hn::Set(d, down.of[0]));
      for (std::size_t k = 1; k < 4; ++k)
        sum = hn::Add(sum, hn::Mul(load_pixel(first + k * below + at), hn::Set(d, down.of[k])));
      hn::StoreU(hn::ShiftRight<kCubicBits - kCubicBetweenBits>(sum), d, columns + at);
    }
    auto sum = hn::Mul(hn::LoadU(d, columns), hn::Set(d, across.of[0]));
    for (std::size_t k = 1; k < 4; ++k)
      sum = hn::Add(sum, hn::Mul(hn::LoadU(d, columns + 3 * k), hn::Set(d, across.of[k])));
    store_pixel(hn::ShiftRight<kCubicBits + kCubicBetweenBits>(sum), to);
  }
}

void SampleLine(const Picture& from, Sampler sampler, const SourcePlace* places, int count,
                std::uint8_t* to) {
  if (sampler == Sampler::pillow_bicubic)
    bicubic_line(from, places, count, to);
  else
    bilinear_line(from, sampler == Sampler::bilinear ? kHalfSum : 0, places, count, to);
}

#endif

}  // namespace penstock::augment::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::augment {

HWY_EXPORT(SampleLine);

void sample_line(const Picture& from, Sampler sampler, const SourcePlace* places, int count,
                 std::uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(SampleLine)(from, sampler, places, count, to);
}

}  // namespace penstock::augment
#endif
