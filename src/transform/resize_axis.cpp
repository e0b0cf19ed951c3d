#include "src/transform/resize_axis.hpp"

#include <algorithm>
#include <cmath>

namespace penstock::transform {

double weight_at(double distance, ResizeFilter filter) noexcept {
  if (filter == ResizeFilter::bilinear) return std::max(1.0 - distance, 0.0);
  constexpr double kA = -0.5;
  if (distance < 1) return ((kA + 2) * distance - (kA + 3)) * distance * distance + 1;
  if (distance < 2) return (((distance - 5) * distance + 8) * distance - 4) * kA;
  return 0;
}

void ResizeAxis::plan(int source, double begin, double extent, int output, ResizeFilter filter) {
  const double scale = extent / output;
  const double stretch = std::max(scale, 1.0);
  const double support = (filter == ResizeFilter::bilinear ? 1 : 2) * stretch;
  const double narrow = 1.0 / stretch;
  // A filter is two supports wide; one pixel more can be touched at its ends.
  taps_ = std::min(static_cast<int>(std::ceil(2 * support)) + 1, source);

  const auto outputs = static_cast<std::size_t>(output);
  const auto stride = static_cast<std::size_t>(taps_);
  first_.resize(outputs);
  count_.resize(outputs);
  weights_.assign(outputs * stride, 0);
  exact_.resize(stride);
  begin_ = source;
  end_ = 0;
  for (int i = 0; i < output; ++i) {
    const double center = begin + (i + 0.5) * scale;
    const int low = std::clamp(static_cast<int>(center - support + 0.5), 0, source - 1);
    const int high = std::clamp(static_cast<int>(center + support + 0.5), low + 1, source);
    const int count = std::min(high - low, taps_);
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      const double distance = std::abs((k + low - center + 0.5) * narrow);
      exact_[static_cast<std::size_t>(k)] = weight_at(distance, filter);
      sum += exact_[static_cast<std::size_t>(k)];
    }
    std::int16_t* weights = weights_.data() + static_cast<std::size_t>(i) * stride;
    const double unit = (1 << kWeightBits) / sum;
    double running = 0;
    int given = 0;
    int skipped = 0;  // weightless pixels at the front
    int used = 0;
    for (int k = 0; k < count; ++k) {
      running += exact_[static_cast<std::size_t>(k)];
      const int until =
          k == count - 1 ? 1 << kWeightBits : static_cast<int>(std::floor(running * unit + 0.5));
      const int weight = until - given;
      given = until;
      if (weight == 0 && used == 0) {
        ++skipped;
        continue;
      }
      weights[k - skipped] = static_cast<std::int16_t>(weight);
      if (weight != 0) used = k - skipped + 1;
    }
    first_[static_cast<std::size_t>(i)] = low + skipped;
    count_[static_cast<std::size_t>(i)] = used;
    begin_ = std::min(begin_, low + skipped);
    end_ = std::max(end_, low + skipped + used);
  }
}

}  // namespace penstock::transform
