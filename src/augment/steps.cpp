#include "src/augment/steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "src/augment/numbers.hpp"
#include "src/core/exact_math.hpp"

namespace penstock::augment {

namespace {

static_assert(kFactors.max == kMostFactor);

std::int64_t fixed_point(double value, int bits) {
  return static_cast<std::int64_t>(
      std::floor(value * static_cast<double>(std::int64_t{1} << bits) + 0.5));
}

std::int64_t fixed_factor(double factor) {
  return fixed_point(std::clamp(factor, 0.0, static_cast<double>(kMostFactor)), kFactorBits);
}

/// A part of the circle, in sextants from 0 to below 6.
std::int64_t fixed_turn(double turn, int bits) {
  const std::int64_t circle = std::int64_t{6} << bits;
  const std::int64_t sextants = fixed_point(turn * 6, bits) % circle;
  return sextants < 0 ? sextants + circle : sextants;
}

Step step_of(StepKind kind, std::int64_t value) {
  Step step;
  step.kind = kind;
  step.values[0] = value;
  return step;
}

Step geometric_step(StepKind kind, const Sampled& sampled) {
  Step step;
  step.kind = kind;
  step.sampler = sampled.sampler;
  std::ranges::copy(sampled.fill, step.fill);
  return step;
}

constexpr std::size_t kUnknowns = 8;
using Row = std::array<double, kUnknowns + 1>;  // coefficients and the right side

// Gauss, with the largest pivot of a column.
std::array<double, kUnknowns> solve(std::array<Row, kUnknowns> rows) {
  for (std::size_t k = 0; k < kUnknowns; ++k) {
    const auto pivot = std::max_element(
        rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end(),
        [k](const Row& a, const Row& b) { return std::abs(a[k]) < std::abs(b[k]); });
    std::swap(rows[k], *pivot);
    for (std::size_t row = k + 1; row < kUnknowns; ++row) {
      const double factor = rows[row][k] / rows[k][k];
      for (std::size_t column = k; column <= kUnknowns; ++column)
        rows[row][column] -= factor * rows[k][column];
    }
  }
  std::array<double, kUnknowns> solution{};
  for (std::size_t k = kUnknowns; k-- > 0;) {
    double right = rows[k][kUnknowns];
    for (std::size_t column = k + 1; column < kUnknowns; ++column)
      right -= rows[k][column] * solution[column];
    solution[k] = right / rows[k][k];
  }
  return solution;
}

}  // namespace

Step factor_step(StepKind kind, double factor) { return step_of(kind, fixed_factor(factor)); }

Step hue_step(double turn) { return step_of(StepKind::hue, fixed_turn(turn, kFactorBits)); }

Step hsv_step(double turn, double saturation, double value) {
  Step step = step_of(StepKind::hsv, fixed_turn(turn, kHsvTurnBits));
  step.values[1] = fixed_factor(saturation);
  step.values[2] = fixed_factor(value);
  return step;
}

Step plain_step(StepKind kind) { return step_of(kind, 0); }

Step solarize_step(int threshold) { return step_of(StepKind::solarize, threshold); }

Step solarize_add_step(int added, int threshold) {
  Step step = step_of(StepKind::solarize_add, added);
  step.values[1] = threshold;
  return step;
}

Step posterize_step(int bits) {
  return step_of(StepKind::posterize, (0xFF << (8 - std::clamp(bits, 0, 8))) & 0xFF);
}

Step blur_step(int kernel_size, double sigma) {
  const int reach = kernel_size / 2;
  std::array<double, kBlurWeights> shares{};
  double sum = 0;
  for (int k = 0; k <= reach; ++k) {
    const double distance = k / sigma;
    shares[static_cast<std::size_t>(k)] = core::exact_exp(distance * distance / -2);
    sum += shares[static_cast<std::size_t>(k)] * (k == 0 ? 1 : 2);
  }
  Step step = step_of(StepKind::gaussian_blur, 0);
  step.count = static_cast<std::uint8_t>(reach + 1);
  std::fill(std::begin(step.weights), std::end(step.weights), std::int16_t{0});
  std::int64_t rest = std::int64_t{1} << kBlurBits;
  for (int k = reach; k > 0; --k) {
    const std::int64_t weight = fixed_point(shares[static_cast<std::size_t>(k)] / sum, kBlurBits);
    step.weights[k] = static_cast<std::int16_t>(weight);
    rest -= 2 * weight;
  }
  step.weights[0] = static_cast<std::int16_t>(rest);
  return step;
}

Step mix_step(StepKind kind, std::uint32_t weight, bool is_last) {
  Step step = step_of(kind, weight);
  step.values[1] = is_last ? 1 : 0;
  return step;
}

Sampled sampled(const Sampling& sampling) {
  switch (sampling.interpolation) {
    case Interpolation::nearest:
      return {Sampler::nearest, sampling.fill};
    case Interpolation::bilinear:
      return {Sampler::bilinear, sampling.fill};
    case Interpolation::bicubic:
      return {Sampler::pillow_bicubic, sampling.fill};
  }
  return {};
}

Step affine_step(const AffineMatrix& matrix, const Sampled& sampled) {
  Step step = geometric_step(StepKind::affine, sampled);
  for (std::size_t row = 0; row < 6; row += 3) {
    // A pixel's middle is half of 2x + 1.
    step.values[row] = fixed_point(matrix[row] / 2, kCoordinateBits);
    step.values[row + 1] = fixed_point(matrix[row + 1] / 2, kCoordinateBits);
    step.values[row + 2] = fixed_point(matrix[row + 2], kCoordinateBits);
  }
  return step;
}

AffineMatrix affine_matrix(const AffineNumbers& numbers, ImageSize size) {
  const auto [sine_x, cosine_x] = core::exact_sine_cosine(numbers.shear_x);
  const auto [sine_y, cosine_y] = core::exact_sine_cosine(numbers.shear_y);
  const auto [sine, cosine] = core::exact_sine_cosine(numbers.degrees);
  const auto [sine_less, cosine_less] = core::exact_sine_cosine(numbers.degrees - numbers.shear_y);
  const double tangent = sine_x / cosine_x;
  const double a = cosine_less / cosine_y;
  const double b = -cosine_less * tangent / cosine_y - sine;
  const double c = sine_less / cosine_y;
  const double d = -sine_less * tangent / cosine_y + cosine;
  const double middle_x = size.width / 2.0;
  const double middle_y = size.height / 2.0;
  AffineMatrix matrix{d / numbers.scale,  -b / numbers.scale, 0,
                      -c / numbers.scale, a / numbers.scale,  0};
  for (std::size_t row = 0; row < 6; row += 3)
    matrix[row + 2] = (row == 0 ? middle_x : middle_y) -
                      matrix[row] * (middle_x + numbers.shift_x) -
                      matrix[row + 1] * (middle_y + numbers.shift_y);
  return matrix;
}

AffineMatrix rotation_matrix(double degrees, ImageSize size) {
  return affine_matrix({.degrees = -degrees}, size);
}

Step perspective_step(const std::array<Corner, 4>& corners, ImageSize size,
                      const Sampled& sampled) {
  const double right = size.width - 1;
  const double lower = size.height - 1;
  const std::array<Corner, 4> own{{{0, 0}, {right, 0}, {right, lower}, {0, lower}}};
  std::array<Row, kUnknowns> rows{};
  for (std::size_t k = 0; k < 4; ++k) {
    const auto [x, y] = corners[k];
    const auto [u, v] = own[k];
    rows[2 * k] = {x, y, 1, 0, 0, 0, -u * x, -u * y, u};
    rows[2 * k + 1] = {0, 0, 0, x, y, 1, -v * x, -v * y, v};
  }
  const std::array<double, kUnknowns> solved = solve(rows);
  Step step = geometric_step(StepKind::perspective, sampled);
  for (std::size_t k = 0; k < kUnknowns; ++k) {
    // Corners of small images may lie on one line, and then nothing is solved.
    const double most = k < 6 ? 1 << 15 : 1 << 5;
    const double value = std::isfinite(solved[k]) ? std::clamp(solved[k], -most, most) : 0;
    // A pixel's middle is half of 2x + 1.
    step.values[k] = fixed_point(k == 2 || k == 5 ? value : value / 2,
                                 k < 6 ? kNumeratorBits : kDenominatorBits);
  }
  return step;
}

}  // namespace penstock::augment
