#include "src/augment/draw.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "src/augment/steps.hpp"

namespace penstock::augment {

namespace {

double rounded(double value) { return std::floor(value + 0.5); }

struct Draw {
  const Drawing& drawing;

  void operator()(const Nothing&) const {}
  void operator()(const Brightness& of) const { add_factor(StepKind::brightness, of.range); }
  void operator()(const Contrast& of) const { add_factor(StepKind::contrast, of.range); }
  void operator()(const Saturation& of) const { add_factor(StepKind::saturation, of.range); }
  void operator()(const Sharpness& of) const { add_factor(StepKind::sharpness, of.range); }
  void operator()(const Hue& of) const { drawing.add(hue_step(drawing.from(of.range))); }
  void operator()(const Grayscale&) const { drawing.add(plain_step(StepKind::grayscale)); }
  void operator()(const Equalize&) const { drawing.add(plain_step(StepKind::equalize)); }
  void operator()(const Autocontrast&) const { drawing.add(plain_step(StepKind::autocontrast)); }
  void operator()(const Invert&) const { drawing.add(plain_step(StepKind::invert)); }
  void operator()(const Solarize& of) const { drawing.add(solarize_step(of.threshold)); }
  void operator()(const Posterize& of) const { drawing.add(posterize_step(of.bits)); }
  void operator()(const GaussianBlur& of) const {
    drawing.add(blur_step(of.kernel_size, drawing.from(of.sigma)));
  }
  void operator()(const Flip& of) const {
    if (drawing.happens(of.probability)) drawing.add(plain_step(StepKind::flip));
  }
  void operator()(const VerticalFlip& of) const {
    if (drawing.happens(of.probability)) drawing.add(plain_step(StepKind::vertical_flip));
  }

  void operator()(const ColorJitter& of) const {
    std::array<int, 4> order{0, 1, 2, 3};
    for (std::size_t left = order.size(); left > 1; --left)
      std::swap(order[left - 1], order[drawing.random.below(left)]);
    const Range still{1, 1};
    const Range no_turn{0, 0};
    for (const int which : order) {
      if (which == 0 && of.options.brightness != still)
        add_factor(StepKind::brightness, of.options.brightness);
      if (which == 1 && of.options.contrast != still)
        add_factor(StepKind::contrast, of.options.contrast);
      if (which == 2 && of.options.saturation != still)
        add_factor(StepKind::saturation, of.options.saturation);
      if (which == 3 && of.options.hue != no_turn)
        drawing.add(hue_step(drawing.from(of.options.hue)));
    }
  }

  void operator()(const HsvJitter& of) const {
    const auto [hue, saturation, value] = of.options;
    if (hue == 0 && saturation == 0 && value == 0) return;
    const double turn = drawing.from({-hue, hue});
    const double saturation_factor = drawing.from({1 - saturation, 1 + saturation});
    drawing.add(hsv_step(turn, saturation_factor, drawing.from({1 - value, 1 + value})));
  }

  void operator()(const Rotate& of) const {
    add_affine(rotation_matrix(drawing.from(of.degrees), drawing.size), of.sampling);
  }
  void operator()(const Shear& of) const {
    AffineNumbers numbers;
    numbers.shear_x = drawing.from(of.x);
    numbers.shear_y = drawing.from(of.y);
    add_affine(affine_matrix(numbers, drawing.size), of.sampling);
  }
  void operator()(const Translate& of) const {
    AffineNumbers numbers;
    numbers.shift_x = rounded(drawing.from(of.x) * drawing.size.width);
    numbers.shift_y = rounded(drawing.from(of.y) * drawing.size.height);
    add_affine(affine_matrix(numbers, drawing.size), of.sampling);
  }
  void operator()(const Affine& of) const {
    AffineNumbers numbers;
    numbers.degrees = drawing.from(of.options.degrees);
    numbers.shift_x = rounded(drawing.from(of.options.translate_x) * drawing.size.width);
    numbers.shift_y = rounded(drawing.from(of.options.translate_y) * drawing.size.height);
    numbers.scale = drawing.from(of.options.scale);
    numbers.shear_x = drawing.from(of.options.shear_x);
    numbers.shear_y = drawing.from(of.options.shear_y);
    add_affine(affine_matrix(numbers, drawing.size), of.sampling);
  }
  void operator()(const Perspective& of) const {
    const auto [height, width] = drawing.size;
    // Up to so many pixels inwards, both ends included.
    const auto inwards = [&](int extent) {
      const auto most = static_cast<std::uint64_t>(of.distortion * (extent / 2));
      return static_cast<double>(drawing.random.below(most + 1));
    };
    std::array<Corner, 4> corners;
    for (std::size_t k = 0; k < corners.size(); ++k) {
      const double x = inwards(width);
      const double y = inwards(height);
      corners[k].x = k == 1 || k == 2 ? width - 1 - x : x;
      corners[k].y = k >= 2 ? height - 1 - y : y;
    }
    if (width > 1 && height > 1)
      drawing.add(perspective_step(corners, drawing.size, sampled(of.sampling)));
  }

  void operator()(const RandomApply& of) const {
    if (!drawing.happens(of.probability)) return;
    for (const Augmentation& operation : of.operations) draw_one(operation);
  }
  void operator()(const RandomChoice& of) const {
    draw_one(of.operations[of.weights.empty() ? drawing.random.below(of.operations.size())
                                              : weighted(of.weights)]);
  }
  void operator()(const TrivialAugmentWide& of) const { draw_policy(of, drawing); }
  void operator()(const RandAugment& of) const { draw_policy(of, drawing); }
  void operator()(const AutoAugment& of) const { draw_policy(of, drawing); }
  void operator()(const AugMix& of) const { draw_policy(of, drawing); }
  void operator()(const TimmRandAugment& of) const { draw_policy(of, drawing); }

  void draw_one(const Augmentation& operation) const {
    std::visit(*this, operation.operation().value);
  }

 private:
  void add_factor(StepKind kind, const Range& range) const {
    drawing.add(factor_step(kind, drawing.from(range)));
  }
  void add_affine(const AffineMatrix& matrix, const Sampling& sampling) const {
    drawing.add(affine_step(matrix, sampled(sampling)));
  }
  [[nodiscard]] std::size_t weighted(const std::vector<double>& weights) const {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    double place = drawing.random.uniform() * sum;
    std::size_t last = 0;
    for (std::size_t at = 0; at < weights.size(); ++at) {
      if (weights[at] == 0) continue;
      if (place < weights[at]) return at;
      place -= weights[at];
      last = at;
    }
    return last;
  }
};

}  // namespace

void draw(std::span<const Augmentation> operations, ImageSize size, Random& random,
          Program& program) {
  const Drawing drawing{size, random, program};
  for (const Augmentation& operation : operations) Draw{drawing}.draw_one(operation);
}

}  // namespace penstock::augment
