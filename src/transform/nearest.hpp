// transform/nearest: a part of an image at another size, of pixels that are taken as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/jpeg/pixels/rows.hpp"
#include "src/transform/pillow_resize.hpp"
#include "src/transform/row_resize.hpp"

namespace penstock::transform {

/// Which pixel each output of a line shows, in order: the one that its middle lies in.
///
/// Source  Pillow's Image.resize with NEAREST: the middles are added up one by one in doubles, which decides where one lies
///         between two pixels. Of longer lines than Pillow can make, the last million middles before what is wanted are.
void nearest_pixels(const PillowLine& line, std::vector<int>& pixels);

/// Threads  one caller at a time; keeps scratch memory between calls.
class NearestResize final : public RowResize {
 public:
  struct Side {
    PillowLine line;
    int extent = 0;       ///< pixels of the image in this direction
    bool turned = false;  ///< the line runs from the last of them to the first
  };
  /// The output is mirrored left to right by `mirror`.
  void plan(const Side& horizontal, const Side& vertical, bool mirror);

  [[nodiscard]] PixelRect source() const noexcept override;
  [[nodiscard]] int row_span() const noexcept override { return 1; }
  void begin(std::uint8_t* out, std::ptrdiff_t stride) noexcept override;
  [[nodiscard]] bool is_done() const noexcept override { return row_ == rows_.size(); }
  [[nodiscard]] int next_row() const noexcept override { return rows_[row_]; }
  [[nodiscard]] bool step(jpeg::RowSource& rows) override;
  void trim() override {}

 private:
  std::vector<int> columns_;  // of the image, in its order
  std::vector<int> rows_;
  bool mirror_ = false;

  std::uint8_t* out_ = nullptr;
  std::ptrdiff_t stride_ = 0;
  std::size_t row_ = 0;  // of the output
};

}  // namespace penstock::transform
