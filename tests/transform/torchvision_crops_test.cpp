// Crops against torchvision's and Pillow's, which golden/torchvision_crops.py wrote down.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/transform/decode_image.hpp>

#include "src/transform/pillow_resize.hpp"
#include "tests/project_path.hpp"

namespace penstock::torchvision_test {
namespace {

using Levels = std::vector<std::uint8_t>;

struct Line {
  std::string kind;
  int height = 0;
  int width = 0;
  int number = 0;  // resize, or padding
  ImageSize crop;
  std::string filter;
  std::string result;
};

std::vector<Line> lines_of(const std::string& kind) {
  std::ifstream file(test::project_path("tests/transform/golden/torchvision_crops.txt"));
  std::vector<Line> all;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream words(text);
    Line line;
    words >> line.kind;
    if (line.kind != kind) continue;
    words >> line.height >> line.width >> line.number >> line.crop.height >> line.crop.width;
    if (kind != "geometry" && kind != "covering") words >> line.filter;
    std::string arrow;
    words >> arrow;
    std::getline(words >> std::ws, line.result);
    all.push_back(line);
  }
  return all;
}

Levels levels_of(const std::string& hex) {
  Levels levels;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    levels.push_back(static_cast<std::uint8_t>(std::strtol(hex.substr(i, 2).c_str(), nullptr, 16)));
  return levels;
}

// As picture() of the program.
Levels picture(int height, int width) {
  Levels pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        pixels.push_back(static_cast<std::uint8_t>(
            64 + (x * (37 + c * 11) + y * (91 - c * 23) + x * y * (c + 1)) % 128));
  return pixels;
}

ResizeFilter filter_of(const std::string& name) { return enum_of<ResizeFilter>(name).value(); }

struct Cropped {
  Levels levels;
  std::vector<std::int32_t> geometry;
};

Cropped cropped(const Line& line, const Crop& crop, std::uint64_t sample = 0) {
  const TransformPtr transform =
      crop_image({.crop = crop, .filter = filter_of(line.filter), .geometry = "geometry"});
  Levels pixels = picture(line.height, line.width);
  const auto parts = static_cast<std::size_t>(std::max(crop.parts(), 1));
  Cropped out{Levels(parts * static_cast<std::size_t>(3 * line.crop.height * line.crop.width)),
              std::vector<std::int32_t>(8 * parts)};
  const ConstTensorView in(reinterpret_cast<const std::byte*>(pixels.data()), DType::u8,
                           {line.height, line.width, 3});
  const std::vector<FieldSpec> specs =
      transform->bind(std::vector<FieldSpec>{{"image", DType::u8, {line.height, line.width, 3}}})
          .outputs;
  const std::vector<TensorView> places{
      {reinterpret_cast<std::byte*>(out.levels.data()), DType::u8, specs[0].shape},
      {reinterpret_cast<std::byte*>(out.geometry.data()), DType::i32, specs[1].shape}};
  EXPECT_EQ(places[0].byte_size(), out.levels.size());
  EXPECT_EQ(places[1].byte_size(), 4 * out.geometry.size());
  Random random(RandomKey(7, 0), {.number = sample});
  EXPECT_TRUE(transform->apply(std::span(&in, 1), places, random));
  return out;
}

int largest_difference(const Levels& a, const Levels& b) {
  EXPECT_EQ(a.size(), b.size());
  int largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// `line` has the size of the resized image, and where the crop begins in it.
void expect_geometry(const Line& line, const Crop& crop) {
  std::istringstream numbers(line.result);
  int height = 0;
  int width = 0;
  int top = 0;
  int left = 0;
  numbers >> height >> width >> top >> left;
  Random random(RandomKey(7, 0), {});
  const Placement found = *choose_placement(crop, line.width, line.height, random);
  EXPECT_EQ(found.place, (PixelRect{0, 0, line.crop.width, line.crop.height}));
  EXPECT_DOUBLE_EQ(found.region.x, 1.0 * left * line.width / width);
  EXPECT_DOUBLE_EQ(found.region.y, 1.0 * top * line.height / height);
  EXPECT_DOUBLE_EQ(found.region.width, 1.0 * line.crop.width * line.width / width);
  EXPECT_DOUBLE_EQ(found.region.height, 1.0 * line.crop.height * line.height / height);
}

TEST(TorchvisionCrops, CenterCropHasItsSizesAndOffsets) {
  const std::vector<Line> lines = lines_of("geometry");
  ASSERT_EQ(lines.size(), 400U);
  for (const Line& line : lines)
    expect_geometry(line, center_crop(line.crop, {.resize = line.number}));
}

TEST(TorchvisionCrops, CoverCropHasItsSizesAndOffsets) {
  const std::vector<Line> lines = lines_of("covering");
  ASSERT_EQ(lines.size(), 200U);
  for (const Line& line : lines) expect_geometry(line, cover_crop(line.crop));
}

TEST(TorchvisionCrops, CoverCropsPixelsAreWithinALevel) {
  const std::vector<Line> lines = lines_of("cover");
  ASSERT_EQ(lines.size(), 10U);
  for (const Line& line : lines)
    EXPECT_LE(
        largest_difference(cropped(line, cover_crop(line.crop)).levels, levels_of(line.result)), 1)
        << line.height << "x" << line.width << " " << line.filter;
}

TEST(TorchvisionCrops, CenterCropsPixelsAreWithinALevel) {
  const std::vector<Line> lines = lines_of("center");
  ASSERT_EQ(lines.size(), 8U);
  for (const Line& line : lines)
    EXPECT_LE(
        largest_difference(cropped(line, center_crop(line.crop, {.resize = line.number})).levels,
                           levels_of(line.result)),
        1)
        << line.height << "x" << line.width << " " << line.filter;
}

TEST(TorchvisionCrops, LetterboxsPixelsAreWithinALevel) {
  const std::vector<Line> lines = lines_of("letterbox");
  ASSERT_EQ(lines.size(), 8U);
  for (const Line& line : lines)
    EXPECT_LE(
        largest_difference(cropped(line, letterbox(line.crop)).levels, levels_of(line.result)), 1)
        << line.height << "x" << line.width << " " << line.filter;
}

TEST(TorchvisionCrops, WithPillowsFiltersPixelsAreItsBitByBit) {
  const auto crop_of = [](const Line& line) {
    if (line.kind == "center") return center_crop(line.crop, {.resize = line.number});
    return line.kind == "cover" ? cover_crop(line.crop) : letterbox(line.crop);
  };
  for (const char* kind : {"center", "cover", "letterbox"})
    for (Line line : lines_of(kind)) {
      const Crop crop = crop_of(line);
      line.filter = "pillow_" + line.filter;
      EXPECT_EQ(cropped(line, crop).levels, levels_of(line.result))
          << kind << " " << line.height << "x" << line.width << " " << line.filter;
    }
}

TEST(TorchvisionCrops, FiveAndTenCropsAreItsBitByBit) {
  const std::vector<Line> lines = lines_of("ten");
  ASSERT_EQ(lines.size(), 4U);
  for (Line line : lines) {
    const Levels expected = levels_of(line.result);
    EXPECT_LE(largest_difference(
                  cropped(line, ten_crops(line.crop, {.resize = line.number})).levels, expected),
              1);
    line.filter = "pillow_bilinear";
    const Cropped ten = cropped(line, ten_crops(line.crop, {.resize = line.number}));
    EXPECT_EQ(ten.levels, expected) << line.height << "x" << line.width;
    for (std::size_t part = 0; part < 10; ++part)
      EXPECT_EQ(ten.geometry[8 * part + 4], part < 5 ? 0 : 1);  // whether it is mirrored
    EXPECT_EQ(cropped(line, five_crops(line.crop, {.resize = line.number})).levels,
              Levels(expected.begin(), expected.begin() + std::ssize(expected) / 2));
  }
}

// As sharp() of the program, four bytes a pixel.
Levels sharp_rows(int height, int width) {
  Levels pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c)
        pixels.push_back(
            static_cast<std::uint8_t>(x * x * (37 + c * 11) + y * (91 - c * 23) + x * y * (c + 1)));
      pixels.push_back(77);
    }
  return pixels;
}

TEST(TorchvisionCrops, WhatIsCutOutAndResizedByPillowsFiltersIsItsBitByBit) {
  std::ifstream file(test::project_path("tests/transform/golden/torchvision_crops.txt"));
  std::string text;
  int lines = 0;
  while (std::getline(file, text)) {
    std::istringstream words(text);
    std::string kind, filter, arrow, result;
    int height = 0, width = 0, x = 0, y = 0, cut_width = 0, cut_height = 0;
    ImageSize size;
    words >> kind >> height >> width >> x >> y >> cut_width >> cut_height >> size.height >>
        size.width >> filter >> arrow >> result;
    if (kind != "cut") continue;
    ++lines;
    const Levels pixels = sharp_rows(height, width);
    for (const bool mirror : {false, true}) {
      transform::PillowResize resize;
      resize.plan({x, cut_width, size.width, 0, size.width},
                  {y, cut_height, size.height, 0, size.height}, mirror,
                  filter_of("pillow_" + filter));
      const PixelRect read = resize.source();
      EXPECT_TRUE(read.x >= x && read.y >= y && read.x + read.width <= x + cut_width &&
                  read.y + read.height <= y + cut_height);
      jpeg::MemoryRows rows(pixels.data(), static_cast<std::size_t>(width) * 4, read.x);
      Levels found(static_cast<std::size_t>(size.height * size.width * 3));
      ASSERT_TRUE(resize.run(rows, found.data(), size.width * 3));
      Levels expected = levels_of(result);
      for (int row = 0; mirror && row < size.height; ++row)
        for (int left = 0, right = size.width - 1; left < right; ++left, --right)
          for (int c = 0; c < 3; ++c)
            std::swap(expected[static_cast<std::size_t>((row * size.width + left) * 3 + c)],
                      expected[static_cast<std::size_t>((row * size.width + right) * 3 + c)]);
      EXPECT_EQ(found, expected) << text.substr(0, 60) << " " << mirror;
    }
  }
  EXPECT_EQ(lines, 10);
}

// Where what the whole image would become has more pixels than an int counts.
TEST(TorchvisionCrops, PillowsFiltersTakeLongLines) {
  const struct {
    int height, width;
    Crop crop;
  } cases[] = {{1, 60'000, resize_to({1, 40'000})},
               {1, 4096, center_crop(8, {.resize = 1 << 20})},
               {4096, 1, center_crop(8, {.resize = 1 << 20})},
               {64, 64, scale_jitter(8, {.scale = {9e8, 1e9}})}};
  for (const auto& [height, width, crop] : cases) {
    Line line;
    line.height = height;
    line.width = width;
    line.crop = crop.size();
    line.filter = "bilinear";
    const Levels expected = cropped(line, crop).levels;
    line.filter = "pillow_bilinear";
    EXPECT_LE(largest_difference(cropped(line, crop).levels, expected), 1)
        << height << "x" << width;
  }
}

TEST(TorchvisionCrops, RandomCropIsOneOfThePaddedImagesBitByBit) {
  const Line line = lines_of("pad").at(0);
  const Levels all = levels_of(line.result);
  const Crop crop = random_crop(line.crop, {.padding = line.number, .fill = {9, 80, 200}});
  const int columns = line.width + 2 * line.number - line.crop.width + 1;
  std::set<std::pair<int, int>> seen;
  for (std::uint64_t sample = 0; sample < 300; ++sample) {
    const Cropped found = cropped(line, crop, sample);
    const int left = found.geometry[0] + line.number;
    const int top = found.geometry[1] + line.number;
    seen.insert({left, top});
    const auto from = static_cast<std::ptrdiff_t>(found.levels.size()) * (top * columns + left);
    ASSERT_TRUE(std::equal(found.levels.begin(), found.levels.end(), all.begin() + from))
        << left << ", " << top;
  }
  EXPECT_EQ(seen.size(), 30U);
}

}  // namespace
}  // namespace penstock::torchvision_test
