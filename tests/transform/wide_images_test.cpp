// Images of 16 bits a level: decoded, cropped and resized without losing one.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/transform/augment_image.hpp>
#include <penstock/transform/decode_image.hpp>

#include "src/transform/catalog.hpp"
#include "src/transform/wide_resize.hpp"
#include "tests/jpeg/images.hpp"
#include "tests/project_path.hpp"

namespace penstock::wide_test {
namespace {

using namespace testing_images;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Wide = std::vector<std::uint16_t>;

struct Made {
  std::vector<FieldSpec> specs;
  std::vector<Wide> fields;  // geometry, too, as pairs
  std::string fault;
};

Made run(const TransformPtr& transform, const ConstTensorView& in, std::uint64_t number = 0,
         std::uint16_t unwritten = 0xA5A5) {
  const bool is_encoded = in.shape().rank() == 1;
  Made made;
  made.specs = transform
                   ->bind(std::vector<FieldSpec>{
                       {"image", in.dtype(), is_encoded ? Shape{kDynamic} : in.shape()}})
                   .outputs;
  std::vector<TensorView> out;
  for (const FieldSpec& spec : made.specs) {
    made.fields.emplace_back((spec.bytes() + 1) / 2, unwritten);
    out.emplace_back(reinterpret_cast<std::byte*>(made.fields.back().data()), spec.dtype,
                     spec.shape);
  }
  Random random(RandomKey(7, 1), {.number = number});
  if (auto done = transform->apply(std::span(&in, 1), out, random); !done)
    made.fault = done.fault().reason;
  return made;
}

Made run(const TransformPtr& transform, const Bytes& file, std::uint64_t number = 0) {
  return run(transform, {file.data(), DType::u8, {std::ssize(file)}}, number);
}

Made run(const TransformPtr& transform, const Wide& levels, const Shape& shape,
         std::uint64_t number = 0, std::uint16_t unwritten = 0xA5A5) {
  return run(transform, {reinterpret_cast<const std::byte*>(levels.data()), DType::u16, shape},
             number, unwritten);
}

// As levels() of the program, for each of the channels a little different.
Wide levels_of(int height, int width, int channels = 1) {
  Wide all;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        all.push_back(static_cast<std::uint16_t>(x * 7919 + y * 104729 + x * y * 613 + c * 12345));
  return all;
}

Bytes png_of_levels(const Wide& levels, int height, int width, int color) {
  std::vector<std::uint8_t> samples;
  for (const std::uint16_t level : levels) {
    samples.push_back(static_cast<std::uint8_t>(level >> 8));
    samples.push_back(static_cast<std::uint8_t>(level));
  }
  return png_of(width, height, samples, {.color = color, .bits = 16});
}

Wide from_hex(const std::string& hex) {
  Wide all;
  for (std::size_t i = 0; i + 3 < hex.size(); i += 4)
    all.push_back(static_cast<std::uint16_t>(std::strtol(hex.substr(i, 4).c_str(), nullptr, 16)));
  return all;
}

struct Line {
  std::vector<int> numbers;
  std::string word;
  std::string result;
};

std::vector<Line> golden(const std::string& kind, std::size_t numbers) {
  std::ifstream file(test::project_path("tests/transform/golden/wide_images.txt"));
  std::vector<Line> all;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream words(text);
    std::string found, arrow;
    words >> found;
    if (found != kind) continue;
    Line line;
    line.numbers.resize(numbers);
    for (int& number : line.numbers) words >> number;
    words >> line.word >> arrow >> line.result;
    all.push_back(std::move(line));
  }
  return all;
}

ResizeFilter filter_of(const std::string& name) { return enum_of<ResizeFilter>(name).value(); }

TEST(WideImages, AreCutOutAndResizedAsByPillow) {
  const std::vector<Line> lines = golden("cut", 8);
  ASSERT_EQ(lines.size(), 8U);
  for (const Line& line : lines) {
    const auto& n = line.numbers;
    const Wide levels = levels_of(n[0], n[1]);
    transform::WideResize resize;
    Wide found(static_cast<std::size_t>(n[6] * n[7]));
    resize.run({levels.data(), 1},
               {.image = {n[0], n[1]},
                .sample = {n[6], n[7]},
                .region = {},
                .place = {0, 0, n[7], n[6]},
                .across = {n[2], n[4], n[7], 0, n[7]},
                .down = {n[3], n[5], n[6], 0, n[6]}},
               filter_of(line.word), 0, found.data());
    EXPECT_EQ(found, from_hex(line.result)) << line.word;
  }
}

TEST(WideImages, OfTheMiddleAreTorchvisions) {
  const std::vector<Line> lines = golden("center", 5);
  ASSERT_EQ(lines.size(), 8U);
  for (const Line& line : lines) {
    const auto& n = line.numbers;
    const Crop crop = center_crop({n[3], n[4]}, {.resize = n[2]});
    const Made made = run(crop_image({.crop = crop, .filter = filter_of(line.word)}),
                          levels_of(n[0], n[1]), {n[0], n[1], 1});
    EXPECT_EQ(made.fields[0], from_hex(line.result)) << line.word;
  }
}

TEST(WideImages, OfOtherFiltersAreTorchsWithinALevel) {
  const std::vector<Line> lines = golden("whole", 4);
  ASSERT_EQ(lines.size(), 6U);
  for (const Line& line : lines) {
    const auto& n = line.numbers;
    const Made made =
        run(crop_image({.crop = resize_to({n[2], n[3]}), .filter = filter_of(line.word)}),
            levels_of(n[0], n[1]), {n[0], n[1], 1});
    const Wide expected = from_hex(line.result);
    ASSERT_EQ(made.fields[0].size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_LE(std::abs(made.fields[0][i] - expected[i]), 1) << line.word;
  }
}

TEST(WideImages, HaveAllBitsOfTheirPng) {
  const std::vector<Line> lines = golden("png", 2);
  ASSERT_EQ(lines.size(), 1U);
  Bytes file;
  for (std::size_t i = 0; i < lines[0].word.size(); i += 2)
    file.push_back(
        static_cast<std::byte>(std::strtol(lines[0].word.substr(i, 2).c_str(), nullptr, 16)));
  const auto whole = [](int height, int width, int channels) {
    return decode_image(
        {.crop = resize_to({height, width}), .channels = channels, .dtype = DType::u16});
  };
  EXPECT_EQ(run(whole(7, 5, 1), file).fields[0], from_hex(lines[0].result));
  const Wide rgb = levels_of(9, 13, 3);
  const Made made = run(whole(9, 13, 3), png_of_levels(rgb, 9, 13, PNG_COLOR_TYPE_RGB));
  EXPECT_EQ(made.specs[0], (FieldSpec{"image", DType::u16, {9, 13, 3}}));
  EXPECT_EQ(made.fields[0], rgb);
  // A grey level is that of all three; alpha is dropped.
  const Made grey = run(whole(7, 5, 3), file);
  const Wide one = from_hex(lines[0].result);
  for (std::size_t i = 0; i < grey.fields[0].size(); ++i) ASSERT_EQ(grey.fields[0][i], one[i / 3]);
  Wide with_alpha;
  for (std::size_t i = 0; i < rgb.size(); ++i) {
    with_alpha.push_back(rgb[i]);
    if (i % 3 == 2) with_alpha.push_back(static_cast<std::uint16_t>(i));
  }
  EXPECT_EQ(run(whole(9, 13, 3), png_of_levels(with_alpha, 9, 13, PNG_COLOR_TYPE_RGBA)).fields[0],
            rgb);
}

std::vector<Crop> crops() {
  return {random_resized_crop({24, 30}),
          center_crop({16, 20}, {.resize = 33}),
          letterbox({31, 17}, {.fill = {1, 100, 255}}),
          random_crop({30, 25}, {.padding = 8, .fill = 7, .pad_if_needed = true}),
          scale_jitter({40, 20}, {.fill = 90}),
          cover_crop({30, 18}, {.position = CropPosition::random}),
          ten_crops({16, 20}, {.resize = 33})};
}

// An image of 8 bits whose levels are multiplied by 257 becomes what that of 8 bits becomes, but for its rounding.
TEST(WideImages, AreTheCropsOf8BitsMoreFinely) {
  const Pixels pixels = picture(60, 44);
  Wide levels;
  for (const std::uint8_t level : pixels.data)
    levels.push_back(static_cast<std::uint16_t>(257 * level));
  const Bytes narrow = png_of(pixels);
  const Bytes wide = png_of_levels(levels, 44, 60, PNG_COLOR_TYPE_RGB);
  for (const Crop& crop : crops())
    for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::bicubic,
                                      ResizeFilter::pillow_bilinear, ResizeFilter::nearest})
      for (std::uint64_t number = 0; number < 4; ++number) {
        SCOPED_TRACE(crop.to_string());
        DecodeImageOptions options{.crop = crop, .flip = 0.5F, .geometry = "g", .filter = filter};
        const Made eight = run(decode_image(options), narrow, number);
        options.dtype = DType::u16;
        const Made sixteen = run(decode_image(options), wide, number);
        ASSERT_EQ(sixteen.fault, "");
        ASSERT_EQ(sixteen.fields[1], eight.fields[1]);  // geometry
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(eight.fields[0].data());
        for (std::size_t i = 0; i < sixteen.fields[0].size(); ++i)
          ASSERT_NEAR(sixteen.fields[0][i] / 257.0, bytes[i],
                      filter == ResizeFilter::nearest ? 0.0 : 1.01)
              << "level " << i;
        // And of what is decoded already, whatever lay there before.
        const Made cropped =
            run(crop_image({.crop = crop, .flip = 0.5F, .filter = filter, .geometry = "g"}), levels,
                {44, 60, 3}, number, 3);
        ASSERT_EQ(cropped.fields, sixteen.fields);
      }
}

TEST(WideImages, AreSeveralViewsOfOneImage) {
  const Wide levels = levels_of(40, 31);
  const Bytes file = png_of_levels(levels, 40, 31, PNG_COLOR_TYPE_GRAY);
  const ImageView several{.field = "b", .crop = random_resized_crop(8), .count = 3, .flip = 0.5F};
  const Made views =
      run(decode_views({.views = {{.field = "a", .crop = five_crops(9, {.resize = 12})}, several},
                        .channels = 1,
                        .dtype = DType::u16}),
          file);
  EXPECT_EQ(views.specs[0], (FieldSpec{"a", DType::u16, {5, 9, 9, 1}}));
  EXPECT_EQ(views.specs[1], (FieldSpec{"b", DType::u16, {3, 8, 8, 1}}));
  EXPECT_EQ(
      views.fields[0],
      run(crop_image({.crop = five_crops(9, {.resize = 12})}), levels, {40, 31, 1}).fields[0]);
  const Wide& crops = views.fields[1];
  EXPECT_NE(Wide(crops.begin(), crops.begin() + 64), Wide(crops.begin() + 64, crops.begin() + 128));
}

TEST(WideImages, OthersAreFaults) {
  const auto fault_of = [](const Bytes& file, int channels) {
    return run(decode_image({.crop = resize_to(4), .channels = channels, .dtype = DType::u16}),
               file)
        .fault;
  };
  EXPECT_EQ(fault_of(png_of(picture(9, 9)), 3),
            "dtype u16 is for PNGs of 16 bits a level, found one of fewer");
  EXPECT_EQ(fault_of(jpeg_of(picture(9, 9)), 3),
            "dtype u16 is for PNGs of 16 bits a level, found a JPEG image");
  EXPECT_EQ(fault_of(png_of_levels(levels_of(9, 9, 3), 9, 9, PNG_COLOR_TYPE_RGB), 1),
            "one channel of 16 bits is for grey PNGs, found one with colours");
  Bytes cut = png_of_levels(levels_of(40, 40), 40, 40, PNG_COLOR_TYPE_GRAY);
  cut.resize(cut.size() / 2);
  EXPECT_THAT(fault_of(cut, 1), HasSubstr("premature end of PNG file"));
}

TEST(WideImages, WhatTakes8BitsSaysSo) {
  const auto refused = [](auto make, const std::string& text) {
    EXPECT_THAT(make, ThrowsMessage<std::invalid_argument>(HasSubstr(text)));
  };
  const Crop crop = resize_to(8);
  const std::vector<FieldSpec> wide{{"image", DType::u16, {8, 8, 1}}};
  refused([&] { (void)decode_image({.crop = crop, .dtype = DType::f32}); },
          "dtype is u8, or u16 for PNGs of 16 bits a level; found f32");
  refused(
      [&] {
        (void)decode_image(
            {.crop = crop, .dtype = DType::u16, .filter = ResizeFilter::pillow_bicubic});
      },
      "pillow_bicubic is not for 16 bits");
  refused([&] { (void)decode_image({.crop = crop, .dtype = DType::u16, .background = Color(1)}); },
          "a background is for dtype u8");
  refused(
      [&] { (void)crop_image({.crop = crop, .filter = ResizeFilter::pillow_bicubic})->bind(wide); },
      "pillow_bicubic is not for 16 bits");
  refused([&] { (void)augment_image({})->bind(wide); },
          "images of 16 bits are cropped and flipped, and no more");
}

TEST(WideImages, TravelInPlans) {
  const TransformPtr decode =
      decode_image({.crop = resize_to(8), .channels = 1, .dtype = DType::u16});
  EXPECT_EQ(transform::describe(*decode),
            "decode_image(crop=resize_to(size=8), channels=1, dtype='u16')");
  EXPECT_EQ(transform::make("decode_image", decode->description().options)->description().options,
            decode->description().options);
  EXPECT_THAT(decode_image({.crop = resize_to(8)})->description().options,
              testing::Not(HasSubstr("dtype")));
}

}  // namespace
}  // namespace penstock::wide_test
