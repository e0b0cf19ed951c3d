// transform/resize: a part of an image at another size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hwy/aligned_allocator.h>

#include <penstock/transform/crop.hpp>

#include "src/jpeg/rows.hpp"
#include "src/transform/resize_axis.hpp"

namespace penstock::transform {

/// Antialiased resize, vertically and then horizontally, in integers: 14-bit weights, 7 bits of
/// fraction between the directions (6 with bicubic), halves rounded up. The same bytes on every
/// CPU.
///
/// Threads  one caller at a time; keeps scratch memory between calls.
class Resize {
 public:
  /// Errors  none; the box lies within the source, and no extent is empty
  void plan(int source_width, int source_height, const Region& box, ImageSize output, bool mirror,
            ResizeFilter filter = ResizeFilter::bilinear);

  /// The pixels that the plan reads: the box and what the filter reaches around it.
  [[nodiscard]] PixelRect source() const noexcept;
  /// The most rows that it asks for at once.
  [[nodiscard]] int row_span() const noexcept { return vertical_.taps(); }

  /// Gets ready to write output.height rows of output.width RGB pixels; row i begins at
  /// out + i * stride.
  void begin(std::uint8_t* out, std::ptrdiff_t stride) noexcept;
  [[nodiscard]] bool is_done() const noexcept { return step_ == steps_; }
  /// The first row that the next step asks for; those of later steps do not lie above it.
  [[nodiscard]] int next_row() const noexcept { return vertical_.first(row_of_step()); }
  /// One row of the output further. `rows` gives the rows of source(); false when it had none.
  [[nodiscard]] bool step(jpeg::RowSource& rows);
  /// All steps.
  [[nodiscard]] bool run(jpeg::RowSource& rows, std::uint8_t* out, std::ptrdiff_t stride);

  void trim();

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
