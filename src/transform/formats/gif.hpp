// transform/formats/gif: the first frame of a GIF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "src/transform/formats/image_reader.hpp"

struct GifFileType;

namespace penstock::transform {

/// By giflib. The frame lies on the file's screen, which grows where the frame reaches beyond it; beside the frame are the
/// transparent colour, or where there is none the palette's first, as in Pillow.
class GifReader final : public ImageReader {
 public:
  Result<void> open(std::span<const std::byte> bytes) override;
  Result<void> read(std::uint8_t* rgba) override;

 private:
  struct Close {
    void operator()(GifFileType* file) const noexcept;
  };

  Result<void> read_extension();
  Result<void> find_frame();

  std::span<const std::byte> left_;
  std::unique_ptr<GifFileType, Close> file_;
  int transparent_ = -1;  // number in the palette
};

}  // namespace penstock::transform
