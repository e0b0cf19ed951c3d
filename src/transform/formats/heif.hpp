// transform/formats/heif: the primary image of a HEIF file: HEIC, AVIF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "src/transform/formats/image_reader.hpp"

struct heif_context;
struct heif_image_handle;

namespace penstock::transform {

/// By libheif and its decoders. Levels of more bits become 8 bits. The file's own rotation, mirroring and cropping are always
/// done, and an EXIF orientation beside them does not count, as the standard says.
class HeifReader final : public ImageReader {
 public:
  Result<void> open(std::span<const std::byte> bytes) override;
  Result<void> read(std::uint8_t* rgba) override;

 private:
  struct Free {
    void operator()(heif_context* context) const noexcept;
    void operator()(heif_image_handle* handle) const noexcept;
  };

  std::unique_ptr<heif_context, Free> context_;
  std::unique_ptr<heif_image_handle, Free> image_;
};

}  // namespace penstock::transform
