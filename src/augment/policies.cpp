// What the policies draw.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "src/augment/draw.hpp"
#include "src/augment/steps.hpp"
#include "src/augment/variates.hpp"

namespace penstock::augment {

namespace {

enum class Choice : std::uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize,
  invert,
};
using enum Choice;

/// How strong the strongest operations are. Others are as strong in all policies.
struct Strengths {
  double shear = 0.3;  // pixels per pixel
  double shift_x = 0;  // pixels
  double shift_y = 0;
  double rotation = 30;  // degrees
  double enhancement = 0.9;
  int most_bits = 8;
  int fewest_bits = 4;
};

/// One strength of several: 0 is the weakest.
struct Magnitude {
  int which = 0;
  int of = 1;
  [[nodiscard]] double share() const { return static_cast<double>(which) / (of - 1); }
};

double with_random_sign(double value, const Drawing& drawing) {
  return drawing.random.uniform() < 0.5 ? -value : value;
}

/// As the policies of torchvision do it.
void apply_choice(Choice choice, const Magnitude& magnitude, const Strengths& strengths,
                  const Sampled& sampled, const Drawing& drawing) {
  const auto of_strength = [&](double strongest) {
    return with_random_sign(strongest * magnitude.share(), drawing);
  };
  const auto move = [&](const AffineMatrix& matrix) { drawing.add(affine_step(matrix, sampled)); };
  const auto enhance = [&](StepKind kind) {
    drawing.add(factor_step(kind, 1 + of_strength(strengths.enhancement)));
  };
  switch (choice) {
    case identity:
      return;
    case shear_x:
      return move({1, of_strength(strengths.shear), 0, 0, 1, 0});
    case shear_y:
      return move({1, 0, 0, of_strength(strengths.shear), 1, 0});
    case translate_x:
      return move({1, 0, -std::trunc(of_strength(strengths.shift_x)), 0, 1, 0});
    case translate_y:
      return move({1, 0, 0, 0, 1, -std::trunc(of_strength(strengths.shift_y))});
    case rotate:
      return move(rotation_matrix(of_strength(strengths.rotation), drawing.size));
    case brightness:
      return enhance(StepKind::brightness);
    case color:
      return enhance(StepKind::saturation);
    case contrast:
      return enhance(StepKind::contrast);
    case sharpness:
      return enhance(StepKind::sharpness);
    case posterize:
      return drawing.add(posterize_step(static_cast<int>(
          std::nearbyint(strengths.most_bits -
                         magnitude.share() * (strengths.most_bits - strengths.fewest_bits)))));
    case solarize:  // from 255 * (1 - share) on, rounded up
      return drawing.add(solarize_step(
          (255 * (magnitude.of - 1 - magnitude.which) + magnitude.of - 2) / (magnitude.of - 1)));
    case autocontrast:
      return drawing.add(plain_step(StepKind::autocontrast));
    case equalize:
      return drawing.add(plain_step(StepKind::equalize));
    case invert:
      return drawing.add(plain_step(StepKind::invert));
  }
}

// The order of torchvision's spaces.
constexpr std::array kSpace{identity,  shear_x,    shear_y,      translate_x, translate_y,
                            rotate,    brightness, color,        contrast,    sharpness,
                            posterize, solarize,   autocontrast, equalize};
constexpr std::array kMixSpace{shear_x,   shear_y,  translate_x,  translate_y, rotate,
                               posterize, solarize, autocontrast, equalize,    brightness,
                               color,     contrast, sharpness};
constexpr std::size_t kMixSpaceWithoutEnhancements = 9;

Choice drawn_from(std::span<const Choice> space, const Drawing& drawing) {
  return space[drawing.random.below(space.size())];
}

/// Of RandAugment and AutoAugment.
Strengths usual_strengths(ImageSize size) {
  return {.shift_x = 150.0 / 331 * size.width, .shift_y = 150.0 / 331 * size.height};
}

struct PolicyStep {
  Choice choice;
  double probability;
  int magnitude = 0;
};
using SubPolicy = std::array<PolicyStep, 2>;

constexpr int kAutoAugmentMagnitudes = 10;
// Table 9 of the paper.
constexpr std::array<SubPolicy, 25> kImagenet{{
    {{{posterize, 0.4, 8}, {rotate, 0.6, 9}}}, {{{solarize, 0.6, 5}, {autocontrast, 0.6}}},
    {{{equalize, 0.8}, {equalize, 0.6}}},      {{{posterize, 0.6, 7}, {posterize, 0.6, 6}}},
    {{{equalize, 0.4}, {solarize, 0.2, 4}}},   {{{equalize, 0.4}, {rotate, 0.8, 8}}},
    {{{solarize, 0.6, 3}, {equalize, 0.6}}},   {{{posterize, 0.8, 5}, {equalize, 1.0}}},
    {{{rotate, 0.2, 3}, {solarize, 0.6, 8}}},  {{{equalize, 0.6}, {posterize, 0.4, 6}}},
    {{{rotate, 0.8, 8}, {color, 0.4, 0}}},     {{{rotate, 0.4, 9}, {equalize, 0.6}}},
    {{{equalize, 0.0}, {equalize, 0.8}}},      {{{invert, 0.6}, {equalize, 1.0}}},
    {{{color, 0.6, 4}, {contrast, 1.0, 8}}},   {{{rotate, 0.8, 8}, {color, 1.0, 2}}},
    {{{color, 0.8, 8}, {solarize, 0.8, 7}}},   {{{sharpness, 0.4, 7}, {invert, 0.6}}},
    {{{shear_x, 0.6, 5}, {equalize, 1.0}}},    {{{color, 0.4, 0}, {equalize, 0.6}}},
    {{{equalize, 0.4}, {solarize, 0.2, 4}}},   {{{solarize, 0.6, 5}, {autocontrast, 0.6}}},
    {{{invert, 0.6}, {equalize, 1.0}}},        {{{color, 0.6, 4}, {contrast, 1.0, 8}}},
    {{{equalize, 0.8}, {equalize, 0.6}}},
}};

std::uint32_t mix_weight(double share) {
  return static_cast<std::uint32_t>(share * (1 << kMixBits) + 0.5);
}

}  // namespace

void draw_policy(const TrivialAugmentWide& policy, const Drawing& drawing) {
  const Strengths wide{.shear = 0.99,
                       .shift_x = 32,
                       .shift_y = 32,
                       .rotation = 135,
                       .enhancement = 0.99,
                       .fewest_bits = 2};
  const Choice choice = drawn_from(kSpace, drawing);
  const auto which =
      static_cast<int>(drawing.random.below(static_cast<std::uint64_t>(policy.magnitudes)));
  apply_choice(choice, {which, policy.magnitudes}, wide, sampled(policy.sampling), drawing);
}

void draw_policy(const RandAugment& policy, const Drawing& drawing) {
  const Magnitude magnitude{policy.options.magnitude, policy.options.magnitudes};
  for (int k = 0; k < policy.options.operations; ++k)
    apply_choice(drawn_from(kSpace, drawing), magnitude, usual_strengths(drawing.size),
                 sampled(policy.sampling), drawing);
}

void draw_policy(const AutoAugment& policy, const Drawing& drawing) {
  for (const PolicyStep& step : kImagenet[drawing.random.below(kImagenet.size())])
    if (drawing.happens(step.probability))
      apply_choice(step.choice, {step.magnitude, kAutoAugmentMagnitudes},
                   usual_strengths(drawing.size), sampled(policy.sampling), drawing);
}

void draw_policy(const AugMix& policy, const Drawing& drawing) {
  constexpr int kMagnitudes = 10;
  const AugMixOptions& options = policy.options;
  const Strengths strengths{.shift_x = drawing.size.width / 3.0,
                            .shift_y = drawing.size.height / 3.0,
                            .most_bits = 4,
                            .fewest_bits = 0};
  const std::span<const Choice> space = std::span(kMixSpace).first(
      options.all_operations ? kMixSpace.size() : kMixSpaceWithoutEnhancements);
  const double mixed = 1 - beta_variate(options.alpha, drawing.random);
  std::array<double, 16> chains{};
  const auto width = static_cast<std::size_t>(options.width);
  dirichlet_variate(options.alpha, drawing.random, std::span(chains).first(width));
  std::array<std::uint32_t, 16> weights{};
  std::uint32_t rest = 1U << kMixBits;  // the image's own
  for (std::size_t k = 0; k < width; ++k) {
    weights[k] = std::min(rest, mix_weight(mixed * chains[k]));
    rest -= weights[k];
  }
  drawing.add(mix_step(StepKind::mix_begin, rest));
  for (std::size_t k = 0; k < width; ++k) {
    const int depth =
        options.depth > 0 ? options.depth : 1 + static_cast<int>(drawing.random.below(3));
    for (int at = 0; at < depth; ++at) {
      const Choice choice = drawn_from(space, drawing);
      const auto which =
          static_cast<int>(drawing.random.below(static_cast<std::uint64_t>(options.severity)));
      apply_choice(choice, {which, kMagnitudes}, strengths, sampled(policy.sampling), drawing);
    }
    drawing.add(mix_step(StepKind::mix_add, weights[k], k + 1 == width));
  }
}

}  // namespace penstock::augment
