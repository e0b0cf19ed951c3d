// transform/formats/jpeg_xl: the first frame of a JPEG XL image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "src/transform/formats/image_reader.hpp"

struct JxlDecoderStruct;

namespace penstock::transform {

/// By libjxl, as levels of 8 bits in the colour space that it gives them.
class JpegXlReader final : public ImageReader {
 public:
  Result<void> open(std::span<const std::byte> bytes) override;
  Result<void> read(std::uint8_t* rgba) override;

 private:
  struct Free {
    void operator()(JxlDecoderStruct* decoder) const noexcept;
  };

  std::unique_ptr<JxlDecoderStruct, Free> decoder_;
};

}  // namespace penstock::transform
