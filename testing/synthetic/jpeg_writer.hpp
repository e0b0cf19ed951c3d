// testing/synthetic/jpeg_writer: generated pixels to JPEG.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "testing/synthetic/synthetic_pixels.hpp"

namespace penstock::testing {

/// Encodes what paint_image() painted, with the plan's quality, sampling and scan order.
///
/// Shapes  pixels: u8 [height, width, 3] of Y, Cb, Cr; grey: u8 [height, width]
/// Errors  Error  libjpeg refused, since there is too little memory
[[nodiscard]] std::vector<std::byte> encode_jpeg(const ImagePlan& plan,
                                                 std::span<const std::uint8_t> pixels);

}  // namespace penstock::testing
