// The images whose indices are fuzzed.
#pragma once

#include "tests/jpeg/images.hpp"

namespace penstock::fuzz {

inline constexpr int kIndexImages = 6;

inline testing_images::Bytes index_image(int which) {
  using namespace testing_images;
  JpegKind kind;
  if (which % 2 == 1) kind.sampling = {{2, 2}, {1, 1}, {1, 1}};
  // Within the rows of MCUs, and across them.
  if (which >= 2) kind.restart = which < 4 ? 3 : 12;
  return jpeg_of(picture(72, 56), kind);
}

}  // namespace penstock::fuzz
