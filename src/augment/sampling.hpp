// augment/sampling: where a pixel of a geometric operation comes from, and what is read there. Places are u to the right
// and v downwards, with kCoordinateBits behind the point; pixel (x, y) lies from (x, y) to (x + 1, y + 1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/augment/step.hpp"
#include "src/core/host_device.hpp"

namespace penstock::augment {

/// An image of `channels` levels a pixel, line by line without gaps.
struct Picture {
  const std::uint8_t* pixels = nullptr;
  int height = 0;
  int width = 0;
  int channels = 0;

  [[nodiscard]] PENSTOCK_HOST_DEVICE const std::uint8_t* at(int x, int y) const {
    return pixels + (static_cast<std::ptrdiff_t>(y) * width + x) * channels;
  }
};

struct SourcePlace {
  std::int64_t u = 0;
  std::int64_t v = 0;
};

inline constexpr std::int64_t kWholePixel = std::int64_t{1} << kCoordinateBits;

PENSTOCK_HOST_DEVICE constexpr SourcePlace affine_place(const Step& step, int x, int y) {
  const std::int64_t column = 2 * x + 1;
  const std::int64_t row = 2 * y + 1;
  return {step.values[0] * column + step.values[1] * row + step.values[2],
          step.values[3] * column + step.values[4] * row + step.values[5]};
}

/// a / b towards minus infinity, of a quotient below 2^50. `inverse` is about 1 / b: what it is off by is put right.
PENSTOCK_HOST_DEVICE constexpr std::int64_t divided(std::int64_t a, std::int64_t b,
                                                    double inverse) {
  auto quotient = static_cast<std::int64_t>(static_cast<double>(a) * inverse);
  std::int64_t rest = a - quotient * b;
  for (; rest < 0; rest += b) --quotient;
  for (; rest >= b; rest -= b) ++quotient;
  return quotient;
}

/// numerator / denominator, which both have kNumeratorBits; what lies further than a pixel outside is -1 pixel.
PENSTOCK_HOST_DEVICE constexpr std::int64_t perspective_quotient(std::int64_t numerator,
                                                                 std::int64_t denominator,
                                                                 double inverse, int extent) {
  constexpr int kQuotientBits = 14;
  if (numerator < -denominator || numerator >= denominator * (extent + 1)) return -kWholePixel;
  return divided(numerator * (std::int64_t{1} << kQuotientBits), denominator, inverse) *
         (kWholePixel >> kQuotientBits);
}

PENSTOCK_HOST_DEVICE constexpr SourcePlace perspective_place(const Step& step, int x, int y,
                                                             int width, int height) {
  constexpr std::int64_t kMostDenominator = std::int64_t{8} << kNumeratorBits;
  const std::int64_t column = 2 * x + 1;
  const std::int64_t row = 2 * y + 1;
  const std::int64_t denominator =
      (step.values[6] * column + step.values[7] * row + (std::int64_t{1} << kDenominatorBits)) >>
      (kDenominatorBits - kNumeratorBits);
  if (denominator <= 0 || denominator >= kMostDenominator) return {-kWholePixel, -kWholePixel};
  const double inverse = 1 / static_cast<double>(denominator);
  return {perspective_quotient(step.values[0] * column + step.values[1] * row + step.values[2],
                               denominator, inverse, width),
          perspective_quotient(step.values[3] * column + step.values[4] * row + step.values[5],
                               denominator, inverse, height)};
}

PENSTOCK_HOST_DEVICE constexpr int whole_part(std::int64_t coordinate) {
  return static_cast<int>(coordinate >> kCoordinateBits);
}

// The share of the right or lower pixel; two of them and a level make 30 bits.
inline constexpr int kShareBits = 11;
inline constexpr std::int32_t kAllShares = 1 << kShareBits;

PENSTOCK_HOST_DEVICE constexpr std::int32_t share_of(std::int64_t coordinate) {
  return static_cast<std::int32_t>(coordinate >> (kCoordinateBits - kShareBits)) & (kAllShares - 1);
}

/// Of four neighbours, in Q22.
PENSTOCK_HOST_DEVICE constexpr std::int32_t bilinear_sum(std::int32_t upper_left,
                                                         std::int32_t upper_right,
                                                         std::int32_t lower_left,
                                                         std::int32_t lower_right,
                                                         std::int32_t right, std::int32_t lower) {
  const std::int32_t upper = upper_left * (kAllShares - right) + upper_right * right;
  const std::int32_t bottom = lower_left * (kAllShares - right) + lower_right * right;
  return upper * (kAllShares - lower) + bottom * lower;
}

inline constexpr std::int32_t kHalfSum = 1 << (2 * kShareBits - 1);

/// Whether a middle's place is within the image.
PENSTOCK_HOST_DEVICE constexpr bool is_inside(const Picture& from, SourcePlace place) {
  return place.u >= 0 && place.v >= 0 && whole_part(place.u) < from.width &&
         whole_part(place.v) < from.height;
}

template <int kChannels>
PENSTOCK_HOST_DEVICE void copy_pixel(const std::uint8_t* from, std::uint8_t* to) {
  for (int c = 0; c < kChannels; ++c) to[c] = from[c];
}

template <int kChannels>
PENSTOCK_HOST_DEVICE void sample_nearest(const Picture& from, const Step& step, SourcePlace place,
                                         std::uint8_t* to) {
  copy_pixel<kChannels>(
      is_inside(from, place) ? from.at(whole_part(place.u), whole_part(place.v)) : step.fill, to);
}

template <int kChannels>
PENSTOCK_HOST_DEVICE void sample_bilinear(const Picture& from, const Step& step, SourcePlace place,
                                          std::uint8_t* to) {
  const std::int64_t u = place.u - kWholePixel / 2;
  const std::int64_t v = place.v - kWholePixel / 2;
  const int x = whole_part(u);
  const int y = whole_part(v);
  const bool left = x >= 0 && x < from.width;
  const bool right = x >= -1 && x + 1 < from.width;
  const bool upper = y >= 0 && y < from.height;
  const bool lower = y >= -1 && y + 1 < from.height;
  const std::uint8_t* const upper_left = left && upper ? from.at(x, y) : step.fill;
  const std::uint8_t* const upper_right = right && upper ? from.at(x + 1, y) : step.fill;
  const std::uint8_t* const lower_left = left && lower ? from.at(x, y + 1) : step.fill;
  const std::uint8_t* const lower_right = right && lower ? from.at(x + 1, y + 1) : step.fill;
  for (int c = 0; c < kChannels; ++c)
    to[c] = static_cast<std::uint8_t>((bilinear_sum(upper_left[c], upper_right[c], lower_left[c],
                                                    lower_right[c], share_of(u), share_of(v)) +
                                       kHalfSum) >>
                                      (2 * kShareBits));
}

PENSTOCK_HOST_DEVICE constexpr int clipped(int place, int extent) {
  return place < 0 ? 0 : place < extent ? place : extent - 1;
}

template <int kChannels>
PENSTOCK_HOST_DEVICE void sample_pillow_bilinear(const Picture& from, const Step& step,
                                                 SourcePlace place, std::uint8_t* to) {
  if (!is_inside(from, place)) return copy_pixel<kChannels>(step.fill, to);
  const std::int64_t u = place.u - kWholePixel / 2;
  const std::int64_t v = place.v - kWholePixel / 2;
  const int left = clipped(whole_part(u), from.width);
  const int right = clipped(whole_part(u) + 1, from.width);
  const int upper = clipped(whole_part(v), from.height);
  const int lower = clipped(whole_part(v) + 1, from.height);
  for (int c = 0; c < kChannels; ++c)
    to[c] = static_cast<std::uint8_t>(
        bilinear_sum(from.at(left, upper)[c], from.at(right, upper)[c], from.at(left, lower)[c],
                     from.at(right, lower)[c], share_of(u), share_of(v)) >>
        (2 * kShareBits));
}

inline constexpr int kCubicBits = 14;
// Bits behind the point between the columns, which are summed first, and the rows.
inline constexpr int kCubicBetweenBits = 7;

struct CubicWeights {
  std::int32_t of[4];
};

/// Of four neighbours, for a place between the middle two. They add up to 1 << kCubicBits.
PENSTOCK_HOST_DEVICE constexpr CubicWeights cubic_weights(std::int32_t share) {
  constexpr int kShift = 3 * kShareBits - kCubicBits;
  const std::int64_t d = share;
  const std::int64_t first = d << (2 * kShareBits);
  const std::int64_t second = (d * d) << kShareBits;
  const std::int64_t third = d * d * d;
  const std::int64_t half = std::int64_t{1} << (kShift - 1);
  CubicWeights weights{};
  weights.of[0] = static_cast<std::int32_t>((-first + 2 * second - third + half) >> kShift);
  weights.of[2] = static_cast<std::int32_t>((first + second - third + half) >> kShift);
  weights.of[3] = static_cast<std::int32_t>((third - second + half) >> kShift);
  weights.of[1] = (1 << kCubicBits) - weights.of[0] - weights.of[2] - weights.of[3];
  return weights;
}

PENSTOCK_HOST_DEVICE constexpr std::int32_t cubic_between(std::int32_t sum) {
  return sum >> (kCubicBits - kCubicBetweenBits);
}
PENSTOCK_HOST_DEVICE constexpr std::int32_t cubic_level(std::int32_t sum) {
  return sum >> (kCubicBits + kCubicBetweenBits);
}

template <int kChannels>
PENSTOCK_HOST_DEVICE void sample_pillow_bicubic(const Picture& from, const Step& step,
                                                SourcePlace place, std::uint8_t* to) {
  if (!is_inside(from, place)) return copy_pixel<kChannels>(step.fill, to);
  const std::int64_t u = place.u - kWholePixel / 2;
  const std::int64_t v = place.v - kWholePixel / 2;
  const CubicWeights across = cubic_weights(share_of(u));
  const CubicWeights down = cubic_weights(share_of(v));
  const std::uint8_t* line[4] = {};
  for (int k = 0; k < 4; ++k) line[k] = from.at(0, clipped(whole_part(v) - 1 + k, from.height));
  std::int32_t sum[kChannels] = {};
  for (int k = 0; k < 4; ++k) {
    const std::ptrdiff_t column =
        static_cast<std::ptrdiff_t>(clipped(whole_part(u) - 1 + k, from.width)) * kChannels;
    for (int c = 0; c < kChannels; ++c) {
      const std::int32_t of_column =
          line[0][column + c] * down.of[0] + line[1][column + c] * down.of[1] +
          line[2][column + c] * down.of[2] + line[3][column + c] * down.of[3];
      sum[c] += cubic_between(of_column) * across.of[k];
    }
  }
  for (int c = 0; c < kChannels; ++c) {
    const std::int32_t level = cubic_level(sum[c]);
    to[c] = static_cast<std::uint8_t>(level < 0 ? 0 : level > 255 ? 255 : level);
  }
}

template <int kChannels>
PENSTOCK_HOST_DEVICE void sample(const Picture& from, const Step& step, SourcePlace place,
                                 std::uint8_t* to) {
  switch (step.sampler) {
    case Sampler::nearest:
      return sample_nearest<kChannels>(from, step, place, to);
    case Sampler::bilinear:
      return sample_bilinear<kChannels>(from, step, place, to);
    case Sampler::pillow_bilinear:
      return sample_pillow_bilinear<kChannels>(from, step, place, to);
    case Sampler::pillow_bicubic:
      return sample_pillow_bicubic<kChannels>(from, step, place, to);
  }
}

}  // namespace penstock::augment
