// augment/steps: steps of numbers as people give them.
#pragma once

#include <array>
#include <cstdint>

#include <penstock/augment/augmentation.hpp>
#include <penstock/core/tensor.hpp>

#include "src/augment/step.hpp"

namespace penstock::augment {

/// Brightness, contrast, saturation or sharpness; cut to [0, kMostFactor].
[[nodiscard]] Step factor_step(StepKind kind, double factor);
/// A part of the circle of hues.
[[nodiscard]] Step hue_step(double turn);
/// Likewise, with factors of saturation and value, which are cut to [0, kMostFactor].
[[nodiscard]] Step hsv_step(double turn, double saturation, double value);
/// Autocontrast, equalize, invert, grayscale, flip, vertical_flip.
[[nodiscard]] Step plain_step(StepKind kind);
/// Inverts levels from `threshold` on, 0 to 256.
[[nodiscard]] Step solarize_step(int threshold);
[[nodiscard]] Step solarize_add_step(int added, int threshold);
/// Keeps that many high bits, 0 to 8.
[[nodiscard]] Step posterize_step(int bits);
/// Weights are e^(-x^2 / (2 sigma^2)), rounded so that they add up to one.
[[nodiscard]] Step blur_step(int kernel_size, double sigma);
/// Weights from 0 to 1.
[[nodiscard]] Step mix_step(StepKind kind, std::uint32_t weight, bool is_last = false);

/// How pixels are read, with the filling of a step.
struct Sampled {
  Sampler sampler = Sampler::nearest;
  std::array<std::uint8_t, 3> fill{};
};
[[nodiscard]] Sampled sampled(const Sampling& sampling);

/// From places of the result to those of the image, in pixels: u = m[0] x + m[1] y + m[2], v = m[3] x + m[4] y + m[5].
using AffineMatrix = std::array<double, 6>;
[[nodiscard]] Step affine_step(const AffineMatrix& matrix, const Sampled& sampled);

struct AffineNumbers {
  double degrees = 0;  // clockwise
  double shift_x = 0;  // pixels
  double shift_y = 0;
  double scale = 1;
  double shear_x = 0;  // degrees
  double shear_y = 0;
};
/// About the middle of the image.
///
/// Source  torchvision's _get_inverse_affine_matrix
[[nodiscard]] AffineMatrix affine_matrix(const AffineNumbers& numbers, ImageSize size);
/// Counterclockwise, as torchvision's rotate.
[[nodiscard]] AffineMatrix rotation_matrix(double degrees, ImageSize size);

struct Corner {
  double x = 0;
  double y = 0;
};
/// Takes the image's corners (upper left, then clockwise; of the outermost pixels) to these.
///
/// Source  torchvision's _get_perspective_coeffs
[[nodiscard]] Step perspective_step(const std::array<Corner, 4>& corners, ImageSize size,
                                    const Sampled& sampled);

}  // namespace penstock::augment
