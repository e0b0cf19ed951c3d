// augment/step: what is done to one image, drawn and in integers.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace penstock::augment {

/// Factors and their like have this many bits behind the point.
inline constexpr int kFactorBits = 20;
/// The turn of an hsv step.
inline constexpr int kHsvTurnBits = 15;
/// Coordinates of a geometric operation.
inline constexpr int kCoordinateBits = 32;
/// The numerators and, with more bits, the denominator of a perspective.
inline constexpr int kNumeratorBits = 30;
inline constexpr int kDenominatorBits = 40;
/// Weights of a blur: they add up to 1 << kBlurBits.
inline constexpr int kBlurBits = 14;
/// Weights of a mixture: they add up to 1 << kMixBits.
inline constexpr int kMixBits = 16;
/// A blur's widest kernel: itself and as many pixels on either side as there are further weights.
inline constexpr int kBlurWeights = 32;
inline constexpr int kWidestBlur = 2 * kBlurWeights - 1;
/// Larger images are refused: their coordinates would not fit.
inline constexpr int kLongestSide = 32767;

// In this order: see is_table().
enum class StepKind : std::uint8_t {
  // A table of 256 entries.
  brightness,    // values[0]: the factor
  solarize,      // values[0]: the least level that is inverted
  solarize_add,  // values[0]: what is added to levels below values[1]
  posterize,     // values[0]: the bits that are kept, as a mask
  invert,
  // A table for each channel, made of what is counted in the image.
  contrast,  // values[0]: the factor
  autocontrast,
  equalize,
  // A function of the pixel; grey images stay as they are.
  saturation,  // values[0]: the factor
  hue,         // values[0]: the turn in sextants, from 0 to below 6
  hsv,  // values[0]: the turn, likewise, with kHsvTurnBits; [1], [2]: the factors of saturation and value
  grayscale,
  // A function of the pixel and those around it.
  sharpness,      // values[0]: the factor
  gaussian_blur,  // weights, from the middle outwards; count: how many
  // Each pixel is taken from elsewhere. With X = 2x + 1, Y = 2y + 1 of a pixel's place x, y (its middle, doubled):
  affine,       // u = values[0] X + values[1] Y + values[2], v likewise of values[3…5]
  perspective,  // the same, over the denominator values[6] X + values[7] Y + 1
  flip,         // left to right
  vertical_flip,
  // A mixture of branches, each of which begins with the image as it was: mix_begin, steps, mix_add, steps, mix_add.
  mix_begin,  // values[0]: the weight of the image as it was
  mix_add,  // values[0]: the weight of what the steps before it made; values[1]: 1 in the last one
};

/// Whether a step takes pixels from elsewhere and leaves their levels as they are.
[[nodiscard]] constexpr bool is_move(StepKind kind) noexcept {
  return kind >= StepKind::affine && kind <= StepKind::vertical_flip;
}

/// How an affine step or a perspective reads pixels.
enum class Sampler : std::uint8_t {
  nearest,
  bilinear,         ///< torchvision's: pixels outside the image have the fill's levels
  pillow_bilinear,  ///< a point outside is the fill, one inside reads no pixel outside; not rounded
  pillow_bicubic,   ///< the same by Keys' cubic with a = -1
};

/// One operation with its parameters. Plain data of a fixed size, to be carried to a device beside the image.
struct Step {
  StepKind kind = StepKind::invert;
  Sampler sampler = Sampler::nearest;
  std::uint8_t count = 0;
  std::uint8_t fill[3] = {};
  std::uint8_t unused[2] = {};
  union {
    std::int64_t values[8] = {};
    std::int16_t weights[kBlurWeights];
  };
};
static_assert(sizeof(Step) == 72 && std::is_trivially_copyable_v<Step>);

/// What is done to one image, in order.
using Program = std::vector<Step>;
using ProgramView = std::span<const Step>;

}  // namespace penstock::augment
