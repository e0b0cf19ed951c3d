// transform/jpeg/plan: which MCUs a rectangle of an image needs.
#pragma once

#include <cstdint>

#include "src/transform/jpeg/header.hpp"
#include "src/transform/jpeg/upsampling.hpp"
#include "src/transform/rows.hpp"

namespace penstock::detail {

struct RegionPlan {
  bool smooth_h = false;  ///< chroma is smoothed along rows
  bool smooth_v = false;  ///< and across them
  /// MCU columns and rows that hold what the rectangle's pixels are made of: [first, last).
  int first_column = 0;
  int last_column = 0;
  int first_row = 0;
  int last_row = 0;
  /// libjpeg-turbo reads the MCUs before that one, and what is wrong with them counts.
  std::int64_t checked_mcus = 0;

  RegionPlan() = default;
  RegionPlan(const JpegHeader& header, const PixelRect& rect, Upsampling upsampling);
};

}  // namespace penstock::detail
