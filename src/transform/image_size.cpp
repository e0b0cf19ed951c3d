#include "src/transform/image_size.hpp"

#include <string>

#include <fmt/format.h>

#include "src/core/image_kind.hpp"
#include "src/jpeg/image.hpp"
#include "src/transform/png.hpp"
#include "src/transform/view.hpp"
#include "src/transform/webp.hpp"

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

template <class Reader>
Result<ImageSize> size_by(std::span<const std::byte> bytes) {
  Reader reader;
  if (!reader.open(bytes)) return Fault{.reason = std::string(reader.message())};
  return ImageSize(reader.height(), reader.width());
}

Result<ImageSize> read_size(std::span<const std::byte> bytes, bool exif) {
  switch (core::kind_of(bytes)) {
    case core::ImageKind::jpeg:
      return jpeg_size(bytes, exif);
    case core::ImageKind::png:
      return size_by<PngReader>(bytes);
    case core::ImageKind::webp:
      return size_by<WebpReader>(bytes);
    case core::ImageKind::unknown:
      break;
  }
  return Fault{.reason = core::describe_unknown(bytes)};
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
