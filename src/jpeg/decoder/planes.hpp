// jpeg/decoder/planes: the samples of a few MCU rows, a plane for each component.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/jpeg/decoder/chunk.hpp"
#include "src/jpeg/decoder/header.hpp"
#include "src/jpeg/decoder/idct.hpp"
#include "src/jpeg/decoder/plan.hpp"

namespace penstock::jpeg {

/// Takes chunks of coefficients and keeps their samples: those of the MCU columns [first, last) and
/// of a band of MCU rows that moves down the image.
///
/// Threads  one caller at a time; keeps its memory.
class JpegPlanes {
 public:
  /// `band` MCU rows at a time. `kept` rows of each plane stay when the band moves on.
  void begin(const JpegHeader& header, const RegionPlan& plan, int band, int kept);

  /// Makes room for the MCU rows [row, row + band); those before `row` go, but for the kept ones.
  void move_to(int row);

  /// Turns the MCUs [first, mcus) of a chunk of `mcus` into samples, from MCU column `column` of
  /// row `row` on, and moves the predictors `dc` on. False where a smaller size is not possible.
  [[nodiscard]] bool put(const Chunk& chunk, int first, int mcus, int column, int row,
                         std::array<std::int16_t, 3>& dc);

  /// Repeats the image's outermost chroma samples beside it, in one MCU row, where the planes reach
  /// that far: what libjpeg's smooth upsampling takes for the samples behind the edge.
  void repeat_edges(int row);

  /// A row of a component, at the first sample of column first_column; those beside it can be
  /// read, too.
  [[nodiscard]] const std::uint8_t* row(std::size_t component, int y) const noexcept {
    const Plane& plane = planes_[component];
    return plane.samples.data() + plane.offset(y);
  }

  void trim();

 private:
  struct Plane {
    std::vector<std::uint8_t> samples;
    std::size_t stride = 0;
    int first = 0;  // row of the component that the plane begins with
    int next = 0;   // first row that the band does not have yet
    int h = 1;      // blocks of an MCU
    int v = 1;
    int side = kBlockSide;  // samples of a block
    int width = 0;          // of the component in the image

    [[nodiscard]] std::size_t offset(int y) const noexcept;
  };

  // The DC values of a chunk.
  void sum_dc(const Chunk& chunk, int mcus, std::array<std::int16_t, 3>& dc, std::int16_t* luma,
              std::int16_t* chroma) const;

  McuLayout layout_;
  int first_column_ = 0;
  int last_column_ = 0;
  bool right_edge_ = false;
  int band_ = 1;
  int kept_ = 0;
  std::array<Plane, 3> planes_;
  std::array<QuantTable, 3> quant_;
  // Decoding order of the blocks of a chunk, in their order in the image: per row of blocks.
  std::array<std::array<std::uint8_t, kChunkMcus * 4>, 2> luma_numbers_{};
  std::array<std::array<std::uint8_t, kChunkMcus>, 2> chroma_numbers_{};
};

}  // namespace penstock::jpeg
