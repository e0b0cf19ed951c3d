// augment/augmentation: what may be done to the pixels of an image in training, as values.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>

namespace PENSTOCK_EXPORT penstock {

namespace augment {
struct Operation;

/// Limits that several operations have.
inline constexpr FieldInfo kFactors{.min = 0, .max = 8};
inline constexpr FieldInfo kHueTurns{.min = -0.5, .max = 0.5};
inline constexpr FieldInfo kGains{.min = 0, .max = 1};
inline constexpr FieldInfo kProbability{.min = 0, .max = 1};
inline constexpr FieldInfo kShearDegrees{.min = -80, .max = 80};
inline constexpr FieldInfo kMagnitudeCounts{.min = 2, .max = 1000};

}  // namespace augment

/// One operation on an image with the ranges that it draws from, or a choice of operations. An immutable value; one that
/// is default-constructed does nothing. For augment_image().
///
/// Each operation is defined in integers and gives the same levels on every machine. The definitions are those of
/// torchvision.transforms.v2.functional for u8 images, within one level at factors up to 2; docs/augment.md says where they
/// differ. Grey images stay as they are where an operation needs colours. What is drawn comes from the sample's Random alone.
class Augmentation {
 public:
  Augmentation();
  explicit Augmentation(std::shared_ptr<const augment::Operation> operation) noexcept
      : operation_(std::move(operation)) {}

  /// "brightness(factor=[0.6, 1.4])".
  [[nodiscard]] std::string to_string() const;
  /// {"brightness":{"factor":[0.6,1.4]}}: what plans hold.
  [[nodiscard]] std::string to_json() const;
  /// What to_json() wrote.
  ///
  /// Errors  Error  no such operation, or a field that is missing, unknown or of another type
  ///         std::invalid_argument  a number out of range
  [[nodiscard]] static Augmentation from_json(std::string_view json);

  [[nodiscard]] const augment::Operation& operation() const noexcept { return *operation_; }
  friend bool operator==(const Augmentation& a, const Augmentation& b);

 private:
  std::shared_ptr<const augment::Operation> operation_;
};

/// How an operation that moves pixels reads between them.
enum class Interpolation : std::uint8_t {
  nearest,
  bilinear,  ///< torchvision's, which blends with the fill at the edges
  bicubic,   ///< Pillow's: Keys' cubic with a = -1, which repeats the outermost pixels at the edges
};
template <>
struct EnumNames<Interpolation> {
  static constexpr std::pair<Interpolation, const char*> kNames[] = {
      {Interpolation::nearest, "nearest"},
      {Interpolation::bilinear, "bilinear"},
      {Interpolation::bicubic, "bicubic"}};
};

/// For operations that move pixels.
struct Sampling {
  Interpolation interpolation = Interpolation::nearest;  ///< how levels between pixels are computed
  /// the colour outside the image; grey images need three equal levels
  std::array<std::uint8_t, 3> fill{};
};

template <class Visitor>
void visit_fields(Visitor& visit, Sampling& sampling) {
  visit("interpolation", sampling.interpolation);
  visit("fill", sampling.fill);
}

// ---- levels ----

/// Around 1, as torchvision's ColorJitter takes a number: [max(0, 1 - strength), 1 + strength].
///
/// Errors  std::invalid_argument  a strength outside 0 to 7
[[nodiscard]] Range factors(double strength);

/// Multiplies levels by `factor`; 0 is black. Factors of all operations are from 0 to 8, and 1 leaves an image as it is.
///
/// Errors  std::invalid_argument  a range that is empty or goes beyond
/// Source  torchvision's adjust_brightness
[[nodiscard]] Augmentation brightness(Range factor);
/// Blends with the mean of the image's luma, by `factor`.
///
/// Errors  as brightness
/// Source  torchvision's adjust_contrast
[[nodiscard]] Augmentation contrast(Range factor);
/// Blends with the image's luma, by `factor`; 0 is grey.
///
/// Errors  as brightness
/// Source  torchvision's adjust_saturation
[[nodiscard]] Augmentation saturation(Range factor);
/// Turns hues by `turn`, a fraction of the circle from -0.5 to 0.5.
///
/// Errors  std::invalid_argument  a range that is empty or goes beyond
/// Source  torchvision's adjust_hue
[[nodiscard]] Augmentation hue(Range turn);
/// Blends with a smoothed image, by `factor`: below 1 it blurs, above 1 it sharpens. The outermost pixels stay.
///
/// Errors  as brightness
/// Source  torchvision's adjust_sharpness
[[nodiscard]] Augmentation sharpness(Range factor);

struct ColorJitterOptions {
  Range brightness{1, 1};  ///< as of brightness()
  Range contrast{1, 1};    ///< as of contrast()
  Range saturation{1, 1};  ///< as of saturation()
  Range hue{0, 0};         ///< as of hue()
};

template <class Visitor>
void visit_fields(Visitor& visit, ColorJitterOptions& options) {
  visit("brightness", options.brightness, augment::kFactors);
  visit("contrast", options.contrast, augment::kFactors);
  visit("saturation", options.saturation, augment::kFactors);
  visit("hue", options.hue, augment::kHueTurns);
}
/// Brightness, contrast, saturation and hue in a random order. Those that change nothing are left out.
///
/// Errors  std::invalid_argument  as each of them
/// Source  torchvision's ColorJitter
[[nodiscard]] Augmentation color_jitter(ColorJitterOptions options);

struct HsvJitterOptions {
  double hue = 0.015;       ///< hues turn by up to this fraction of the circle, either way
  double saturation = 0.7;  ///< the factor of saturations lies at most this far from 1
  double value = 0.4;       ///< the factor of values lies at most this far from 1
};

template <class Visitor>
void visit_fields(Visitor& visit, HsvJitterOptions& options) {
  visit("hue", options.hue, augment::kGains);
  visit("saturation", options.saturation, augment::kGains);
  visit("value", options.value, augment::kGains);
}
/// Turns all hues of an image, and multiplies all saturations and values (of HSV), each by a random number: Ultralytics' hsv_h,
/// hsv_s and hsv_v. Saturations and values are cut at their maximum. Nothing is rounded to OpenCV's bytes of HSV in between;
/// docs/augment.md says by how much levels differ from those of Ultralytics.
///
/// Errors  std::invalid_argument  a number outside 0 to 1
/// Source  Ultralytics' RandomHSV; OpenCV's cvtColor
[[nodiscard]] Augmentation hsv_jitter(HsvJitterOptions options = {});

/// ITU-R 601-2 luma in all three channels.
///
/// Source  torchvision's rgb_to_grayscale
[[nodiscard]] Augmentation grayscale();
/// Inverts levels from `threshold` on.
///
/// Errors  std::invalid_argument  a threshold outside 0 to 256
/// Source  torchvision's solarize
[[nodiscard]] Augmentation solarize(int threshold = 128);
/// Keeps the highest `bits` bits of a level.
///
/// Errors  std::invalid_argument  bits outside 0 to 8
/// Source  torchvision's posterize
[[nodiscard]] Augmentation posterize(int bits);
/// Makes levels equally frequent, channel by channel.
///
/// Source  torchvision's equalize, which is Pillow's
[[nodiscard]] Augmentation equalize();
/// Stretches each channel over all levels.
///
/// Source  torchvision's autocontrast
[[nodiscard]] Augmentation autocontrast();
/// Replaces each level by 255 - level.
[[nodiscard]] Augmentation invert();
/// Blurs by a Gaussian of `kernel_size` times `kernel_size` pixels. Beyond its edges an image is mirrored.
///
/// Units   `sigma` in pixels
/// Errors  std::invalid_argument  a kernel size that is even or outside 1 to 63; a sigma that is not above 0, or above 100
/// Source  torchvision's gaussian_blur
[[nodiscard]] Augmentation gaussian_blur(int kernel_size, Range sigma = {0.1, 2});

// ---- places ----

/// Mirrors left to right, with `probability`.
///
/// Errors  std::invalid_argument  a probability outside 0 to 1
[[nodiscard]] Augmentation flip(double probability = 0.5);
/// Mirrors top to bottom, with `probability`.
///
/// Errors  std::invalid_argument  a probability outside 0 to 1
[[nodiscard]] Augmentation vertical_flip(double probability = 0.5);
/// Rotates about the middle, counterclockwise, by `degrees`.
///
/// Errors  std::invalid_argument  a range that is empty or goes beyond -360 to 360
/// Source  torchvision's rotate
[[nodiscard]] Augmentation rotate(Range degrees, Sampling sampling = {});
/// Shears about the middle, by `x` degrees to the right and `y` degrees downwards, from -80 to 80.
///
/// Errors  std::invalid_argument  a range that is empty or goes beyond
/// Source  torchvision's affine
[[nodiscard]] Augmentation shear(Range x, Range y = {0, 0}, Sampling sampling = {});
/// Moves by whole pixels: by the fraction `x` of the width and `y` of the height, from -1 to 1.
///
/// Errors  std::invalid_argument  a range that is empty or goes beyond
/// Source  torchvision's RandomAffine
[[nodiscard]] Augmentation translate(Range x, Range y, Sampling sampling = {});

struct AffineOptions {
  Range degrees{0, 0};      ///< rotation, clockwise
  Range translate_x{0, 0};  ///< fraction of the width, rounded to whole pixels
  Range translate_y{0, 0};  ///< fraction of the height, rounded to whole pixels
  Range scale{1, 1};        ///< factor of the size, from 0.01 to 100
  Range shear_x{0, 0};      ///< degrees to the right
  Range shear_y{0, 0};      ///< degrees downwards
};

template <class Visitor>
void visit_fields(Visitor& visit, AffineOptions& options) {
  visit("degrees", options.degrees, {.min = -360, .max = 360});
  visit("translate_x", options.translate_x, {.min = -1, .max = 1});
  visit("translate_y", options.translate_y, {.min = -1, .max = 1});
  visit("scale", options.scale, {.min = 0.01, .max = 100});
  visit("shear_x", options.shear_x, augment::kShearDegrees);
  visit("shear_y", options.shear_y, augment::kShearDegrees);
}
/// Rotates, moves, scales and shears at once, about the middle.
///
/// Errors  std::invalid_argument  as rotate, shear and translate; a scale outside 0.01 to 100
/// Source  torchvision's RandomAffine
[[nodiscard]] Augmentation affine(AffineOptions options, Sampling sampling = {});
/// Moves each corner inwards by up to `distortion` of half the image.
///
/// Errors  std::invalid_argument  a distortion outside 0 to 1
/// Source  torchvision's RandomPerspective
[[nodiscard]] Augmentation perspective(double distortion = 0.5,
                                       Sampling sampling = {
                                           .interpolation = Interpolation::bilinear});

// ---- choices ----

/// Does all of `operations`, in this order, with `probability`, or none.
///
/// Errors  std::invalid_argument  a probability outside 0 to 1
[[nodiscard]] Augmentation random_apply(double probability, std::vector<Augmentation> operations);
/// Does one of `operations`, with probabilities in proportion to `weights` where there are any.
///
/// Errors  std::invalid_argument  no operation; another number of weights, one below 0, or none above it
[[nodiscard]] Augmentation random_choice(std::vector<Augmentation> operations,
                                         std::vector<double> weights = {});

// ---- recipes that choose operations and how strong they are ----

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
