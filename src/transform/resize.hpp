// transform/resize: a part of an image at another size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hwy/aligned_allocator.h>

#include <penstock/transform/crop.hpp>

#include "src/jpeg/pixels/rows.hpp"
#include "src/transform/resize_axis.hpp"
#include "src/transform/row_resize.hpp"

namespace penstock::transform {

/// Antialiased resize, vertically and then horizontally, in integers: 14-bit weights, 7 bits of
/// fraction between the directions (6 with bicubic), halves rounded up. The same bytes on every
/// CPU.
///
/// Threads  one caller at a time; keeps scratch memory between calls.
class Resize final : public RowResize {
 public:
  /// `filter` is bilinear or bicubic. The box lies within the source, and no extent is empty.
  void plan(int source_width, int source_height, const Region& box, ImageSize output, bool mirror,
            ResizeFilter filter = ResizeFilter::bilinear);

  /// The box and what the filter reaches around it.
  [[nodiscard]] PixelRect source() const noexcept override;
  [[nodiscard]] int row_span() const noexcept override { return vertical_.taps(); }

  void begin(std::uint8_t* out, std::ptrdiff_t stride) noexcept override;
  [[nodiscard]] bool is_done() const noexcept override { return step_ == steps_; }
  [[nodiscard]] int next_row() const noexcept override { return vertical_.first(row_of_step()); }
  [[nodiscard]] bool step(jpeg::RowSource& rows) override;
  void trim() override;

 private:
  void plan_pairs(bool mirror);
  // A last row without a partner is its own.
  [[nodiscard]] int row_of_step() const noexcept { return std::min(step_, vertical_.output() - 1); }

  ResizeFilter filter_ = ResizeFilter::bilinear;
  ResizeAxis vertical_;
  ResizeAxis horizontal_;
  // What one output pixel takes of a row of pixel pairs, in the order in which pixels are written:
  // its first pair, and pairs_ weights, of a pair's left pixel in the low half, its right one
  // above.
  std::vector<std::int32_t> pair_at_;
  std::vector<std::uint32_t> pair_weights_;
  int pairs_ = 0;
  int row_pairs_ = 0;  // in a row of source()
  // Two rows between the directions.
  hwy::AlignedFreeUniquePtr<std::int16_t[]> between_;
  std::size_t between_size_ = 0;

  std::uint8_t* out_ = nullptr;
  std::ptrdiff_t stride_ = 0;
  int step_ = 0;
  int steps_ = 0;
};

}  // namespace penstock::transform
