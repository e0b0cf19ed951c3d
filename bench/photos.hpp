// The photographs that are measured: a folder's, and large ones made of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "src/jpeg/libjpeg/libjpeg_reader.hpp"
#include "src/transform/resize.hpp"
#include "tests/jpeg/images.hpp"

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

/// Photographs of 4000x3000 pixels, each sixteen small ones enlarged, with a sensor's noise.
inline std::vector<Bytes> large_photos(std::span<const Bytes> small, std::size_t count) {
  constexpr int kColumns = 4;
  constexpr int kRows = 4;
  constexpr int kWidth = 1000;
  constexpr int kHeight = 750;
  constexpr int kStride = kColumns * kWidth * 3;
  jpeg::JpegReader reader;
  transform::Resize resize;
  std::mt19937 random(7);
  std::normal_distribution<float> noise(0, 1.5F);
  std::vector<float> grain(65'536);
  for (float& value : grain) value = noise(random);
  std::vector<Bytes> large;
  std::size_t next = 0;
  while (large.size() < count && next < small.size()) {
    testing_images::Pixels pixels(kColumns * kWidth, kRows * kHeight, 3);
    for (int tile = 0; tile < kColumns * kRows && next < small.size(); ++next) {
      if (!reader.open(small[next])) continue;
      const Region box{.x = 0,
                       .y = 0,
                       .width = static_cast<double>(reader.width()),
                       .height = static_cast<double>(reader.height())};
      resize.plan(reader.width(), reader.height(), box, {kHeight, kWidth}, false);
      if (!reader.begin(resize.source(), resize.row_span(), jpeg::Chroma::smooth)) continue;
      std::uint8_t* const corner =
          pixels.data.data() + static_cast<std::ptrdiff_t>(tile / kColumns) * kHeight * kStride +
          static_cast<std::ptrdiff_t>(tile % kColumns) * kWidth * 3;
      if (resize.run(reader, corner, kStride)) ++tile;
      reader.close();
    }
    for (std::uint8_t& level : pixels.data)
      level = static_cast<std::uint8_t>(
          std::clamp(static_cast<float>(level) + grain[random() % grain.size()], 0.0F, 255.0F));
    large.push_back(
        testing_images::jpeg_of(pixels, {.sampling = {{2, 2}, {1, 1}, {1, 1}}, .quality = 90}));
  }
  return large;
}

}  // namespace penstock::speed
