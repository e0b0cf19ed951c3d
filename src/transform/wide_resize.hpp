// transform/wide_resize: a part of an image of 16 bits a level at another size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <penstock/transform/crop.hpp>

#include "src/transform/filter_axis.hpp"
#include "src/transform/window.hpp"

namespace penstock::transform {

/// Levels of an upright image, line by line without gaps.
struct WideImage {
  const std::uint16_t* levels = nullptr;
  int channels = 1;
};

/// Horizontally and then vertically, in doubles, added one after another: IEEE operations, so the same levels on every CPU.
/// bilinear and bicubic are rounded once, at the end; with pillow_bilinear also between the directions.
///
/// Source   Pillow's Image.resize with BILINEAR, of "I;16" (until Pillow 12), and with NEAREST, of images of 8 bits (of
///          "I;16" it takes another pixel here and there where a middle lies between two); the weights of the other
///          filters are those of Resize before these are rounded
/// Threads  one caller at a time; keeps scratch memory between calls.
class WideResize {
 public:
  /// Writes [sample height, sample width, channels] levels. What lies beside the image is 257 times a level of `fill`.
  /// `filter` is any but pillow_bicubic.
  void run(const WideImage& image, const Window& window, ResizeFilter filter, Color fill,
           std::uint16_t* out);
  /// Gives large scratch memory back.
  void trim();

 private:
  void plan(const Window& window, ResizeFilter filter);
  void sum_columns(const std::uint16_t* row, int channels, bool rounded, double* out) const;

  FilterAxis horizontal_;
  FilterAxis vertical_;
  std::vector<int> pixels_;
  std::vector<double> kept_;  // the last rows, resized horizontally
};

/// Errors  std::invalid_argument  a filter that is not for 16 bits; begins with `caller`
void check_wide_filter(std::string_view caller, ResizeFilter filter);

}  // namespace penstock::transform
