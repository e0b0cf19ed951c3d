// The photographs that are measured: a folder's, and large ones made of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <jpeglib.h>

#include "src/transform/jpeg.hpp"
#include "src/transform/resize.hpp"

namespace penstock::speed {

using Bytes = std::vector<std::byte>;

inline std::vector<Bytes> read_photos(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) names.push_back(entry.path());
  std::ranges::sort(names);
  std::vector<Bytes> photos;
  for (const auto& name : names) {
    std::ifstream in(name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    photos.emplace_back(data, data + text.size());
  }
  return photos;
}

/// A baseline JPEG with chroma at half the size, of rows of RGB.
inline Bytes encode(const std::vector<std::uint8_t>& pixels, int width, int height, int quality) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr error;
  jpeg.err = jpeg_std_error(&error);
  jpeg_create_compress(&jpeg);
  unsigned char* file = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &file, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<std::uint8_t*>(pixels.data()) +
                std::size_t{jpeg.next_scanline} * static_cast<std::size_t>(width) * 3;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const auto* first = reinterpret_cast<const std::byte*>(file);
  Bytes bytes(first, first + size);
  std::free(file);
  return bytes;
}

/// Photographs of 4000x3000 pixels, each sixteen small ones enlarged, with a sensor's noise.
inline std::vector<Bytes> large_photos(std::span<const Bytes> small, std::size_t count) {
  constexpr int kColumns = 4;
  constexpr int kRows = 4;
  constexpr int kWidth = 1000;
  constexpr int kHeight = 750;
  constexpr int kStride = kColumns * kWidth * 3;
  detail::JpegReader reader;
  detail::Resize resize;
  std::mt19937 random(7);
  std::normal_distribution<float> noise(0, 1.5F);
  std::vector<float> grain(65'536);
  for (float& value : grain) value = noise(random);
  std::vector<Bytes> large;
  std::size_t next = 0;
  while (large.size() < count && next < small.size()) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kStride) * kRows * kHeight);
    for (int tile = 0; tile < kColumns * kRows && next < small.size(); ++next) {
      if (!reader.open(small[next])) continue;
      const Region box{.x = 0,
                       .y = 0,
                       .width = static_cast<double>(reader.width()),
                       .height = static_cast<double>(reader.height())};
      resize.plan(reader.width(), reader.height(), box, {kHeight, kWidth}, false);
      if (!reader.begin(resize.source(), resize.row_span(), detail::Upsampling::smooth)) continue;
      std::uint8_t* const corner =
          pixels.data() + static_cast<std::ptrdiff_t>(tile / kColumns) * kHeight * kStride +
          static_cast<std::ptrdiff_t>(tile % kColumns) * kWidth * 3;
      if (resize.run(reader, corner, kStride)) ++tile;
      reader.close();
    }
    for (std::uint8_t& level : pixels)
      level = static_cast<std::uint8_t>(
          std::clamp(static_cast<float>(level) + grain[random() % grain.size()], 0.0F, 255.0F));
    large.push_back(encode(pixels, kColumns * kWidth, kRows * kHeight, 90));
  }
  return large;
}

}  // namespace penstock::speed
