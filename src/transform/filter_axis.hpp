// transform/filter_axis: the exact weights of one direction of a resize, as Pillow computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <penstock/transform/crop.hpp>

namespace penstock::transform {

/// Of the pixels [first, first + count) of a line, which alone are read: output i has its middle at
/// begin + (from + i + 0.5) * scale of them.
struct FilterLine {
  int first = 0;
  int count = 0;
  double begin = 0;
  std::int64_t from = 0;
  double scale = 1;
  int outputs = 0;
};

/// Source  Pillow's precompute_coeffs with BILINEAR and BICUBIC, in doubles.
struct FilterAxis {
  std::vector<int> first;  ///< of each output: its first pixel, and how many it has
  std::vector<int> count;
  std::vector<double> weights;  ///< taps for each output; they add up to 1
  int taps = 0;
  int begin = 0;  ///< all pixels that are read: [begin, end)
  int end = 0;

  /// `filter` is bilinear or bicubic.
  void plan(const FilterLine& line, ResizeFilter filter);
  /// One pixel for each output, as it is; they do not decrease.
  void take(const std::vector<int>& pixels);

  [[nodiscard]] const double* weights_of(int i) const noexcept {
    return weights.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(taps);
  }
};

}  // namespace penstock::transform
