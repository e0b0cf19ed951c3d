// augment/numbers: the arithmetic of the operations, once, in integers: the host and kernels get the same bits. The
// functions are those of torchvision.transforms.v2.functional for u8 images.
#pragma once

#include <cstdint>

#include "src/augment/step.hpp"
#include "src/core/host_device.hpp"

namespace penstock::augment {

/// Factors are rounded, so a product that is a whole number may lie this much below it. It counts as whole.
inline constexpr std::int32_t kNearlyWhole = 1 << (kFactorBits - 13);
/// The largest factor whose products with a level have 32 bits.
inline constexpr int kMostFactor = 8;

PENSTOCK_HOST_DEVICE constexpr std::uint8_t to_level(std::int32_t value) {
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

/// factor * level + (1 - factor) * base, cut to an integer.
PENSTOCK_HOST_DEVICE constexpr std::uint8_t blend(std::int32_t base, std::int32_t level,
                                                  std::int32_t factor) {
  return to_level(base + (((level - base) * factor + kNearlyWhole) >> kFactorBits));
}

/// The same with a base of kFactorBits bits behind the point: the mean of an image.
PENSTOCK_HOST_DEVICE constexpr std::uint8_t blend_with_mean(std::int64_t mean, std::int64_t level,
                                                            std::int64_t factor) {
  const std::int64_t one = std::int64_t{1} << kFactorBits;
  const std::int64_t blended = mean + ((level * one - mean) * factor >> kFactorBits) + kNearlyWhole;
  return to_level(static_cast<std::int32_t>(blended >> kFactorBits));
}

// 0.2989, 0.587 and 0.114: together a little less than 1.
inline constexpr std::int32_t kRedShare = 313419;
inline constexpr std::int32_t kGreenShare = 615514;
inline constexpr std::int32_t kBlueShare = 119538;

/// ITU-R 601-2 luma, cut to an integer.
PENSTOCK_HOST_DEVICE constexpr std::int32_t luma(std::int32_t red, std::int32_t green,
                                                 std::int32_t blue) {
  return (red * kRedShare + green * kGreenShare + blue * kBlueShare + kNearlyWhole) >> kFactorBits;
}

PENSTOCK_HOST_DEVICE constexpr std::uint8_t solarized(std::int32_t level, std::int64_t threshold) {
  return static_cast<std::uint8_t>(level >= threshold ? 255 - level : level);
}

PENSTOCK_HOST_DEVICE constexpr std::uint8_t solarize_added(std::int32_t level, std::int64_t added,
                                                           std::int64_t threshold) {
  return to_level(static_cast<std::int32_t>(level < threshold ? level + added : level));
}

/// What a step that is one table for all channels makes of a level.
PENSTOCK_HOST_DEVICE constexpr std::uint8_t changed_level(const Step& step, std::int32_t level) {
  const std::int64_t value = step.values[0];
  switch (step.kind) {
    case StepKind::brightness:
      return blend(0, level, static_cast<std::int32_t>(value));
    case StepKind::solarize:
      return solarized(level, value);
    case StepKind::solarize_add:
      return solarize_added(level, value, step.values[1]);
    case StepKind::posterize:
      return static_cast<std::uint8_t>(level & value);
    default:
      return static_cast<std::uint8_t>(255 - level);
  }
}

/// The mean of an image, with kFactorBits bits behind the point, of the sum of its levels or its luma.
PENSTOCK_HOST_DEVICE constexpr std::int64_t mean_level(std::uint64_t sum, std::uint64_t pixels) {
  return static_cast<std::int64_t>((sum << kFactorBits) / pixels);
}

/// Stretches the levels from `least` to `most` over all of them.
PENSTOCK_HOST_DEVICE constexpr std::uint8_t stretched(std::int32_t level, std::int32_t least,
                                                      std::int32_t most) {
  return least == most ? static_cast<std::uint8_t>(level)
                       : to_level((level - least) * 255 / (most - least));
}

/// Of how many pixels a level more is made, in equalize, of which `brightest` have the highest level.
PENSTOCK_HOST_DEVICE constexpr std::int64_t equalizing_step(std::uint64_t pixels,
                                                            std::uint64_t brightest) {
  return static_cast<std::int64_t>((pixels - brightest) / 255);
}

/// What an equalised level becomes, of how many pixels are darker. `step` is not 0.
PENSTOCK_HOST_DEVICE constexpr std::uint8_t equalized(std::int64_t darker, std::int64_t step) {
  const std::int64_t level = (darker + step / 2) / step;
  return static_cast<std::uint8_t>(level > 255 ? 255 : level);
}

struct Rgb {
  std::int32_t red, green, blue;
};

/// Where a pixel's hue lies: `part`, of the range from its least level to its most, behind the beginning of a sextant, or
/// before it where the part is negative.
struct HueParts {
  std::int32_t most, least;
  std::int32_t sextant;  // 0, 2 or 4
  std::int32_t part;
};

PENSTOCK_HOST_DEVICE constexpr HueParts hue_of(Rgb pixel) {
  const auto [red, green, blue] = pixel;
  const std::int32_t most = red > green ? (red > blue ? red : blue) : (green > blue ? green : blue);
  const std::int32_t least =
      red < green ? (red < blue ? red : blue) : (green < blue ? green : blue);
  if (most == red) return {most, least, 0, green - blue};
  if (most == green) return {most, least, 2, blue - red};
  return {most, least, 4, red - green};
}

PENSTOCK_HOST_DEVICE constexpr Rgb color_of(std::int32_t sextant, std::int32_t most,
                                            std::int32_t middle, std::int32_t least) {
  switch (sextant) {
    case 0:
      return {most, middle, least};
    case 1:
      return {middle, most, least};
    case 2:
      return {least, most, middle};
    case 3:
      return {least, middle, most};
    case 4:
      return {middle, least, most};
    default:
      return {most, least, middle};
  }
}

/// Turns a pixel's hue by `turn` sextants, through hue, saturation and value. In sextants a hue is an integer and a
/// quotient over the pixel's range, and what is made of it is multiplied by that range again: no division is left.
PENSTOCK_HOST_DEVICE constexpr Rgb hue_turned(Rgb pixel, std::int64_t turn) {
  const std::int32_t one = 1 << kFactorBits;
  const auto [most, least, beginning, part] = hue_of(pixel);
  const std::int32_t range = most - least;
  std::int32_t sextant = beginning + static_cast<std::int32_t>(turn >> kFactorBits);
  std::int32_t within =
      part * one + range * static_cast<std::int32_t>(turn & (one - 1));  // of range * one
  if (within < 0) {
    within += range * one;
    sextant += 5;
  } else if (within >= range * one) {
    within -= range * one;
    sextant += 1;
  }
  sextant %= 6;
  // Rising through the even sextants, falling through the others. Levels count from 0 to 255.999.
  const std::int32_t between = sextant % 2 == 0 ? least * one + within : most * one - within;
  const std::int32_t middle =
      (between + (between >> 8) + (((between >> 16) * 3) >> 2)) >> kFactorBits;
  return color_of(sextant, most, middle, least);
}

/// Levels within hsv_changed(). Numerators of its quotients have 24 bits at most, which a float has, too.
inline constexpr int kHsvLevelBits = 8;

/// Turns a pixel's hue, and multiplies its saturation and its value. The value, which is the highest level, is cut to an
/// integer, as by a table of levels. Hue and saturation are not; the levels that are made of them are rounded.
PENSTOCK_HOST_DEVICE constexpr Rgb hsv_changed(Rgb pixel, std::int32_t turn,
                                               std::int32_t saturation, std::int32_t value) {
  const auto [old_most, old_least, beginning, part] = hue_of(pixel);
  const std::int32_t old_range = old_most - old_least;
  // A saturation is the range over the highest level, and at most 1.
  const int shift = kFactorBits - kHsvLevelBits;
  const std::int32_t wanted = (old_range * saturation + (1 << (shift - 1))) >> shift;
  const std::int32_t largest = old_most << kHsvLevelBits;
  const std::int32_t saturated = wanted < largest ? wanted : largest;
  const std::int32_t most = blend(0, old_most, value);
  const std::int32_t range =
      (most * saturated + (old_most >> 1)) / (old_most > 0 ? old_most : 1);  // kHsvLevelBits

  std::int32_t sextant = beginning + (turn >> kHsvTurnBits) + (part < 0 ? 5 : 0);
  const std::int32_t one = 1 << kHsvTurnBits;
  std::int32_t within = ((part < 0 ? part + old_range : part) * one + (old_range >> 1)) /
                            (old_range > 0 ? old_range : 1) +
                        (turn & (one - 1));
  if (within >= one) {
    within -= one;
    sextant += 1;
  }
  sextant %= 6;
  const std::int32_t above_least = (range * within + (one >> 1)) >> kHsvTurnBits;
  const std::int32_t highest = most << kHsvLevelBits;
  const std::int32_t between =
      sextant % 2 == 0 ? highest - range + above_least : highest - above_least;
  const std::int32_t half = 1 << (kHsvLevelBits - 1);
  return color_of(sextant, most, (between + half) >> kHsvLevelBits,
                  (highest - range + half) >> kHsvLevelBits);
}

/// What saturation, hue, hsv or grayscale make of a pixel.
PENSTOCK_HOST_DEVICE constexpr Rgb changed_pixel(const Step& step, Rgb pixel) {
  if (step.kind == StepKind::hue) return hue_turned(pixel, step.values[0]);
  if (step.kind == StepKind::hsv)
    return hsv_changed(pixel, static_cast<std::int32_t>(step.values[0]),
                       static_cast<std::int32_t>(step.values[1]),
                       static_cast<std::int32_t>(step.values[2]));
  const std::int32_t gray = luma(pixel.red, pixel.green, pixel.blue);
  if (step.kind == StepKind::grayscale) return {gray, gray, gray};
  const auto factor = static_cast<std::int32_t>(step.values[0]);
  return {blend(gray, pixel.red, factor), blend(gray, pixel.green, factor),
          blend(gray, pixel.blue, factor)};
}

/// Of the sum of the eight pixels around one and of five times that: a thirteenth, rounded.
PENSTOCK_HOST_DEVICE constexpr std::int32_t smoothed(std::int32_t sum) { return (sum + 6) / 13; }

// A blur goes over the columns first; between the directions levels have this many bits behind the point, so that the sum
// of two of them has 16 bits.
inline constexpr int kBetweenBits = 6;

PENSTOCK_HOST_DEVICE constexpr std::int32_t blur_between(std::int32_t sum) {
  const int shift = kBlurBits - kBetweenBits;
  return (sum + (1 << (shift - 1))) >> shift;
}
PENSTOCK_HOST_DEVICE constexpr std::uint8_t blur_level(std::int32_t sum) {
  const int shift = kBlurBits + kBetweenBits;
  return to_level((sum + (1 << (shift - 1))) >> shift);
}

/// The place of a pixel beyond an edge, mirrored about the edge's own pixel.
PENSTOCK_HOST_DEVICE constexpr int mirrored(int place, int extent) {
  if (extent == 1) return 0;
  const int period = 2 * extent - 2;
  place %= period;
  if (place < 0) place += period;
  return place < extent ? place : period - place;
}

PENSTOCK_HOST_DEVICE constexpr std::uint8_t mixed_level(std::uint32_t sum) {
  return static_cast<std::uint8_t>(sum >> kMixBits);
}

}  // namespace penstock::augment
