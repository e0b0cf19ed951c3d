#include "src/transform/image_size.hpp"

#include <fmt/format.h>

#include "src/core/image_kind.hpp"
#include "src/jpeg/image.hpp"
#include "src/transform/formats/image_reader.hpp"
#include "src/transform/view.hpp"

namespace penstock::transform {

namespace {

// A JPEG that decode_image would only take with `tolerant` has a size, too.
Result<ImageSize> jpeg_size(std::span<const std::byte> bytes, bool exif) {
  static thread_local jpeg::Image image;
  const Result<jpeg::Info> info = image.open(bytes, {.tolerant = true}, nullptr);
  image.close();
  if (!info) return info.fault();
  return StoredImage{
      .width = info->width, .height = info->height, .exif = exif ? info->orientation : 1}
      .upright();
}

Result<ImageSize> read_size(std::span<const std::byte> bytes, bool exif) {
  if (core::kind_of(bytes) == core::ImageKind::jpeg) return jpeg_size(bytes, exif);
  const Result<std::unique_ptr<ImageReader>> made = reader_for(bytes);
  if (!made) return made.fault();
  ImageReader& reader = **made;
  if (Result<void> opened = reader.open(bytes); !opened) return std::move(opened.fault());
  return StoredImage{
      .width = reader.width(), .height = reader.height(), .exif = exif ? reader.orientation() : 1}
      .upright();
}

}  // namespace

Result<ImageSize> upright_size(std::span<const std::byte> bytes, bool exif) {
  Result<ImageSize> size = read_size(bytes, exif);
  if (size && (size->height < 1 || size->width < 1))
    return Fault{.reason = fmt::format("the header says {}x{}: there are no pixels", size->width,
                                       size->height)};
  return size;
}

}  // namespace penstock::transform
