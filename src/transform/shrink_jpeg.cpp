#include <algorithm>
#include <array>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <penstock/transform/shrink_jpeg.hpp>

#include "src/jpeg/libjpeg/libjpeg_errors.hpp"
#include "src/jpeg/libjpeg/libjpeg_reader.hpp"
#include "src/transform/resize.hpp"

namespace penstock {

namespace {

using Segment = std::span<const std::byte>;

constexpr std::string_view kProfileMark{"ICC_PROFILE\0", 12};
constexpr int kExif = JPEG_APP0 + 1;
constexpr int kProfile = JPEG_APP0 + 2;

// What the new file has of the old one.
struct Original {
  int components = 3;
  int h = 1;  // factors of the first component; those of the others are one
  int v = 1;
  std::vector<Segment> profile;
};

bool begins_with(Segment segment, std::string_view text) {
  return segment.size() >= text.size() &&
         std::memcmp(segment.data(), text.data(), text.size()) == 0;
}

int number_at(Segment segment, std::size_t at) { return std::to_integer<int>(segment[at]); }

// A file that libjpeg has read the header of.
Original original_of(std::span<const std::byte> jpeg) {
  Original original;
  for (std::size_t at = 2; at + 4 <= jpeg.size();) {
    const int marker = number_at(jpeg, at + 1);
    if (number_at(jpeg, at) != 0xFF || marker == 0xDA) break;
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const auto size =
        static_cast<std::size_t>(number_at(jpeg, at + 2) << 8 | number_at(jpeg, at + 3));
    if (size < 2 || at + 2 + size > jpeg.size()) break;
    const Segment segment = jpeg.subspan(at + 4, size - 2);
    at += 2 + size;
    if (marker == kProfile && begins_with(segment, kProfileMark))
      original.profile.push_back(segment);
    const bool frame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (!frame || segment.size() < 9) continue;
    original.components = number_at(segment, 5);
    if (original.components != 3 || segment.size() < 15) continue;
    const auto factors = [&](std::size_t c) {
      const int both = number_at(segment, 7 + 3 * c);
      return std::array{both >> 4, both & 15};
    };
    // Others than these are rare, and lose nothing by being stored in full.
    const auto [h, v] = factors(0);
    const bool usual = factors(1) == std::array{1, 1} && factors(2) == std::array{1, 1} &&
                       (h == 1 || h == 2 || h == 4) && (v == 1 || v == 2);
    if (!usual) continue;
    original.h = h;
    original.v = v;
  }
  // One that was made for CMYK means nothing for what is stored here.
  if (original.components == 4) original.profile.clear();
  return original;
}

// The tag alone: Exif 2.3, 4.5.4 and 4.6.4 A.
std::array<std::uint8_t, 32> exif_with(int orientation) {
  return {
      'E', 'x', 'i', 'f',  0,    0, 'M', 'M', 0, 42, 0, 0, 0,
      8,   0,   1,   0x01, 0x12, 0, 3,   0,   0, 0,  1, 0, static_cast<std::uint8_t>(orientation),
      0,   0,   0,   0,    0,    0};
}

class Encoder {
 public:
  Encoder() { out_.err = error_.set_up(); }
  ~Encoder() { jpeg_destroy_compress(&out_); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // `pixels` are RGB, or grey where the original is.
  [[nodiscard]] bool write(const std::uint8_t* pixels, ImageSize size, const Original& original,
                           int orientation, int quality, unsigned char** bytes,
                           unsigned long* count) noexcept {
    if (setjmp(error_.jump) != 0) return false;
    jpeg_create_compress(&out_);
    jpeg_mem_dest(&out_, bytes, count);
    const bool grey = original.components == 1;
    out_.image_width = static_cast<JDIMENSION>(size.width);
    out_.image_height = static_cast<JDIMENSION>(size.height);
    out_.input_components = grey ? 1 : 3;
    out_.in_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&out_);
    jpeg_set_quality(&out_, quality, TRUE);
    out_.optimize_coding = TRUE;
    out_.dct_method = JDCT_ISLOW;
    out_.comp_info[0].h_samp_factor = original.h;
    out_.comp_info[0].v_samp_factor = original.v;
    jpeg_start_compress(&out_, TRUE);
    if (orientation != 1) {
      const auto exif = exif_with(orientation);
      jpeg_write_marker(&out_, kExif, exif.data(), static_cast<unsigned>(exif.size()));
    }
    for (const Segment& segment : original.profile)
      jpeg_write_marker(&out_, kProfile, reinterpret_cast<const JOCTET*>(segment.data()),
                        static_cast<unsigned>(segment.size()));
    const std::size_t stride = static_cast<std::size_t>(size.width) * (grey ? 1 : 3);
    while (out_.next_scanline < out_.image_height) {
      auto* row = const_cast<JSAMPROW>(pixels + out_.next_scanline * stride);
      jpeg_write_scanlines(&out_, &row, 1);
    }
    jpeg_finish_compress(&out_);
    return true;
  }
  [[nodiscard]] const char* message() const noexcept { return error_.message; }

 private:
  jpeg::LibjpegErrors error_{};
  jpeg_compress_struct out_{};
};

ImageSize shrunk(int width, int height, int longest_side) {
  const double scale = static_cast<double>(longest_side) / std::max(width, height);
  const auto side = [&](int pixels) {
    return std::max(1, static_cast<int>(std::lround(pixels * scale)));
  };
  ImageSize size;
  size.width = side(width);
  size.height = side(height);
  return size;
}

}  // namespace

Result<ShrunkJpeg> shrink_jpeg(std::span<const std::byte> jpeg, const ShrinkJpegOptions& options) {
  if (options.longest_side < 1)
    throw std::invalid_argument(fmt::format(
        "shrink_jpeg: longest_side is at least one pixel, found {}", options.longest_side));
  if (options.quality < 1 || options.quality > 100)
    throw std::invalid_argument(
        fmt::format("shrink_jpeg: quality is between 1 and 100, found {}", options.quality));
  jpeg::JpegReader reader;
  if (!reader.open(jpeg)) return Fault{.reason = std::string(reader.message())};
  const int width = reader.width();
  const int height = reader.height();
  if (std::max(width, height) <= options.longest_side)
    return ShrunkJpeg{
        .bytes = {jpeg.begin(), jpeg.end()}, .kept = true, .width = width, .height = height};
  const ImageSize size = shrunk(width, height, options.longest_side);
  const int orientation = reader.orientation();

  transform::Resize resize;
  resize.plan(
      width, height,
      {.x = 0, .y = 0, .width = static_cast<double>(width), .height = static_cast<double>(height)},
      size, false);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width) *
                                   static_cast<std::size_t>(size.height) * 3);
  if (!reader.begin(resize.source(), resize.row_span(), jpeg::Upsampling::smooth) ||
      !resize.run(reader, pixels.data(), std::ptrdiff_t{3} * size.width))
    return Fault{.reason = std::string(reader.message())};
  reader.close();

  const Original original = original_of(jpeg);
  if (original.components == 1) {
    for (std::size_t i = 0; i < pixels.size() / 3; ++i) pixels[i] = pixels[3 * i];
  }
  unsigned char* memory = nullptr;
  unsigned long count = 0;
  Encoder encoder;
  const bool written =
      encoder.write(pixels.data(), size, original, orientation, options.quality, &memory, &count);
  const jpeg::Encoded encoded(memory);
  if (!written) return Fault{.reason = encoder.message()};
  const auto* const first = reinterpret_cast<const std::byte*>(memory);
  return ShrunkJpeg{.bytes = {first, first + count}, .width = size.width, .height = size.height};
}

}  // namespace penstock
