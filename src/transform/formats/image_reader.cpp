#include "src/transform/formats/image_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <penstock/transform/decode_image.hpp>

#include "src/transform/formats/bmp.hpp"
#include "src/transform/formats/png.hpp"
#include "src/transform/formats/webp.hpp"

#ifdef PENSTOCK_HAVE_GIF
#include <gif_lib.h>

#include "src/transform/formats/gif.hpp"
#endif
#ifdef PENSTOCK_HAVE_HEIF
#include <libheif/heif.h>

#include "src/transform/formats/heif.hpp"
#endif
#ifdef PENSTOCK_HAVE_JPEG_XL
#include <jxl/decode.h>

#include "src/transform/formats/jpeg_xl.hpp"
#endif
#ifdef PENSTOCK_HAVE_TIFF
#include <tiffio.h>

#include "src/transform/formats/tiff.hpp"
#endif

namespace penstock {
namespace transform {

namespace {

using core::ImageKind;

template <class Reader>
std::unique_ptr<ImageReader> make() {
  return std::make_unique<Reader>();
}

// Null where this build lacks the kind's library.
std::unique_ptr<ImageReader> make_reader(ImageKind kind) {
  switch (kind) {
    case ImageKind::png:
      return make<PngReader>();
    case ImageKind::webp:
      return make<WebpReader>();
    case ImageKind::bmp:
      return make<BmpReader>();
#ifdef PENSTOCK_HAVE_GIF
    case ImageKind::gif:
      return make<GifReader>();
#endif
#ifdef PENSTOCK_HAVE_TIFF
    case ImageKind::tiff:
      return make<TiffReader>();
#endif
#ifdef PENSTOCK_HAVE_HEIF
    case ImageKind::heif:
      return make<HeifReader>();
#endif
#ifdef PENSTOCK_HAVE_JPEG_XL
    case ImageKind::jpeg_xl:
      return make<JpegXlReader>();
#endif
    default:
      return nullptr;
  }
}

const char* library_of(ImageKind kind) {
  switch (kind) {
    case ImageKind::gif:
      return "giflib";
    case ImageKind::tiff:
      return "libtiff (4.5 or newer)";
    case ImageKind::heif:
      return "libheif (1.15 or newer)";
    case ImageKind::jpeg_xl:
      return "libjxl";
    default:
      return nullptr;
  }
}

}  // namespace

void ImageReader::divide_by_alpha(std::uint8_t* rgba, std::size_t count) noexcept {
  for (std::size_t k = 0; k < count; ++k, rgba += 4) {
    const int alpha = rgba[3];
    if (alpha == 255) continue;
    for (int c = 0; c < 3; ++c)
      rgba[c] = static_cast<std::uint8_t>(alpha == 0 ? 0 : std::min(255 * rgba[c] / alpha, 255));
  }
}

Result<std::unique_ptr<ImageReader>> reader_for(std::span<const std::byte> bytes) {
  const core::Content content = core::content_of(bytes);
  if (auto reader = make_reader(content.kind)) return reader;
  if (const char* const library = library_of(content.kind))
    return Fault{.reason = fmt::format("{} {}, and this build of Penstock has no {}: install it "
                                       "and build again, or convert the image",
                                       content.article, content.name, library)};
  return Fault{.reason = core::describe_unknown(bytes)};
}

}  // namespace transform

std::vector<ImageLibrary> image_libraries() {
  std::vector<ImageLibrary> libraries;
#ifdef PENSTOCK_HAVE_GIF
  libraries.push_back(
      {"giflib", fmt::format("{}.{}.{}", GIFLIB_MAJOR, GIFLIB_MINOR, GIFLIB_RELEASE)});
#endif
#ifdef PENSTOCK_HAVE_HEIF
  libraries.push_back({"libheif", heif_get_version()});
#endif
#ifdef PENSTOCK_HAVE_JPEG_XL
  const std::uint32_t version = JxlDecoderVersion();
  libraries.push_back({"libjxl", fmt::format("{}.{}.{}", version / 1'000'000,
                                             version / 1'000 % 1'000, version % 1'000)});
#endif
#ifdef PENSTOCK_HAVE_TIFF
  // "LIBTIFF, Version 4.5.0", and a copyright
  std::string text = TIFFGetVersion();
  text.resize(std::min(text.find('\n'), text.size()));
  libraries.push_back({"libtiff", text.substr(text.rfind(' ') + 1)});
#endif
  return libraries;
}

}  // namespace penstock
