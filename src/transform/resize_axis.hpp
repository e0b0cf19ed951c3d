// transform/resize_axis: which source pixels make an output pixel, and with what weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <penstock/transform/crop.hpp>

namespace penstock::transform {

/// What a pixel weighs at this distance from the middle of the filter, in pixels; `filter` is bilinear or bicubic.
[[nodiscard]] double weight_at(double distance, ResizeFilter filter) noexcept;

/// Weights add up to this.
inline constexpr int kWeightBits = 14;

/// One direction of a separable resize. A triangle as wide as two source pixels, or as two output
/// pixels where those are larger, stands over the centre of each output pixel; or a cubic as wide
/// as four of them.
///
/// Source  Pillow's precompute_coeffs with BILINEAR and BICUBIC (Keys, a = -1/2), in doubles; then
///         rounded so that the running sums of the weights are right, which makes every output
///         pixel's weights add up exactly.
class ResizeAxis {
 public:
  /// Output pixel i is the part [begin + i*s, begin + (i+1)*s) of a line of `source` pixels, with
  /// s = extent/output. Weights reach beyond the box where there are pixels.
  void plan(int source, double begin, double extent, int output, ResizeFilter filter);

  [[nodiscard]] int output() const noexcept { return static_cast<int>(first_.size()); }
  /// Every output pixel has the source pixels first(i) .. first(i) + taps() - 1; some of the last
  /// may weigh nothing, and may lie behind end().
  [[nodiscard]] int taps() const noexcept { return taps_; }
  [[nodiscard]] int first(int i) const noexcept { return first_[static_cast<std::size_t>(i)]; }
  /// The pixels of i that weigh something.
  [[nodiscard]] int count(int i) const noexcept { return count_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const std::int16_t* weights(int i) const noexcept {
    return weights_.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(taps_);
  }
  /// The source pixels that weigh something anywhere: [begin(), end()).
  [[nodiscard]] int begin() const noexcept { return begin_; }
  [[nodiscard]] int end() const noexcept { return end_; }

 private:
  std::vector<int> first_;
  std::vector<int> count_;
  std::vector<std::int16_t> weights_;
  std::vector<double> exact_;  // one output pixel's
  int taps_ = 0;
  int begin_ = 0;
  int end_ = 0;
};

}  // namespace penstock::transform
