// testing/synthetic/synthetic_pixels: what a generated image looks like. Integers, IEEE sums,
// products and square roots only, so that every machine paints the same pixels.
#pragma once

#include <cstdint>
#include <vector>

#include <penstock/core/random.hpp>

namespace penstock::testing {

enum class ChromaSampling : std::uint8_t { s444, s422, s420, grey };

/// How one image is to be painted and encoded: a function of (seed, number, class).
struct ImagePlan {
  RandomKey key;
  std::uint64_t number = 0;
  int label = 0;
  int classes = 1;
  int width = 0;
  int height = 0;
  int quality = 0;
  ChromaSampling sampling = ChromaSampling::s444;
  bool progressive = false;
};

[[nodiscard]] ImagePlan plan_image(std::uint64_t seed, std::uint64_t number, int classes);

/// Paints the plan's image as rows of Y, Cb, Cr, or of Y alone where it is grey.
///
/// Shapes  out: u8 [height, width, 3], grey: u8 [height, width]
[[nodiscard]] std::vector<std::uint8_t> paint_image(const ImagePlan& plan);

}  // namespace penstock::testing
