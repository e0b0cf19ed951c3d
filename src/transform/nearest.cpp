#include "src/transform/nearest.hpp"

#include <algorithm>

namespace penstock::transform {

namespace {

constexpr std::int64_t kAddedUp = std::int64_t{1} << 20;

void plan_side(const NearestResize::Side& side, std::vector<int>& pixels) {
  nearest_pixels(side.line, pixels);
  if (!side.turned) return;
  for (int& pixel : pixels) pixel = side.extent - 1 - pixel;
  std::ranges::reverse(pixels);
}

}  // namespace

void nearest_pixels(const PillowLine& line, std::vector<int>& pixels) {
  pixels.clear();
  const double scale = static_cast<double>(line.count) / static_cast<double>(line.total);
  const std::int64_t begin = std::max<std::int64_t>(line.from - kAddedUp, 0);
  double middle = static_cast<double>(begin) * scale + scale * 0.5;
  for (std::int64_t output = begin; output < line.from + line.outputs; ++output) {
    if (output >= line.from)
      pixels.push_back(line.first + std::min(static_cast<int>(middle), line.count - 1));
    middle += scale;
  }
}

void NearestResize::plan(const Side& horizontal, const Side& vertical, bool mirror) {
  plan_side(horizontal, columns_);
  plan_side(vertical, rows_);
  mirror_ = mirror;
}

PixelRect NearestResize::source() const noexcept {
  return {columns_.front(), rows_.front(), columns_.back() + 1 - columns_.front(),
          rows_.back() + 1 - rows_.front()};
}

void NearestResize::begin(std::uint8_t* out, std::ptrdiff_t stride) noexcept {
  out_ = out;
  stride_ = stride;
  row_ = 0;
}

bool NearestResize::step(jpeg::RowSource& rows) {
  const int row = rows_[row_];
  const std::uint8_t* const* const source = rows.rows(row, row + 1);
  if (source == nullptr) return false;
  constexpr std::ptrdiff_t kRgb = 3;
  std::uint8_t* out = out_ + static_cast<std::ptrdiff_t>(row_) * stride_;
  std::ptrdiff_t forward = kRgb;
  if (mirror_) {
    out += (std::ssize(columns_) - 1) * kRgb;
    forward = -kRgb;
  }
  for (const int column : columns_) {
    std::copy_n(*source + static_cast<std::size_t>(column - columns_.front()) * jpeg::kPixelBytes,
                kRgb, out);
    out += forward;
  }
  ++row_;
  return true;
}

}  // namespace penstock::transform
