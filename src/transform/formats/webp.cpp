#include "src/transform/formats/webp.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include <webp/decode.h>

#include "src/jpeg/pixels/exif.hpp"
#include "src/jpeg/pixels/rows.hpp"

namespace penstock::transform {
namespace {

constexpr const char* kEndsEarly = "premature end of WebP file";

Fault explain(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return Fault{.reason = "a WebP with a feature that libwebp does not know"};
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return Fault{.reason = kEndsEarly};
    default:
      return Fault{.reason = "corrupt WebP data"};
  }
}

const std::uint8_t* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

// The flags of an extended file's first chunk, which say what other chunks there are.
unsigned flags_of(std::span<const std::byte> bytes) {
  constexpr std::size_t kChunk = 12;
  constexpr std::size_t kFlags = 20;
  const bool is_extended = bytes.size() > kFlags &&
                           std::ranges::equal(bytes.subspan(kChunk, 4), std::string_view("VP8X"),
                                              {}, [](std::byte b) { return static_cast<char>(b); });
  return is_extended ? std::to_integer<unsigned>(bytes[kFlags]) : 0;
}

}  // namespace

Result<void> WebpReader::open(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(raw(bytes), bytes.size(), &features);
  if (status != VP8_STATUS_OK) return explain(status);
  width_ = frame_width_ = features.width;
  height_ = frame_height_ = features.height;
  const bool has_parts = (flags_of(bytes) & (ANIMATION_FLAG | EXIF_FLAG)) != 0;
  return has_parts ? open_parts() : Result<void>();
}

Result<void> WebpReader::open_parts() {
  if ((flags_of(bytes_) & EXIF_FLAG) != 0)
    if (auto read = read_orientation(); !read) return read;
  return (flags_of(bytes_) & ANIMATION_FLAG) != 0 ? open_animation() : Result<void>();
}

// Of a chunk that stands behind the pixels.
Result<void> WebpReader::read_orientation() {
  const auto number = [&](std::size_t at) {
    std::size_t value = 0;
    for (std::size_t k = 0; k < 4; ++k)
      value |= std::to_integer<std::size_t>(bytes_[at + k]) << (8 * k);
    return value;
  };
  constexpr std::size_t kHead = 8;  // a name and a length
  std::size_t at = 12;
  while (bytes_.size() >= at + kHead) {
    const std::size_t length = number(at + 4);
    if (length > bytes_.size() - at - kHead) return Fault{.reason = kEndsEarly};
    if (std::memcmp(bytes_.data() + at, "EXIF", 4) == 0) {
      orientation_ = std::max(jpeg::exif_chunk_orientation({raw(bytes_) + at + kHead, length}), 1);
      return {};
    }
    at += kHead + length + length % 2;
  }
  const bool is_cut = bytes_.size() < number(4) + kHead;
  return is_cut ? Result<void>(Fault{.reason = kEndsEarly}) : Result<void>();
}

Result<void> WebpReader::open_animation() {
  const WebPData data{raw(bytes_), bytes_.size()};
  WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
  const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> parts(
      WebPDemuxPartial(&data, &state), WebPDemuxDelete);
  if (state == WEBP_DEMUX_PARSING_HEADER || state == WEBP_DEMUX_PARSED_HEADER)
    return Fault{.reason = kEndsEarly};
  if (!parts) return explain(VP8_STATUS_BITSTREAM_ERROR);
  WebPIterator frame;
  if (WebPDemuxGetFrame(parts.get(), 1, &frame) == 0)
    return Fault{.reason = "an animated WebP without a frame"};
  width_ = static_cast<int>(WebPDemuxGetI(parts.get(), WEBP_FF_CANVAS_WIDTH));
  height_ = static_cast<int>(WebPDemuxGetI(parts.get(), WEBP_FF_CANVAS_HEIGHT));
  frame_x_ = frame.x_offset;
  frame_y_ = frame.y_offset;
  frame_width_ = frame.width;
  frame_height_ = frame.height;
  bytes_ = bytes_.subspan(static_cast<std::size_t>(frame.fragment.bytes - data.bytes),
                          frame.fragment.size);
  WebPDemuxReleaseIterator(&frame);
  return {};
}

Result<void> WebpReader::read(std::uint8_t* rgba) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return Fault{
        .reason = "the installed libwebp does not match the one that this library was built with"};
  const std::size_t stride = static_cast<std::size_t>(width_) * jpeg::kPixelBytes;
  const std::size_t size = stride * static_cast<std::size_t>(height_);
  if (frame_width_ != width_ || frame_height_ != height_) std::fill_n(rgba, size, std::uint8_t{0});
  const std::size_t first = static_cast<std::size_t>(frame_y_) * stride +
                            static_cast<std::size_t>(frame_x_) * jpeg::kPixelBytes;
  config.output.colorspace = MODE_RGBA;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {rgba + first, static_cast<int>(stride), size - first};
  const VP8StatusCode status = WebPDecode(raw(bytes_), bytes_.size(), &config);
  if (status == VP8_STATUS_OK) return {};
  if (status == VP8_STATUS_OUT_OF_MEMORY) throw std::bad_alloc();
  return explain(status);
}

}  // namespace penstock::transform
