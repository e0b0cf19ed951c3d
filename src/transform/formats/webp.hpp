// transform/formats/webp: a WebP's pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <webp/demux.h>

#include "src/transform/formats/image_reader.hpp"

namespace penstock::transform {

/// A WebP, lossy or lossless; of an animation the first frame on its canvas, transparent beside it.
class WebpReader final : public ImageReader {
 public:
  Result<void> open(std::span<const std::byte> bytes) override;
  Result<void> read(std::uint8_t* rgba) override;

 private:
  Result<void> open_parts();
  Result<void> read_orientation();
  Result<void> open_animation();

  std::span<const std::byte> bytes_;  // that libwebp decodes: the file, or a frame of it
  // Where the frame lies on the canvas.
  int frame_x_ = 0;
  int frame_y_ = 0;
  int frame_width_ = 0;
  int frame_height_ = 0;
};

}  // namespace penstock::transform
