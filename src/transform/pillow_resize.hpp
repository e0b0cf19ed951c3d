// transform/pillow_resize: a part of an image at another size, with the bytes that Pillow makes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <penstock/transform/crop.hpp>

#include "src/jpeg/pixels/rows.hpp"
#include "src/transform/filter_axis.hpp"
#include "src/transform/row_resize.hpp"

namespace penstock::transform {

/// One direction of what is resized: pixels [first, first + count) become `total` pixels, of which `outputs` are wanted,
/// beginning with number `from`.
struct PillowLine {
  int first = 0;
  int count = 0;
  std::int64_t total = 0;
  std::int64_t from = 0;
  int outputs = 0;
};

[[nodiscard]] FilterLine filter_line(const PillowLine& line) noexcept;

/// Horizontally and then vertically, with weights of 22 bits, levels rounded and cut between the directions. Slower than
/// Resize, for callers that compare with what Pillow made.
///
/// Source   Pillow's Image.resize with BILINEAR or BICUBIC, of "RGB"
/// Threads  one caller at a time; keeps scratch memory between calls.
class PillowResize final : public RowResize {
 public:
  /// `filter` is pillow_bilinear or pillow_bicubic.
  void plan(const PillowLine& horizontal, const PillowLine& vertical, bool mirror,
            ResizeFilter filter);

  [[nodiscard]] PixelRect source() const noexcept override;
  [[nodiscard]] int row_span() const noexcept override { return vertical_.exact.taps; }
  void begin(std::uint8_t* out, std::ptrdiff_t stride) noexcept override;
  [[nodiscard]] bool is_done() const noexcept override { return row_ == rows(); }
  [[nodiscard]] int next_row() const noexcept override { return next_; }
  [[nodiscard]] bool step(jpeg::RowSource& rows) override;
  void trim() override;

 private:
  // The weights of each output pixel, and the source pixels that it is made of.
  struct Axis {
    FilterAxis exact;
    std::vector<std::int32_t> weights;  // its weights in 22 bits

    void plan(const PillowLine& line, ResizeFilter filter);
    [[nodiscard]] const std::int32_t* weights_of(int i) const noexcept {
      return weights.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(exact.taps);
    }
  };

  [[nodiscard]] int rows() const noexcept { return static_cast<int>(vertical_.exact.first.size()); }
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    return horizontal_.exact.first.size() * 3;
  }
  [[nodiscard]] std::uint8_t* kept(int row) noexcept {
    return kept_.data() + static_cast<std::size_t>(row % vertical_.exact.taps) * row_bytes();
  }
  void sum_columns(const std::uint8_t* row, std::uint8_t* out) const noexcept;
  void sum_rows(std::uint8_t* out);

  Axis horizontal_;
  Axis vertical_;
  bool mirror_ = false;
  std::vector<std::uint8_t> kept_;  // the last rows, resized horizontally
  std::vector<std::int32_t> sums_;

  std::uint8_t* out_ = nullptr;
  std::ptrdiff_t stride_ = 0;
  int row_ = 0;   // of the output
  int next_ = 0;  // of the source
};

}  // namespace penstock::transform
