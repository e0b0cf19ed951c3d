// Crops of images that are decoded already: those of decode_image.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/transform/decode_image.hpp>

#include "src/transform/catalog.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock {
namespace {

using namespace testing_images;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Made {
  Pixels pixels;
  std::vector<std::int32_t> geometry;
  std::string fault;

  friend bool operator==(const Made&, const Made&) = default;
};

Made run(const TransformPtr& transform, const ConstTensorView& in, ImageSize size, int channels,
         std::uint64_t number, std::uint8_t unwritten = 0xA5) {
  Made made{Pixels(size.width, size.height, channels), std::vector<std::int32_t>(8), {}};
  std::ranges::fill(made.pixels.data, unwritten);
  const std::vector<TensorView> out{
      {reinterpret_cast<std::byte*>(made.pixels.data.data()),
       DType::u8,
       {size.height, size.width, channels}},
      {reinterpret_cast<std::byte*>(made.geometry.data()), DType::i32, {8}}};
  Random random(RandomKey(7, 1), {.number = number});
  if (auto done = transform->apply(std::span(&in, 1), out, random); !done)
    made.fault = done.fault().reason;
  return made;
}

Made crop_pixels(const Pixels& pixels, CropImageOptions options, std::uint64_t number = 0,
                 std::uint8_t unwritten = 0xA5) {
  options.geometry = "g";
  // Where the image ends, so does its memory: nothing behind it may be read.
  const std::vector<std::uint8_t> exact(pixels.data);
  const ConstTensorView in(reinterpret_cast<const std::byte*>(exact.data()), DType::u8,
                           {pixels.height, pixels.width, pixels.channels});
  const ImageSize size = options.crop.size();
  return run(crop_image(options), in, size, pixels.channels, number, unwritten);
}

Made decode_pixels(const Pixels& pixels, const CropImageOptions& options, std::uint64_t number) {
  const Bytes bytes = png_of(pixels);
  const ConstTensorView in(bytes.data(), DType::u8, {std::ssize(bytes)});
  return run(
      decode_image(
          {.crop = options.crop, .flip = options.flip, .geometry = "g", .filter = options.filter}),
      in, options.crop.size(), 3, number);
}

std::vector<Crop> crops() {
  return {random_resized_crop({24, 30}),
          center_crop({16, 20}, {.resize = 33}),
          resize_to({13, 50}),
          letterbox({31, 17}, {.fill = 200}),
          random_crop({30, 25}, {.padding = 8, .fill = 7, .pad_if_needed = true}),
          scale_jitter({40, 20}, {.fill = 90}),
          cover_crop({30, 18}),
          cover_crop({14, 40}, {.position = CropPosition::random})};
}

TEST(CropImage, MakesThePixelsOfDecodeImageBitByBit) {
  for (const auto& [width, height] : {std::pair(32, 32), {1, 1}, {3, 400}, {500, 2}, {131, 97}}) {
    const Pixels pixels = picture(width, height);
    for (const Crop& crop : crops()) {
      for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::bicubic}) {
        const CropImageOptions options{.crop = crop, .flip = 0.5F, .filter = filter};
        for (std::uint64_t number = 0; number < 8; ++number)
          ASSERT_EQ(crop_pixels(pixels, options, number), decode_pixels(pixels, options, number))
              << crop.to_string() << " of " << width << "x" << height;
      }
    }
  }
}

TEST(CropImage, OneChannelIsAnyOfThreeEqualOnes) {
  const Pixels grey = picture(57, 43, 1);
  Pixels color(57, 43, 3);
  for (std::size_t i = 0; i < color.data.size(); ++i) color.data[i] = grey.data[i / 3];
  for (const Crop& crop : crops()) {
    for (std::uint64_t number = 0; number < 8; ++number) {
      const CropImageOptions options{.crop = crop, .flip = 0.5F};
      const Made one = crop_pixels(grey, options, number);
      const Made three = crop_pixels(color, options, number);
      ASSERT_EQ(one, crop_pixels(grey, options, number, 0)) << "something is not written";
      ASSERT_EQ(one.geometry, three.geometry);
      for (std::size_t i = 0; i < three.pixels.data.size(); ++i)
        ASSERT_EQ(three.pixels.data[i], one.pixels.data[i / 3]) << crop.to_string();
    }
  }
}

TEST(CropImage, TakesImagesOfOneOrOfManySizes) {
  const auto outputs = [](const Shape& shape, const Crop& crop = letterbox({8, 6})) {
    const std::vector<FieldSpec> fields{{"image", DType::u8, shape}};
    return crop_image({.crop = crop})->bind(fields).outputs;
  };
  using Fields = std::vector<FieldSpec>;
  EXPECT_EQ(outputs({32, 32, 3}), (Fields{{"image", DType::u8, {8, 6, 3}}}));
  EXPECT_EQ(outputs({kDynamic, kDynamic, 3}), (Fields{{"image", DType::u8, {8, 6, 3}}}));
  EXPECT_EQ(outputs({28, 28, 1}), (Fields{{"image", DType::u8, {8, 6, 1}}}));
  for (const Shape& wrong :
       {Shape{kDynamic}, Shape{32, 32}, Shape{32, 32, 4}, Shape{32, 32, kDynamic}})
    EXPECT_THAT([&] { (void)outputs(wrong); },
                ThrowsMessage<std::invalid_argument>(
                    HasSubstr("crop_image needs a decoded image, u8 or u16 [H,W,3] or [H,W,1]")));
  EXPECT_THAT(
      [&] {
        (void)outputs({28, 28, 1}, letterbox(8, {.fill = {1, 2, 3}}));
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("images of one channel cannot have")));
  const std::vector<FieldSpec> floats{{"image", DType::f32, {32, 32, 3}}};
  EXPECT_THROW((void)crop_image({.crop = letterbox(8)})->bind(floats), std::invalid_argument);
}

TEST(CropImage, CallsAnImageThatCannotBeCroppedAFault) {
  EXPECT_THAT(crop_pixels(Pixels(0, 5, 3), {.crop = letterbox(8)}).fault,
              HasSubstr("an image of 5x0 pixels"));
  EXPECT_THAT(crop_pixels(picture(7, 9), {.crop = random_crop(8)}).fault,
              HasSubstr("smaller than the crop"));
}

TEST(CropImage, RefusesOptionsThatCannotWork) {
  const auto refused = [](const CropImageOptions& options, const std::string& message) {
    EXPECT_THAT([&] { (void)crop_image(options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  refused({}, "crop_image: there is no crop");
  refused({.field = "", .crop = letterbox(8)}, "crop_image: name the field");
  refused({.crop = letterbox(8), .flip = -1}, "crop_image: flip is a probability");
  refused({.crop = letterbox(8), .geometry = "image"}, "geometry cannot be named 'image'");
}

TEST(CropImage, IsMadeAgainFromItsDescription) {
  for (const Crop& crop : crops()) {
    const CropImageOptions options{.field = "photo",
                                   .crop = crop,
                                   .flip = 0.25F,
                                   .filter = ResizeFilter::bicubic,
                                   .geometry = "g"};
    const Description written = crop_image(options)->description();
    EXPECT_EQ(transform::make("crop_image", written.options)->description().options,
              written.options);
  }
  EXPECT_EQ(crop_image({.crop = random_crop(32, {.padding = 4}), .flip = 0.5F})->description().text,
            "crop_image(crop=random_crop(size=32, padding=4), flip=0.5)");
}

}  // namespace
}  // namespace penstock
