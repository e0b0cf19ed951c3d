#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/augment/augmentation.hpp>

#include "src/augment/operations.hpp"
#include "src/core/call_text.hpp"
#include "src/core/json_fields.hpp"

namespace penstock {

namespace {

constexpr double kMostStrength = 7;

constexpr int kDeepest = 16;
constexpr int kMostWithin = 4096;

Augmentation make(augment::AnyOperation operation) {
  return augment::make_augmentation(std::move(operation));
}

// How many steps an operation draws at most.
struct MostSteps {
  template <class T>
  int operator()(const T&) const {
    return 1;
  }
  int operator()(const augment::Nothing&) const { return 0; }
  int operator()(const augment::ColorJitter&) const { return 4; }
  int operator()(const augment::RandomApply& of) const {
    int sum = 0;
    for (const Augmentation& part : of.operations) sum += part.operation().most_steps;
    return sum;
  }
  int operator()(const augment::RandomChoice& of) const {
    int most = 0;
    for (const Augmentation& part : of.operations)
      most = std::max(most, part.operation().most_steps);
    return most;
  }
  int operator()(const augment::RandAugment& of) const { return of.options.operations; }
  int operator()(const augment::AutoAugment&) const { return 2; }
  int operator()(const augment::AugMix& of) const {  // each chain, with what adds it to the mixture
    constexpr int kDeepestByChance = 3;
    const int depth = of.options.depth > 0 ? of.options.depth : kDeepestByChance;
    return 1 + of.options.width * (depth + 1);
  }
  int operator()(const augment::TimmRandAugment& of) const {
    return augment::parse_timm(of.config).operations;
  }
};

// Whether an operation fills what lies outside by several levels.
struct HasColor {
  template <class T>
  bool operator()(const T& of) const {
    if constexpr (requires { of.sampling; }) return is_color(of.sampling.fill);
    if constexpr (requires { of.options.fill; }) return is_color(of.options.fill);
    return false;
  }
  static bool is_color(const std::array<std::uint8_t, 3>& fill) {
    return fill[1] != fill[0] || fill[2] != fill[0];
  }
};

template <class... T>
bool is_any_of(const augment::AnyOperation& operation) {
  return (std::holds_alternative<T>(operation) || ...);
}

// The operations that one is made of.
std::span<const Augmentation> parts_of(const augment::AnyOperation& operation) {
  if (const auto* apply = std::get_if<augment::RandomApply>(&operation)) return apply->operations;
  if (const auto* choice = std::get_if<augment::RandomChoice>(&operation))
    return choice->operations;
  return {};
}

}  // namespace

Augmentation augment::make_augmentation(AnyOperation operation) {
  check(operation);
  Operation made{.value = std::move(operation)};
  made.most_steps = std::visit(MostSteps{}, made.value);
  made.moves =
      is_any_of<Flip, VerticalFlip, Rotate, Shear, Translate, Affine, Perspective,
                TrivialAugmentWide, RandAugment, AutoAugment, AugMix, TimmRandAugment>(made.value);
  made.mirrors = is_any_of<Flip, VerticalFlip>(made.value);
  made.mixes = std::holds_alternative<AugMix>(made.value);
  made.colored = std::visit(HasColor{}, made.value);
  made.counts = is_any_of<Contrast, Autocontrast, Equalize, ColorJitter, TrivialAugmentWide,
                          RandAugment, AutoAugment, AugMix, TimmRandAugment>(made.value);
  for (const Augmentation& part : parts_of(made.value)) {
    made.moves |= part.operation().moves;
    made.mirrors |= part.operation().mirrors;
    made.mixes |= part.operation().mixes;
    made.counts |= part.operation().counts;
    made.colored |= part.operation().colored;
    made.depth = std::max(made.depth, 1 + part.operation().depth);
    made.within += part.operation().within;
    if (made.depth > kDeepest || made.within > kMostWithin)
      throw std::invalid_argument(fmt::format(
          "random_apply, random_choice: operations lie at most {} deep in each other, and are "
          "at most {} together",
          kDeepest, kMostWithin));
  }
  return Augmentation(std::make_shared<const Operation>(std::move(made)));
}

void augment::check_fills(std::span<const Augmentation> operations, int channels,
                          std::string_view caller) {
  for (const Augmentation& operation : operations)
    if (channels == 1 && operation.operation().colored)
      throw std::invalid_argument(
          fmt::format("{}: images of one channel cannot have a fill of three levels, as of {}: "
                      "give one level",
                      caller, operation.to_string()));
}

Augmentation::Augmentation() : Augmentation(make(augment::Nothing{})) {}

std::string Augmentation::to_string() const { return core::value_text(*this); }

std::string Augmentation::to_json() const { return core::dump_json(core::write_json(*this)); }

Augmentation Augmentation::from_json(std::string_view json) {
  constexpr const char* kWhere = "the operation";
  Augmentation augmentation;
  core::read_json(core::parse_json(json, kWhere), augmentation, kWhere);
  return augmentation;
}

bool operator==(const Augmentation& a, const Augmentation& b) {
  return a.operation_ == b.operation_ || core::write_json(a) == core::write_json(b);
}

Range factors(double strength) {
  if (!(strength >= 0 && strength <= kMostStrength))
    throw std::invalid_argument(
        fmt::format("factors: a strength is from 0 to {}, found {}", kMostStrength, strength));
  return {std::max(0.0, 1 - strength), 1 + strength};
}

Augmentation brightness(Range factor) { return make(augment::Brightness{factor}); }
Augmentation contrast(Range factor) { return make(augment::Contrast{factor}); }
Augmentation saturation(Range factor) { return make(augment::Saturation{factor}); }
Augmentation hue(Range turn) { return make(augment::Hue{turn}); }
Augmentation sharpness(Range factor) { return make(augment::Sharpness{factor}); }
Augmentation color_jitter(ColorJitterOptions options) {
  return make(augment::ColorJitter{options});
}
Augmentation hsv_jitter(HsvJitterOptions options) { return make(augment::HsvJitter{options}); }
Augmentation grayscale() { return make(augment::Grayscale{}); }
Augmentation solarize(int threshold) { return make(augment::Solarize{threshold}); }
Augmentation posterize(int bits) { return make(augment::Posterize{bits}); }
Augmentation equalize() { return make(augment::Equalize{}); }
Augmentation autocontrast() { return make(augment::Autocontrast{}); }
Augmentation invert() { return make(augment::Invert{}); }
Augmentation gaussian_blur(int kernel_size, Range sigma) {
  return make(augment::GaussianBlur{kernel_size, sigma});
}
Augmentation flip(double probability) { return make(augment::Flip{probability}); }
Augmentation vertical_flip(double probability) { return make(augment::VerticalFlip{probability}); }
Augmentation rotate(Range degrees, Sampling sampling) {
  return make(augment::Rotate{degrees, sampling});
}
Augmentation shear(Range x, Range y, Sampling sampling) {
  return make(augment::Shear{x, y, sampling});
}
Augmentation translate(Range x, Range y, Sampling sampling) {
  return make(augment::Translate{x, y, sampling});
}
Augmentation affine(AffineOptions options, Sampling sampling) {
  return make(augment::Affine{options, sampling});
}
Augmentation perspective(double distortion, Sampling sampling) {
  return make(augment::Perspective{distortion, sampling});
}
Augmentation random_apply(double probability, std::vector<Augmentation> operations) {
  return make(augment::RandomApply{probability, std::move(operations)});
}
Augmentation random_choice(std::vector<Augmentation> operations, std::vector<double> weights) {
  return make(augment::RandomChoice{std::move(operations), std::move(weights)});
}

Augmentation trivial_augment_wide(int magnitudes, Sampling sampling) {
  return make(augment::TrivialAugmentWide{magnitudes, sampling});
}
Augmentation rand_augment(RandAugmentOptions options, Sampling sampling) {
  return make(augment::RandAugment{options, sampling});
}
Augmentation auto_augment(Sampling sampling) { return make(augment::AutoAugment{sampling}); }
Augmentation aug_mix(AugMixOptions options, Sampling sampling) {
  return make(augment::AugMix{options, sampling});
}
Augmentation timm_rand_augment(std::string config, TimmRandAugmentOptions options) {
  return make(augment::TimmRandAugment{std::move(config), options});
}

Augmentation three_augment(ThreeAugmentOptions options) {
  constexpr int kThreshold = 128;
  const Range strength = factors(options.color_jitter);
  return random_apply(
      1, {random_choice({grayscale(), solarize(kThreshold), gaussian_blur(options.kernel_size)}),
          color_jitter({.brightness = strength, .contrast = strength, .saturation = strength})});
}

}  // namespace penstock
