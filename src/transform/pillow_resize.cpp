#include "src/transform/pillow_resize.hpp"

#include <algorithm>

namespace penstock::transform {

namespace {

constexpr int kBits = 22;  // of a weight, behind the point
constexpr std::int32_t kHalf = 1 << (kBits - 1);

std::uint8_t level(std::int32_t sum) noexcept {
  return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255));
}

}  // namespace

FilterLine filter_line(const PillowLine& line) noexcept {
  return {.first = line.first,
          .count = line.count,
          .from = line.from,
          .scale = static_cast<double>(line.count) / static_cast<double>(line.total),
          .outputs = line.outputs};
}

void PillowResize::Axis::plan(const PillowLine& line, ResizeFilter filter) {
  exact.plan(filter_line(line), filter == ResizeFilter::pillow_bilinear ? ResizeFilter::bilinear
                                                                        : ResizeFilter::bicubic);
  weights.clear();
  for (const double weight : exact.weights) {
    const double scaled = weight * (1 << kBits);
    weights.push_back(static_cast<std::int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5));
  }
}

void PillowResize::plan(const PillowLine& horizontal, const PillowLine& vertical, bool mirror,
                        ResizeFilter filter) {
  horizontal_.plan(horizontal, filter);
  vertical_.plan(vertical, filter);
  mirror_ = mirror;
  kept_.resize(static_cast<std::size_t>(vertical_.exact.taps) * row_bytes());
  sums_.resize(row_bytes());
}

PixelRect PillowResize::source() const noexcept {
  return {horizontal_.exact.begin, vertical_.exact.begin,
          horizontal_.exact.end - horizontal_.exact.begin,
          vertical_.exact.end - vertical_.exact.begin};
}

void PillowResize::begin(std::uint8_t* out, std::ptrdiff_t stride) noexcept {
  out_ = out;
  stride_ = stride;
  row_ = 0;
  next_ = vertical_.exact.begin;
}

bool PillowResize::step(jpeg::RowSource& rows) {
  const int end = vertical_.exact.first[static_cast<std::size_t>(row_)] +
                  vertical_.exact.count[static_cast<std::size_t>(row_)];
  if (next_ < end) {
    const std::uint8_t* const* source = rows.rows(next_, end);
    if (source == nullptr) return false;
    for (; next_ < end; ++next_) sum_columns(*source++, kept(next_));
  }
  sum_rows(out_ + row_ * stride_);
  ++row_;
  return true;
}

void PillowResize::sum_columns(const std::uint8_t* row, std::uint8_t* out) const noexcept {
  const int width = static_cast<int>(horizontal_.exact.first.size());
  for (int x = 0; x < width; ++x, out += 3) {
    const int from = mirror_ ? width - 1 - x : x;
    const std::uint8_t* pixel =
        row + static_cast<std::size_t>(horizontal_.exact.first[static_cast<std::size_t>(from)] -
                                       horizontal_.exact.begin) *
                  jpeg::kPixelBytes;
    const std::int32_t* const weights = horizontal_.weights_of(from);
    const int count = horizontal_.exact.count[static_cast<std::size_t>(from)];
    std::int32_t red = kHalf;
    std::int32_t green = kHalf;
    std::int32_t blue = kHalf;
    for (int k = 0; k < count; ++k, pixel += jpeg::kPixelBytes) {
      red += pixel[0] * weights[k];
      green += pixel[1] * weights[k];
      blue += pixel[2] * weights[k];
    }
    out[0] = level(red);
    out[1] = level(green);
    out[2] = level(blue);
  }
}

void PillowResize::sum_rows(std::uint8_t* out) {
  const std::int32_t* const weights = vertical_.weights_of(row_);
  const int first = vertical_.exact.first[static_cast<std::size_t>(row_)];
  const std::size_t bytes = row_bytes();
  std::fill(sums_.begin(), sums_.end(), kHalf);
  for (int k = 0; k < vertical_.exact.count[static_cast<std::size_t>(row_)]; ++k) {
    const std::uint8_t* const row = kept(first + k);
    const std::int32_t weight = weights[k];
    for (std::size_t i = 0; i < bytes; ++i) sums_[i] += row[i] * weight;
  }
  for (std::size_t i = 0; i < bytes; ++i) out[i] = level(sums_[i]);
}

void PillowResize::trim() {
  jpeg::trim(kept_);
  jpeg::trim(sums_);
}

}  // namespace penstock::transform
