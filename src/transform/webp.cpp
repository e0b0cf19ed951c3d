#include "src/transform/webp.hpp"

#include <new>

#include <webp/decode.h>

#include "src/jpeg/pixels/rows.hpp"

namespace penstock::transform {
namespace {

const char* explain(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "a WebP with a feature that libwebp does not know";
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "premature end of WebP file";
    default:
      return "corrupt WebP data";
  }
}

}  // namespace

bool WebpReader::open(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  WebPBitstreamFeatures features;
  const VP8StatusCode status =
      WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), &features);
  if (status != VP8_STATUS_OK) {
    message_ = explain(status);
    return false;
  }
  if (features.has_animation != 0) {
    message_ = "an animated WebP: only still images are decoded";
    return false;
  }
  width_ = features.width;
  height_ = features.height;
  return true;
}

bool WebpReader::read(std::uint8_t* rgba) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) {
    message_ = "the installed libwebp does not match the one that this library was built with";
    return false;
  }
  const std::size_t stride = static_cast<std::size_t>(width_) * jpeg::kPixelBytes;
  config.output.colorspace = MODE_RGBA;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {rgba, static_cast<int>(stride),
                          stride * static_cast<std::size_t>(height_)};
  const VP8StatusCode status =
      WebPDecode(reinterpret_cast<const std::uint8_t*>(bytes_.data()), bytes_.size(), &config);
  if (status == VP8_STATUS_OK) return true;
  if (status == VP8_STATUS_OUT_OF_MEMORY) throw std::bad_alloc();
  message_ = explain(status);
  return false;
}

}  // namespace penstock::transform
