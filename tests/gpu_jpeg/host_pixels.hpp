// The pixels that a GPU has to make of a JPEG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/jpeg/decoder.hpp>

#include "src/jpeg/pixels/rows.hpp"
#include "src/transform/resize.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock::gpu_jpeg {

/// An image, and what of it.
struct Wanted {
  testing_images::Bytes bytes;
  Region box;
  bool mirror = false;
};

/// What the host makes of it: u8 [H,W,3] of `output`.
inline std::vector<std::byte> on_host(const Wanted& wanted, ImageSize output, ResizeFilter filter,
                                      jpeg::Chroma chroma) {
  jpeg::Decoder decoder;
  const auto info = decoder.open(wanted.bytes);
  const auto width = static_cast<std::size_t>(info->width);
  const auto height = static_cast<std::size_t>(info->height);
  std::vector<std::uint8_t> rgb(width * height * 3);
  EXPECT_TRUE(decoder.decode({.chroma = chroma}, rgb, width * 3));
  std::vector<std::uint8_t> pixels(width * height * jpeg::kPixelBytes + jpeg::kRowSlack);
  for (std::size_t i = 0; i < width * height; ++i)
    std::memcpy(&pixels[i * jpeg::kPixelBytes], &rgb[i * 3], 3);
  transform::Resize resize;
  resize.plan(info->width, info->height, wanted.box, output, wanted.mirror, filter);
  jpeg::MemoryRows rows(pixels.data(), width * jpeg::kPixelBytes, resize.source().x);
  std::vector<std::byte> out(static_cast<std::size_t>(output.height) *
                             static_cast<std::size_t>(output.width) * 3);
  EXPECT_TRUE(resize.run(rows, reinterpret_cast<std::uint8_t*>(out.data()),
                         std::ptrdiff_t{3} * output.width));
  return out;
}

}  // namespace penstock::gpu_jpeg
