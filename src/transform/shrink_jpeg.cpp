#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <penstock/transform/shrink_jpeg.hpp>

#include "src/jpeg/libjpeg/libjpeg_reader.hpp"
#include "src/jpeg/libjpeg/libjpeg_writer.hpp"
#include "src/transform/resize.hpp"

namespace penstock {

namespace {

using jpeg::JpegFormat;
using jpeg::JpegReader;

// Writes what the original has: its chroma subsampling, grey, and the profile.
JpegFormat format_of(const JpegReader& original, ImageSize size, int quality) {
  JpegFormat format{.width = size.width,
                    .height = size.height,
                    .quality = quality,
                    .optimized = true,
                    .orientation = original.orientation()};
  const int components = original.components();
  if (components == 1) format.pixels = JpegFormat::Pixels::grey;
  // One that was made for CMYK means nothing for what is stored here.
  if (components != 4) format.profile = original.profile();
  if (components != 3) return format;
  // Others than these are rare, and lose nothing by being stored in full.
  constexpr std::array kOne{1, 1};
  const auto [h, v] = original.sampling_factors(0);
  if (original.sampling_factors(1) == kOne && original.sampling_factors(2) == kOne &&
      (h == 1 || h == 2 || h == 4) && (v == 1 || v == 2)) {
    format.h = h;
    format.v = v;
  }
  return format;
}

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
  JpegReader reader;
  if (!reader.open(jpeg, JpegReader::Keep::profile))
    return Fault{.reason = std::string(reader.message())};
  const int width = reader.width();
  const int height = reader.height();
  if (std::max(width, height) <= options.longest_side)
    return ShrunkJpeg{
        .bytes = {jpeg.begin(), jpeg.end()}, .kept = true, .width = width, .height = height};
  const ImageSize size = shrunk(width, height, options.longest_side);

  transform::Resize resize;
  resize.plan(
      width, height,
      {.x = 0, .y = 0, .width = static_cast<double>(width), .height = static_cast<double>(height)},
      size, false);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width) *
                                   static_cast<std::size_t>(size.height) * 3);
  if (!reader.begin(resize.source(), resize.row_span(), jpeg::Chroma::smooth) ||
      !resize.run(reader, pixels.data(), std::ptrdiff_t{3} * size.width))
    return Fault{.reason = std::string(reader.message())};

  const JpegFormat format = format_of(reader, size, options.quality);
  if (format.pixels == JpegFormat::Pixels::grey) {
    for (std::size_t i = 0; i < pixels.size() / 3; ++i) pixels[i] = pixels[3 * i];
  }
  jpeg::LibjpegWriter writer;
  if (!writer.encode(format, pixels.data())) return Fault{.reason = std::string(writer.message())};
  const std::span<const std::byte> bytes = writer.bytes();
  return ShrunkJpeg{
      .bytes = {bytes.begin(), bytes.end()}, .width = size.width, .height = size.height};
}

}  // namespace penstock
