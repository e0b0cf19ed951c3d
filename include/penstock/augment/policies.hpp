// augment/policies: recipes that choose operations and how strong they are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <penstock/augment/augmentation.hpp>
#include <penstock/core/fields.hpp>

namespace penstock {

/// Does one of 14 operations at one of `magnitudes` strengths.
///
/// Errors  std::invalid_argument  magnitudes outside 2 to 1000
/// Source  Mueller, Hutter: TrivialAugment (ICCV 2021); torchvision's TrivialAugmentWide
[[nodiscard]] Augmentation trivial_augment_wide(int magnitudes = 31, Sampling sampling = {});

struct RandAugmentOptions {
  int operations = 2;   ///< how many are done, one after another
  int magnitude = 9;    ///< their strength, from 0 to below `magnitudes`
  int magnitudes = 31;  ///< how many strengths there are
};

template <class Visitor>
void visit_fields(Visitor& visit, RandAugmentOptions& options) {
  visit("operations", options.operations, {.min = 0, .max = 16});
  visit("magnitude", options.magnitude);
  visit("magnitudes", options.magnitudes, augment::kMagnitudeCounts);
}
/// Does some of 14 operations, all of one strength.
///
/// Errors  std::invalid_argument  operations outside 0 to 16, or a magnitude that is not one of them
/// Source  Cubuk, Zoph, Shlens, Le: RandAugment (2019); torchvision's RandAugment
[[nodiscard]] Augmentation rand_augment(RandAugmentOptions options = {}, Sampling sampling = {});

/// Does one of 25 pairs of operations, with their strengths and probabilities: the policy for ImageNet.
///
/// Source  Cubuk, Zoph, Mane, Vasudevan, Le: AutoAugment (CVPR 2019); torchvision's AutoAugment
[[nodiscard]] Augmentation auto_augment(Sampling sampling = {});

struct AugMixOptions {
  int severity = 3;  ///< strength of the operations, 1 to 10
  int width = 3;     ///< how many chains of operations are mixed, 1 to 10
  int depth = 0;     ///< operations in a chain, 1 to 16; 0 for a random number from 1 to 3
  double alpha = 1;  ///< parameter of the Dirichlet and the Beta distribution of weights
  bool all_operations =
      true;  ///< whether brightness, contrast, saturation and sharpness are among them
};

template <class Visitor>
void visit_fields(Visitor& visit, AugMixOptions& options) {
  visit("severity", options.severity, {.min = 1, .max = 10});
  visit("width", options.width, {.min = 1, .max = 10});
  visit("depth", options.depth, {.min = 0, .max = 16});
  visit("alpha", options.alpha, {.min = 0.001, .max = 1000});
  visit("all_operations", options.all_operations);
}
/// Mixes the image with the results of several chains of operations on it.
///
/// Errors  std::invalid_argument  an option out of range
/// Source  Hendrycks et al.: AugMix (ICLR 2020); torchvision's AugMix
[[nodiscard]] Augmentation aug_mix(AugMixOptions options = {},
                                   Sampling sampling = {.interpolation = Interpolation::bilinear});

struct TimmRandAugmentOptions {
  /// how levels between pixels are computed, as Pillow does it; by default bilinear or bicubic at random
  std::optional<Interpolation> interpolation{};
  std::array<std::uint8_t, 3> fill{128, 128, 128};  ///< the colour outside the image
};

template <class Visitor>
void visit_fields(Visitor& visit, TimmRandAugmentOptions& options) {
  visit("interpolation", options.interpolation);
  visit("fill", options.fill);
}
/// timm's RandAugment with its own operations and strengths, from its strings: `config`. Sections behind
/// "rand", in any order: m magnitude (10), n operations (2), p the probability of each (0.5), mstd the standard deviation
/// of the magnitude (0; above 100: uniform from 0), mmax its upper bound (10), inc1 strengths that all grow with it.
///
/// Errors  std::invalid_argument  a string that is not of this kind; names the section
/// Source  timm.data.auto_augment, 1.0
[[nodiscard]] Augmentation timm_rand_augment(std::string config = "rand-m9-mstd0.5-inc1",
                                             TimmRandAugmentOptions options = {});

struct ThreeAugmentOptions {
  double color_jitter = 0.3;  ///< strength of brightness, contrast and saturation; 0 for none
  int kernel_size = 13;       ///< size of the blur, in pixels
};

template <class Visitor>
void visit_fields(Visitor& visit, ThreeAugmentOptions& options) {
  visit("color_jitter", options.color_jitter);
  visit("kernel_size", options.kernel_size);
}
/// Does greyscale, solarisation or a Gaussian blur, then colour jitter. Made of random_choice and color_jitter.
///
/// Errors  std::invalid_argument  as color_jitter and gaussian_blur
/// Source  Touvron, Cord, Jegou: DeiT III (ECCV 2022)
[[nodiscard]] Augmentation three_augment(ThreeAugmentOptions options = {});

}  // namespace penstock
