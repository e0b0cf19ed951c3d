#include "src/transform/wide_resize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "src/jpeg/pixels/rows.hpp"
#include "src/transform/color.hpp"
#include "src/transform/nearest.hpp"

namespace penstock::transform {

namespace {

constexpr double kMost = 65535;
constexpr int kWiderBy = 257;  // 255 becomes 65535

double rounded_level(double sum) { return std::clamp(std::floor(sum + 0.5), 0.0, kMost); }

}  // namespace

void WideResize::plan(const Window& window, ResizeFilter filter) {
  const Region& region = window.region;
  const auto plan_axis = [&](FilterAxis& axis, const PillowLine& line, int extent, double from,
                             double length) {
    switch (filter) {
      case ResizeFilter::nearest:
        nearest_pixels(line, pixels_);
        return axis.take(pixels_);
      case ResizeFilter::pillow_bilinear:
        return axis.plan(filter_line(line), ResizeFilter::bilinear);
      case ResizeFilter::bilinear:
      case ResizeFilter::bicubic:
      case ResizeFilter::pillow_bicubic:
        return axis.plan({.count = extent,
                          .begin = from,
                          .scale = length / line.outputs,
                          .outputs = line.outputs},
                         filter);
    }
  };
  plan_axis(horizontal_, window.across, window.image.width, region.x, region.width);
  plan_axis(vertical_, window.down, window.image.height, region.y, region.height);
}

void WideResize::sum_columns(const std::uint16_t* row, int channels, bool rounded,
                             double* out) const {
  for (std::size_t x = 0; x < horizontal_.first.size(); ++x) {
    const double* const weights = horizontal_.weights_of(static_cast<int>(x));
    const std::uint16_t* const first = row + std::ptrdiff_t{horizontal_.first[x]} * channels;
    for (int c = 0; c < channels; ++c) {
      double sum = 0;
      for (int k = 0; k < horizontal_.count[x]; ++k)
        sum += first[std::ptrdiff_t{k} * channels + c] * weights[k];
      *out++ = rounded ? rounded_level(sum) : sum;
    }
  }
}

void WideResize::run(const WideImage& image, const Window& window, ResizeFilter filter, Color fill,
                     std::uint16_t* out) {
  plan(window, filter);
  const int channels = image.channels;
  const auto levels = levels_of(fill);
  const std::ptrdiff_t out_stride = std::ptrdiff_t{window.sample.width} * channels;
  for (std::ptrdiff_t i = 0; i < window.sample.height * out_stride; ++i)
    out[i] = static_cast<std::uint16_t>(kWiderBy * levels[static_cast<std::size_t>(i % channels)]);

  const PixelRect& place = window.place;
  const auto line = static_cast<std::size_t>(place.width) * static_cast<std::size_t>(channels);
  const auto taps = static_cast<std::size_t>(vertical_.taps);
  kept_.resize(taps * line);
  const auto kept = [&](int row) {
    return kept_.data() + static_cast<std::size_t>(row) % taps * line;
  };
  int next = vertical_.begin;  // row of the image
  for (int y = 0; y < place.height; ++y) {
    const auto at = static_cast<std::size_t>(y);
    const int first = vertical_.first[at];
    const int count = vertical_.count[at];
    for (next = std::max(next, first); next < first + count; ++next)
      sum_columns(image.levels + std::ptrdiff_t{next} * window.image.width * channels, channels,
                  filter == ResizeFilter::pillow_bilinear, kept(next));
    const double* const weights = vertical_.weights_of(y);
    const int left = window.flipped ? window.sample.width - place.x - place.width : place.x;
    for (int x = 0; x < place.width; ++x) {
      const int to = left + (window.flipped ? place.width - 1 - x : x);
      for (int c = 0; c < channels; ++c) {
        double sum = 0;
        for (int k = 0; k < count; ++k)
          sum += kept(first + k)[std::ptrdiff_t{x} * channels + c] * weights[k];
        out[(place.y + y) * out_stride + std::ptrdiff_t{to} * channels + c] =
            static_cast<std::uint16_t>(rounded_level(sum));
      }
    }
  }
}

void WideResize::trim() { jpeg::trim(kept_); }

void check_wide_filter(std::string_view caller, ResizeFilter filter) {
  if (filter == ResizeFilter::pillow_bicubic)
    throw std::invalid_argument(
        fmt::format("{}: pillow_bicubic is not for 16 bits, where Pillow's own wraps around beyond "
                    "65535: take bicubic, or pillow_bilinear",
                    caller));
}

}  // namespace penstock::transform
