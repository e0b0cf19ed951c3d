#include "src/transform/filter_axis.hpp"

#include <algorithm>
#include <cmath>

#include "src/transform/resize_axis.hpp"

namespace penstock::transform {

void FilterAxis::plan(const FilterLine& line, ResizeFilter filter) {
  const double stretch = std::max(line.scale, 1.0);
  const double support = (filter == ResizeFilter::bilinear ? 1.0 : 2.0) * stretch;
  const double narrow = 1.0 / stretch;
  taps = static_cast<int>(std::min(std::ceil(support) * 2 + 1, static_cast<double>(line.count)));
  first.clear();
  count.clear();
  weights.assign(static_cast<std::size_t>(line.outputs) * static_cast<std::size_t>(taps), 0);
  begin = line.first + line.count;
  end = line.first;
  for (int i = 0; i < line.outputs; ++i) {
    const double center = line.begin + (static_cast<double>(line.from + i) + 0.5) * line.scale;
    const int low = std::clamp(static_cast<int>(center - support + 0.5), 0, line.count - 1);
    const int high = std::clamp(static_cast<int>(center + support + 0.5), low + 1,
                                std::min(low + taps, line.count));
    double* const to =
        weights.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(taps);
    double sum = 0;
    for (int k = 0; k < high - low; ++k) {
      to[k] = weight_at(std::abs((k + low - center + 0.5) * narrow), filter);
      sum += to[k];
    }
    for (int k = 0; k < high - low; ++k)
      if (sum != 0) to[k] /= sum;
    first.push_back(line.first + low);
    count.push_back(high - low);
    begin = std::min(begin, line.first + low);
    end = std::max(end, line.first + high);
  }
}

void FilterAxis::take(const std::vector<int>& pixels) {
  taps = 1;
  first = pixels;
  count.assign(pixels.size(), 1);
  weights.assign(pixels.size(), 1);
  begin = pixels.front();
  end = pixels.back() + 1;
}

}  // namespace penstock::transform
