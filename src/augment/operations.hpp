// augment/operations: the options of each operation, with their names, limits and defaults in plans.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <penstock/augment/augmentation.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>

#include "src/augment/step.hpp"
#include "src/core/one_of.hpp"

namespace penstock::augment {

struct Nothing {
  static constexpr const char* kName = "nothing";
};

// ---- of one range ----

struct Brightness {
  static constexpr const char* kName = "brightness";
  static constexpr const char* kField = "factor";
  static constexpr FieldInfo kLimits = kFactors;
  Range range;
};
struct Contrast {
  static constexpr const char* kName = "contrast";
  static constexpr const char* kField = "factor";
  static constexpr FieldInfo kLimits = kFactors;
  Range range;
};
struct Saturation {
  static constexpr const char* kName = "saturation";
  static constexpr const char* kField = "factor";
  static constexpr FieldInfo kLimits = kFactors;
  Range range;
};
struct Sharpness {
  static constexpr const char* kName = "sharpness";
  static constexpr const char* kField = "factor";
  static constexpr FieldInfo kLimits = kFactors;
  Range range;
};
struct Hue {
  static constexpr const char* kName = "hue";
  static constexpr const char* kField = "turn";
  static constexpr FieldInfo kLimits = kHueTurns;
  Range range;
};
template <class T>
concept OfOneRange = requires(T operation) {
  T::kField;
  operation.range;
};
template <class Visitor, OfOneRange T>
void visit_fields(Visitor& visit, T& of) {
  visit.required(T::kField, of.range, T::kLimits);
}

// ---- without options ----

struct Grayscale {
  static constexpr const char* kName = "grayscale";
};
struct Equalize {
  static constexpr const char* kName = "equalize";
};
struct Autocontrast {
  static constexpr const char* kName = "autocontrast";
};
struct Invert {
  static constexpr const char* kName = "invert";
};

// ---- levels ----

struct ColorJitter {
  static constexpr const char* kName = "color_jitter";
  ColorJitterOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, ColorJitter& of) {
  visit_fields(visit, of.options);
}
struct HsvJitter {
  static constexpr const char* kName = "hsv_jitter";
  HsvJitterOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, HsvJitter& of) {
  visit_fields(visit, of.options);
}
struct Solarize {
  static constexpr const char* kName = "solarize";
  int threshold = 128;
};
template <class Visitor>
void visit_fields(Visitor& visit, Solarize& of) {
  visit("threshold", of.threshold, {.min = 0, .max = 256});
}
struct Posterize {
  static constexpr const char* kName = "posterize";
  int bits = 8;
};
template <class Visitor>
void visit_fields(Visitor& visit, Posterize& of) {
  visit.required("bits", of.bits, {.min = 0, .max = 8});
}
struct GaussianBlur {
  static constexpr const char* kName = "gaussian_blur";
  int kernel_size = 1;
  Range sigma{0.1, 2};
};
template <class Visitor>
void visit_fields(Visitor& visit, GaussianBlur& of) {
  visit.required("kernel_size", of.kernel_size, {.min = 1, .max = kWidestBlur});
  visit("sigma", of.sigma, {.min = 0.01, .max = 100});
}

// ---- places ----

struct Flip {
  static constexpr const char* kName = "flip";
  double probability = 0.5;
};
template <class Visitor>
void visit_fields(Visitor& visit, Flip& of) {
  visit("probability", of.probability, kProbability);
}
struct VerticalFlip {
  static constexpr const char* kName = "vertical_flip";
  double probability = 0.5;
};
template <class Visitor>
void visit_fields(Visitor& visit, VerticalFlip& of) {
  visit("probability", of.probability, kProbability);
}
struct Rotate {
  static constexpr const char* kName = "rotate";
  Range degrees;
  Sampling sampling;
};
template <class Visitor>
void visit_fields(Visitor& visit, Rotate& of) {
  visit.required("degrees", of.degrees, {.min = -360, .max = 360});
  visit_fields(visit, of.sampling);
}
struct Shear {
  static constexpr const char* kName = "shear";
  Range x;
  Range y;
  Sampling sampling;
};
template <class Visitor>
void visit_fields(Visitor& visit, Shear& of) {
  visit.required("x", of.x, kShearDegrees);
  visit.required("y", of.y, kShearDegrees);
  visit_fields(visit, of.sampling);
}
struct Translate {
  static constexpr const char* kName = "translate";
  Range x;
  Range y;
  Sampling sampling;
};
template <class Visitor>
void visit_fields(Visitor& visit, Translate& of) {
  visit.required("x", of.x, {.min = -1, .max = 1});
  visit.required("y", of.y, {.min = -1, .max = 1});
  visit_fields(visit, of.sampling);
}
struct Affine {
  static constexpr const char* kName = "affine";
  AffineOptions options;
  Sampling sampling;
};
template <class Visitor>
void visit_fields(Visitor& visit, Affine& of) {
  visit_fields(visit, of.options);
  visit_fields(visit, of.sampling);
}
struct Perspective {
  static constexpr const char* kName = "perspective";
  double distortion = 0.5;
  Sampling sampling{.interpolation = Interpolation::bilinear};
};
template <class Visitor>
void visit_fields(Visitor& visit, Perspective& of) {
  visit("distortion", of.distortion, {.min = 0, .max = 1});
  visit_fields(visit, of.sampling);
}

// ---- choices ----

struct RandomApply {
  static constexpr const char* kName = "random_apply";
  double probability = 1;
  std::vector<Augmentation> operations;
};
template <class Visitor>
void visit_fields(Visitor& visit, RandomApply& of) {
  visit.required("probability", of.probability, kProbability);
  visit.required("operations", of.operations);
}
struct RandomChoice {
  static constexpr const char* kName = "random_choice";
  std::vector<Augmentation> operations;
  std::vector<double> weights;
};
template <class Visitor>
void visit_fields(Visitor& visit, RandomChoice& of) {
  visit.required("operations", of.operations);
  visit("weights", of.weights);
}

// ---- policies ----

struct TrivialAugmentWide {
  static constexpr const char* kName = "trivial_augment_wide";
  int magnitudes = 31;
  Sampling sampling;
};
template <class Visitor>
void visit_fields(Visitor& visit, TrivialAugmentWide& of) {
  visit("magnitudes", of.magnitudes, kMagnitudeCounts);
  visit_fields(visit, of.sampling);
}
struct RandAugment {
  static constexpr const char* kName = "rand_augment";
  RandAugmentOptions options;
  Sampling sampling;
};
template <class Visitor>
void visit_fields(Visitor& visit, RandAugment& of) {
  visit_fields(visit, of.options);
  visit_fields(visit, of.sampling);
}
struct AutoAugment {
  static constexpr const char* kName = "auto_augment";
  Sampling sampling;
};
template <class Visitor>
void visit_fields(Visitor& visit, AutoAugment& of) {
  visit_fields(visit, of.sampling);
}
struct AugMix {
  static constexpr const char* kName = "aug_mix";
  AugMixOptions options;
  Sampling sampling{.interpolation = Interpolation::bilinear};
};
template <class Visitor>
void visit_fields(Visitor& visit, AugMix& of) {
  visit_fields(visit, of.options);
  visit_fields(visit, of.sampling);
}

/// What a string of timm says.
struct TimmConfig {
  double magnitude = 10;
  int operations = 2;
  double probability = 0.5;
  double deviation = 0;  // above 100: uniform
  double most = 10;      // of the magnitude
  bool increasing = false;
};
/// Errors  std::invalid_argument  not such a string
[[nodiscard]] TimmConfig parse_timm(const std::string& config);

struct TimmRandAugment {
  static constexpr const char* kName = "timm_rand_augment";
  std::string config;
  TimmRandAugmentOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, TimmRandAugment& of) {
  visit.required("config", of.config);
  visit_fields(visit, of.options);
}

using AnyOperation =
    std::variant<Nothing, Brightness, Contrast, Saturation, Hue, ColorJitter, HsvJitter, Grayscale,
                 Solarize, Posterize, Equalize, Autocontrast, Invert, Sharpness, GaussianBlur, Flip,
                 VerticalFlip, Rotate, Shear, Translate, Affine, Perspective, RandomApply,
                 RandomChoice, TrivialAugmentWide, RandAugment, AutoAugment, AugMix,
                 TimmRandAugment>;

struct Operation {
  AnyOperation value;
  int depth = 1;         // operations within operations
  int within = 1;        // this one, and all that are in it
  int most_steps = 0;    // that it draws
  bool moves = false;    // steps that move pixels may be among them
  bool mirrors = false;  // so may flips
  bool mixes = false;    // so may mixtures
  bool counts = false;   // so may steps that something is counted for
  bool colored = false;  // a fill among them has several levels
};

/// For images of one channel a fill has one level.
///
/// Errors  std::invalid_argument  one of them has several and `channels` is 1; begins with `caller`
void check_fills(std::span<const Augmentation> operations, int channels, std::string_view caller);

/// Errors  std::invalid_argument  an option out of range; names the operation and the option
void check(const AnyOperation& operation);

/// Errors  std::invalid_argument  as check(); operations within operations that are too deep or too many
[[nodiscard]] Augmentation make_augmentation(AnyOperation operation);

}  // namespace penstock::augment

namespace penstock::core {

template <>
struct OneOf<Augmentation> {
  using Variant = augment::AnyOperation;
  static constexpr const char* kNoun = "operation";
  static constexpr const char* kExample = R"({"flip": {"probability": 0.5}})";
  static const Variant* get(const Augmentation& augmentation) {
    return &augmentation.operation().value;
  }
  static Augmentation make(Variant operation) {
    return augment::make_augmentation(std::move(operation));
  }
};

}  // namespace penstock::core
