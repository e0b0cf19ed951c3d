// Images made for the tests of this room: pixels, and the bytes of files that hold them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <jpeglib.h>
#include <png.h>
#include <webp/encode.h>

namespace penstock::testing_images {

using Bytes = std::vector<std::byte>;

/// Dense 8-bit pixels of some number of channels.
struct Pixels {
  int width = 0;
  int height = 0;
  int channels = 3;
  std::vector<std::uint8_t> data;

  Pixels() = default;
  Pixels(int w, int h, int c) : width(w), height(h), channels(c) {
    data.resize(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) *
                static_cast<std::size_t>(c));
  }
  [[nodiscard]] std::uint8_t* at(int x, int y) {
    return data.data() + (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                          static_cast<std::size_t>(x)) *
                             static_cast<std::size_t>(channels);
  }
  [[nodiscard]] const std::uint8_t* at(int x, int y) const {
    return const_cast<Pixels*>(this)->at(x, y);
  }
  friend bool operator==(const Pixels&, const Pixels&) = default;
};

/// Waves, edges and some noise; different in every corner and channel.
inline Pixels picture(int width, int height, int channels = 3, unsigned seed = 1) {
  Pixels pixels(width, height, channels);
  std::mt19937 random(seed);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const int wave = (x * (c + 3) + y * (5 - c)) % 256;
        const int edge = (x / 9 + y / 7) % 2 != 0 ? 60 : 0;
        pixels.at(x, y)[c] = static_cast<std::uint8_t>(
            (wave * 3 / 4 + edge + static_cast<int>(random() % 24)) % 256);
      }
    }
  }
  return pixels;
}

/// Slow gradients only: what lossy files keep well.
inline Pixels gradient(int width, int height, int channels = 3) {
  Pixels pixels(width, height, channels);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        pixels.at(x, y)[c] =
            static_cast<std::uint8_t>(c == 0   ? 255 * x / width
                                      : c == 1 ? 255 * y / height
                                               : 128 + 100 * (x - y) / (width + height));
  return pixels;
}

struct JpegKind {
  std::string name;
  J_COLOR_SPACE input = JCS_RGB;
  J_COLOR_SPACE stored = JCS_YCbCr;
  /// Horizontal and vertical factors of each component.
  std::vector<std::array<int, 2>> sampling{{1, 1}, {1, 1}, {1, 1}};
  bool progressive = false;
  bool interleaved = true;
  int restart = 0;
  int quality = 90;
  bool adobe = true;  // of a CMYK image: with Adobe's marker
  Bytes app1{};
  std::vector<jpeg_scan_info> scans{};  ///< instead of the usual ones
};

inline Bytes to_bytes(const unsigned char* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  return {first, first + size};
}

inline Bytes jpeg_of(const Pixels& pixels, const JpegKind& kind = {}) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr error;
  jpeg.err = jpeg_std_error(&error);
  jpeg_create_compress(&jpeg);
  unsigned char* file = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &file, &size);
  jpeg.image_width = static_cast<JDIMENSION>(pixels.width);
  jpeg.image_height = static_cast<JDIMENSION>(pixels.height);
  jpeg.input_components = pixels.channels;
  jpeg.in_color_space = kind.input;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, kind.stored);
  jpeg_set_quality(&jpeg, kind.quality, TRUE);
  if (!kind.adobe) jpeg.write_Adobe_marker = FALSE;
  for (int c = 0; c < jpeg.num_components; ++c) {
    const auto& factors =
        kind.sampling[std::min<std::size_t>(static_cast<std::size_t>(c), kind.sampling.size() - 1)];
    jpeg.comp_info[c].h_samp_factor = factors[0];
    jpeg.comp_info[c].v_samp_factor = factors[1];
  }
  std::vector<jpeg_scan_info> scans = kind.scans;
  if (!kind.interleaved)
    for (int c = 0; c < jpeg.num_components; ++c) scans.push_back({1, {c}, 0, 63, 0, 0});
  if (kind.progressive) jpeg_simple_progression(&jpeg);
  if (!scans.empty()) {
    jpeg.scan_info = scans.data();
    jpeg.num_scans = static_cast<int>(scans.size());
  }
  jpeg.restart_interval = static_cast<unsigned>(kind.restart);
  jpeg_start_compress(&jpeg, TRUE);
  if (!kind.app1.empty())
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(kind.app1.data()),
                      static_cast<unsigned>(kind.app1.size()));
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<std::uint8_t*>(pixels.at(0, static_cast<int>(jpeg.next_scanline)));
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Bytes bytes = to_bytes(file, size);
  std::free(file);
  return bytes;
}

/// The whole image at 1/scale of its size, as RGB (CMYK as stored), with the settings that the
/// library promises.
inline Pixels libjpeg_whole(const Bytes& bytes, bool fancy = false, int scale = 1) {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr error;
  jpeg.err = jpeg_std_error(&error);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.dct_method = JDCT_ISLOW;
  jpeg.do_fancy_upsampling = fancy ? TRUE : FALSE;
  jpeg.out_color_space = jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
  jpeg.scale_num = 1;
  jpeg.scale_denom = static_cast<unsigned>(scale);
  jpeg_start_decompress(&jpeg);
  Pixels pixels(static_cast<int>(jpeg.output_width), static_cast<int>(jpeg.output_height),
                jpeg.output_components);
  while (jpeg.output_scanline < jpeg.output_height) {
    std::uint8_t* row = pixels.at(0, static_cast<int>(jpeg.output_scanline));
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_destroy_decompress(&jpeg);
  return pixels;
}

/// The first scans of a progressive JPEG, which ends behind them.
inline Bytes first_scans(const Bytes& bytes, int scans) {
  Bytes cut = bytes;
  for (std::size_t at = 2; at + 1 < bytes.size(); ++at) {
    if (bytes[at] != std::byte{0xFF} || bytes[at + 1] != std::byte{0xDA} || scans-- > 0) continue;
    cut.resize(at);
    break;
  }
  cut.insert(cut.end(), {std::byte{0xFF}, std::byte{0xD9}});
  return cut;
}

/// An APP1 payload whose only tag is the orientation.
inline Bytes exif_app1(int orientation, bool big_endian = false) {
  std::vector<std::uint8_t> out{'E', 'x', 'i', 'f', 0, 0};
  const auto put = [&](std::uint32_t value, int size) {
    for (int i = 0; i < size; ++i)
      out.push_back(static_cast<std::uint8_t>(value >> 8 * (big_endian ? size - 1 - i : i)));
  };
  out.insert(out.end(), 2, big_endian ? 'M' : 'I');
  put(42, 2);
  put(8, 4);
  put(2, 2);
  for (const auto& [tag, value] : {std::array<int, 2>{0x0106, 2}, {0x0112, orientation}}) {
    put(static_cast<std::uint32_t>(tag), 2);
    put(3, 2);
    put(1, 4);
    put(static_cast<std::uint32_t>(value), 2);
    put(0, 2);
  }
  put(0, 4);
  return to_bytes(out.data(), out.size());
}

/// What png_of makes of samples: 8 bits, 16 (big-endian pairs of bytes), or a palette's indices.
struct PngKind {
  int color = PNG_COLOR_TYPE_RGB;
  int bits = 8;
  bool interlaced = false;
  std::vector<png_color> palette{};
};

/// Only the header where there are no samples.
inline Bytes png_of(int width, int height, const std::vector<std::uint8_t>& samples,
                    const PngKind& kind = {}) {
  Bytes bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_structp p, png_bytep data, std::size_t size) {
        auto* out = static_cast<Bytes*>(png_get_io_ptr(p));
        const auto* first = reinterpret_cast<const std::byte*>(data);
        out->insert(out->end(), first, first + size);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               kind.bits, kind.color, kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!kind.palette.empty())
    png_set_PLTE(png, info, kind.palette.data(), static_cast<int>(kind.palette.size()));
  // A gamma that a viewer would correct, and a loader must not.
  png_set_gAMA_fixed(png, info, 100000);
  png_write_info(png, info);
  if (!samples.empty()) {
    std::vector<png_bytep> rows;
    const std::size_t stride = samples.size() / static_cast<std::size_t>(height);
    for (int y = 0; y < height; ++y)
      rows.push_back(const_cast<png_bytep>(samples.data() + static_cast<std::size_t>(y) * stride));
    png_write_image(png, rows.data());
    png_write_end(png, nullptr);
  }
  png_destroy_write_struct(&png, &info);
  return bytes;
}

inline Bytes png_of(const Pixels& pixels) {
  return png_of(pixels.width, pixels.height, pixels.data,
                {.color = pixels.channels == 4   ? PNG_COLOR_TYPE_RGBA
                          : pixels.channels == 1 ? PNG_COLOR_TYPE_GRAY
                                                 : PNG_COLOR_TYPE_RGB});
}

inline Bytes webp_of(const Pixels& pixels, bool lossless) {
  std::uint8_t* file = nullptr;
  std::size_t size = 0;
  const int stride = pixels.width * pixels.channels;
  const auto* data = pixels.data.data();
  if (lossless) {
    size = pixels.channels == 4
               ? WebPEncodeLosslessRGBA(data, pixels.width, pixels.height, stride, &file)
               : WebPEncodeLosslessRGB(data, pixels.width, pixels.height, stride, &file);
  } else {
    size = WebPEncodeRGB(data, pixels.width, pixels.height, stride, 90, &file);
  }
  Bytes bytes = to_bytes(file, size);
  WebPFree(file);
  return bytes;
}

inline Bytes bytes_of(std::string_view text) {
  return to_bytes(reinterpret_cast<const unsigned char*>(text.data()), text.size());
}

}  // namespace penstock::testing_images
