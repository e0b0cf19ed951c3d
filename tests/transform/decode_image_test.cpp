#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/transform/decode_image.hpp>

#include "src/transform/catalog.hpp"
#include "src/transform/resize.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock {
namespace {

using namespace testing_images;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::uint8_t kUnwritten = 0xA5;

struct Decoded {
  Pixels pixels;
  std::vector<std::int32_t> geometry;
  std::string fault;  // empty on success

  friend bool operator==(const Decoded&, const Decoded&) = default;
};

Random random_for(std::uint64_t number, std::uint64_t seed = 7) {
  return Random(RandomKey(seed, 1), SampleId{.number = number});
}

Decoded decode(const Bytes& bytes, DecodeImageOptions options, std::uint64_t number = 0,
               std::uint8_t fill = kUnwritten) {
  const ImageSize size = options.crop.size();
  const bool geometry = !options.geometry.empty();
  const TransformPtr transform = decode_image(std::move(options));
  Decoded result{Pixels(size.width, size.height, options.channels),
                 std::vector<std::int32_t>(geometry ? 8 : 0),
                 {}};
  std::ranges::fill(result.pixels.data, fill);
  const ConstTensorView in(bytes.data(), DType::u8, {std::ssize(bytes)});
  std::vector<TensorView> out{{reinterpret_cast<std::byte*>(result.pixels.data.data()),
                               DType::u8,
                               {size.height, size.width, result.pixels.channels}}};
  if (geometry)
    out.emplace_back(reinterpret_cast<std::byte*>(result.geometry.data()), DType::i32, Shape{8});
  Random random = random_for(number);
  auto done = transform->apply(std::span(&in, 1), out, random);
  if (!done) result.fault = done.fault().reason;
  return result;
}

// The image as it is, pixel for pixel.
Decoded decode_all(const Bytes& bytes, int width, int height) {
  return decode(bytes, {.crop = resize_to({height, width})});
}

int largest_difference(const Pixels& a, const Pixels& b) {
  EXPECT_EQ(a.data.size(), b.data.size());
  int largest = 0;
  for (std::size_t i = 0; i < std::min(a.data.size(), b.data.size()); ++i)
    largest = std::max(largest, std::abs(a.data[i] - b.data[i]));
  return largest;
}

Pixels mirrored(const Pixels& pixels) {
  Pixels out = pixels;
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x)
      std::copy_n(pixels.at(out.width - 1 - x, y), out.channels, out.at(x, y));
  return out;
}

Pixels rgb_of(const Pixels& pixels) {
  Pixels out(pixels.width, pixels.height, 3);
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) std::copy_n(pixels.at(x, y), 3, out.at(x, y));
  return out;
}

TEST(DecodeImage, GivesLibjpegsPixelsWhereNothingIsResized) {
  for (const bool progressive : {false, true}) {
    const Bytes bytes = jpeg_of(picture(75, 58),
                                {.sampling = {{2, 2}, {1, 1}, {1, 1}}, .progressive = progressive});
    const Decoded result = decode_all(bytes, 75, 58);
    EXPECT_EQ(result.fault, "");
    EXPECT_EQ(result.pixels, libjpeg_whole(bytes, true)) << "chroma is smooth by default";
    const auto by = [&](JpegDecoder decoder) {
      return decode(bytes, {.crop = resize_to({58, 75}), .decoder = decoder}).pixels;
    };
    EXPECT_EQ(by(JpegDecoder::reference), result.pixels);
    EXPECT_NE(libjpeg_whole(bytes), result.pixels);
    EXPECT_EQ(by(JpegDecoder::fast), libjpeg_whole(bytes));
    EXPECT_EQ(by(JpegDecoder::libjpeg), libjpeg_whole(bytes));
  }
}

TEST(DecodeImage, DecodesGreyRgbCmykAndYcck) {
  Pixels grey = gradient(48, 40, 1);
  const Decoded from_grey = decode_all(
      jpeg_of(grey, {.input = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .sampling = {{1, 1}}}), 48,
      40);
  for (int x = 0; x < 48; ++x)
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(from_grey.pixels.at(x, 20)[c], grey.at(x, 20)[0], 4);

  const Pixels rgb = gradient(48, 40);
  EXPECT_LE(largest_difference(decode_all(jpeg_of(rgb, {.stored = JCS_RGB}), 48, 40).pixels, rgb),
            8);

  // As Adobe stores it: 255 is no ink.
  Pixels cmyk(48, 40, 4);
  Pixels expected(48, 40, 3);
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 48; ++x) {
      std::copy_n(rgb.at(x, y), 3, cmyk.at(x, y));
      cmyk.at(x, y)[3] = 200;
      for (int c = 0; c < 3; ++c)
        expected.at(x, y)[c] = static_cast<std::uint8_t>(rgb.at(x, y)[c] * 200 / 255);
    }
  }
  for (const J_COLOR_SPACE stored : {JCS_CMYK, JCS_YCCK}) {
    const Bytes bytes = jpeg_of(cmyk, {.input = JCS_CMYK, .stored = stored});
    EXPECT_LE(largest_difference(decode_all(bytes, 48, 40).pixels, expected), 10) << stored;
  }
}

TEST(DecodeImage, DecodesPngOfEveryKindWithoutTouchingItsSamples) {
  const Pixels rgb = picture(33, 21);
  EXPECT_EQ(decode_all(png_of(rgb), 33, 21).pixels, rgb);
  EXPECT_EQ(decode_all(png_of(33, 21, rgb.data, {.interlaced = true}), 33, 21).pixels, rgb);

  const Pixels rgba = picture(33, 21, 4);
  EXPECT_EQ(decode_all(png_of(rgba), 33, 21).pixels, rgb_of(rgba)) << "alpha is dropped";

  std::vector<std::uint8_t> wide;
  for (const std::uint8_t sample : rgb.data) wide.insert(wide.end(), {sample, sample});
  EXPECT_EQ(decode_all(png_of(33, 21, wide, {.bits = 16}), 33, 21).pixels, rgb);

  const Pixels grey = picture(33, 21, 1);
  const Decoded from_grey =
      decode_all(png_of(33, 21, grey.data, {.color = PNG_COLOR_TYPE_GRAY}), 33, 21);
  const Pixels two = picture(33, 21, 2);
  const Decoded from_two =
      decode_all(png_of(33, 21, two.data, {.color = PNG_COLOR_TYPE_GRAY_ALPHA}), 33, 21);
  std::vector<std::uint8_t> indices;
  for (const std::uint8_t sample : grey.data) indices.push_back(sample % 3);
  const std::vector<png_color> palette{{10, 20, 30}, {200, 100, 0}, {1, 2, 255}};
  const Decoded from_palette = decode_all(
      png_of(33, 21, indices, {.color = PNG_COLOR_TYPE_PALETTE, .palette = palette}), 33, 21);
  for (int y = 0; y < 21; ++y) {
    for (int x = 0; x < 33; ++x) {
      const png_color color = palette[grey.at(x, y)[0] % 3];
      EXPECT_EQ(from_palette.pixels.at(x, y)[0], color.red);
      EXPECT_EQ(from_palette.pixels.at(x, y)[1], color.green);
      EXPECT_EQ(from_palette.pixels.at(x, y)[2], color.blue);
      for (int c = 0; c < 3; ++c) {
        EXPECT_EQ(from_grey.pixels.at(x, y)[c], grey.at(x, y)[0]);
        EXPECT_EQ(from_two.pixels.at(x, y)[c], two.at(x, y)[0]);
      }
    }
  }
}

// Pillow's alpha_composite over an opaque background.
int over(int level, int alpha, int background) {
  return static_cast<int>(std::floor((level * alpha + background * (255 - alpha)) / 255.0 + 0.5));
}

Pixels composited(const Pixels& rgba, const Color& background) {
  Pixels out(rgba.width, rgba.height, 3);
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) {
      const std::uint8_t* from = rgba.at(x, y);
      std::uint8_t* to = out.at(x, y);
      to[0] = static_cast<std::uint8_t>(over(from[0], from[3], background.red));
      to[1] = static_cast<std::uint8_t>(over(from[1], from[3], background.green));
      to[2] = static_cast<std::uint8_t>(over(from[2], from[3], background.blue));
    }
  return out;
}

TEST(DecodeImage, CompositesWhatIsTransparentOverABackground) {
  // All alphas with all levels.
  Pixels rgba(256, 256, 4);
  for (int y = 0; y < 256; ++y)
    for (int x = 0; x < 256; ++x) {
      const std::array<int, 4> levels{x, 255 - x, (x * 7) % 256, y};
      for (int c = 0; c < 4; ++c)
        rgba.at(x, y)[c] = static_cast<std::uint8_t>(levels[static_cast<std::size_t>(c)]);
    }
  for (const Color& background : {Color(255), Color(0), Color(10, 100, 200)}) {
    const DecodeImageOptions options{.crop = resize_to(256), .background = background};
    EXPECT_EQ(decode(png_of(rgba), options).pixels, composited(rgba, background));
    Pixels visible = rgba;  // libwebp clears what is invisible
    for (int x = 0; x < 256; ++x) visible.at(x, 0)[3] = 1;
    EXPECT_EQ(decode(webp_of(visible, true), options).pixels, composited(visible, background));
  }
}

TEST(DecodeImage, ABackgroundChangesNothingThatIsOpaque) {
  const Pixels pixels = picture(33, 21);
  for (const Bytes& bytes : {jpeg_of(pixels), png_of(pixels), webp_of(pixels, true)})
    EXPECT_EQ(decode(bytes, {.crop = resize_to({21, 33}), .background = Color(9)}),
              decode(bytes, {.crop = resize_to({21, 33})}));
}

TEST(DecodeImage, KnowsTheTransparencyOfGreyAndOfPalettes) {
  const Pixels two = picture(9, 7, 2);
  const Bytes grey = png_of(9, 7, two.data, {.color = PNG_COLOR_TYPE_GRAY_ALPHA});
  const Decoded found = decode(grey, {.crop = resize_to({7, 9}), .background = Color(77)});
  for (int y = 0; y < 7; ++y)
    for (int x = 0; x < 9; ++x)
      EXPECT_EQ(found.pixels.at(x, y)[1], over(two.at(x, y)[0], two.at(x, y)[1], 77));

  // One colour of the palette is transparent: tRNS, a chunk before the pixels.
  const std::vector<png_color> palette{{10, 20, 30}, {200, 100, 0}};
  Bytes indexed = png_of(2, 1, {0, 1}, {.color = PNG_COLOR_TYPE_PALETTE, .palette = palette});
  const Bytes chunk = bytes_of(std::string_view("\0\0\0\1tRNS\0\x40\xe6\xd8\x66", 13));
  const Bytes data = bytes_of("IDAT");
  indexed.insert(std::ranges::search(indexed, data).begin() - 4, chunk.begin(), chunk.end());
  const Decoded kept = decode(indexed, {.crop = resize_to({1, 2})});
  EXPECT_EQ(kept.fault, "");
  EXPECT_EQ(kept.pixels.data, (std::vector<std::uint8_t>{10, 20, 30, 200, 100, 0}));
  const Decoded over_blue =
      decode(indexed, {.crop = resize_to({1, 2}), .background = Color(0, 0, 255)});
  EXPECT_EQ(over_blue.pixels.data, (std::vector<std::uint8_t>{0, 0, 255, 200, 100, 0}));
}

// Where the place of the image in the sample is at, and how large the image is there.
TEST(DecodeImage, FillsWhatIsBesideTheImage) {
  const Pixels pixels = picture(40, 20);
  const Crop crop = letterbox({30, 40}, {.fill = {1, 2, 3}});
  for (const Bytes& bytes : {png_of(pixels), webp_of(pixels, true)}) {
    const Decoded found = decode(bytes, {.crop = crop, .geometry = "g"});
    ASSERT_EQ(found.fault, "");
    for (int y = 0; y < 30; ++y)
      for (int x = 0; x < 40; ++x)
        for (int c = 0; c < 3; ++c)
          ASSERT_EQ(found.pixels.at(x, y)[c], y < 5 || y >= 25 ? c + 1 : pixels.at(x, y - 5)[c]);
    // The sample covers five rows above and below the image.
    EXPECT_EQ(found.geometry, (std::vector<std::int32_t>{0, -5, 40, 30, 0, 40, 20, 1}));
  }
}

TEST(DecodeImage, MirrorsTheFillWithTheImage) {
  const Bytes bytes = png_of(picture(12, 10));
  const Crop crop = random_crop(11, {.padding = 6, .fill = {1, 2, 3}});
  for (std::uint64_t number = 0; number < 50; ++number)
    ASSERT_EQ(decode(bytes, {.crop = crop, .flip = 1}, number).pixels,
              mirrored(decode(bytes, {.crop = crop}, number).pixels));
}

TEST(DecodeImage, DecodesLosslessAndLossyWebp) {
  const Pixels rgb = picture(33, 21);
  EXPECT_EQ(decode_all(webp_of(rgb, true), 33, 21).pixels, rgb);
  Pixels rgba = picture(33, 21, 4);
  for (std::size_t i = 3; i < rgba.data.size(); i += 4)
    rgba.data[i] = std::max<std::uint8_t>(rgba.data[i], 1);  // libwebp clears what is invisible
  EXPECT_EQ(decode_all(webp_of(rgba, true), 33, 21).pixels, rgb_of(rgba)) << "alpha is dropped";
  const Pixels smooth = gradient(64, 48);
  EXPECT_LE(largest_difference(decode_all(webp_of(smooth, false), 64, 48).pixels, smooth), 24);
}

TEST(DecodeImage, RefusesAnAnimatedWebpWithoutAFrame) {
  // VP8X with the animation flag, 16x16, followed by an ANIM chunk.
  const Bytes bytes = bytes_of(std::string_view(
      "RIFF\x24\0\0\0WEBPVP8X\x0A\0\0\0\x02\0\0\0\x0F\0\0\x0F\0\0ANIM\x06\0\0\0\0\0\0\0\0\0", 44));
  EXPECT_EQ(decode_all(bytes, 16, 16).fault, "corrupt WebP data");
}

TEST(DecodeImage, ResizesTheRegionThatTheCropChooses) {
  const Crop crop = random_resized_crop({40, 50});
  for (const bool progressive : {false, true}) {
    const Bytes bytes = jpeg_of(picture(211, 157),
                                {.sampling = {{2, 2}, {1, 1}, {1, 1}}, .progressive = progressive});
    const Pixels whole = libjpeg_whole(bytes, true);
    Pixels padded(whole.width, whole.height + 1, 4);
    for (int y = 0; y < whole.height; ++y)
      for (int x = 0; x < whole.width; ++x) std::copy_n(whole.at(x, y), 3, padded.at(x, y));
    for (std::uint64_t number = 0; number < 50; ++number) {
      Random random = random_for(number);
      const Region region = choose_placement(crop, whole.width, whole.height, random)->region;
      transform::Resize resize;
      resize.plan(whole.width, whole.height, region, crop.size(), false);
      jpeg::MemoryRows rows(padded.data.data(), static_cast<std::size_t>(whole.width) * 4,
                            resize.source().x);
      Pixels expected(50, 40, 3);
      ASSERT_TRUE(resize.run(rows, expected.data.data(), 150));
      ASSERT_EQ(decode(bytes, {.crop = crop}, number).pixels, expected) << "sample " << number;
    }
  }
}

TEST(DecodeImage, GivesEqualBytesForEqualArguments) {
  const Bytes bytes = jpeg_of(picture(300, 200), {.sampling = {{2, 2}, {1, 1}, {1, 1}}});
  const DecodeImageOptions options{
      .crop = random_resized_crop(64), .flip = 0.5F, .geometry = "region"};
  std::vector<Decoded> once;
  for (std::uint64_t i = 0; i < 20; ++i) once.push_back(decode(bytes, options, i));
  EXPECT_NE(once[0].geometry, once[1].geometry);
  std::vector<std::jthread> threads;
  std::array<bool, 4> equal{};
  for (std::size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      equal[t] = true;
      for (std::uint64_t i = 20; i-- > 0;)
        equal[t] = equal[t] && decode(bytes, options, i, 0) == once[i];
    });
  }
  threads.clear();
  EXPECT_THAT(equal, testing::Each(true));
}

TEST(DecodeImage, FlipsWithTheGivenProbabilityAndLeavesTheCropAlone) {
  const Bytes bytes = jpeg_of(picture(120, 90), {});
  const Crop crop = random_resized_crop(32);
  int flips = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Decoded never = decode(bytes, {.crop = crop, .geometry = "g"}, i);
    const Decoded always = decode(bytes, {.crop = crop, .flip = 1, .geometry = "g"}, i);
    const Decoded half = decode(bytes, {.crop = crop, .flip = 0.5F, .geometry = "g"}, i);
    ASSERT_EQ(never.geometry[4], 0);
    ASSERT_EQ(always.geometry[4], 1);
    ASSERT_TRUE(
        std::equal(never.geometry.begin(), never.geometry.begin() + 4, always.geometry.begin()));
    ASSERT_EQ(always.pixels, mirrored(never.pixels));
    ASSERT_EQ(half.pixels, half.geometry[4] != 0 ? always.pixels : never.pixels);
    flips += half.geometry[4];
  }
  EXPECT_GT(flips, 70);
  EXPECT_LT(flips, 130);
}

// The pixel of the stored image that is shown at (u, v), from the words of the EXIF standard.
std::pair<int, int> stored_at(int orientation, int u, int v, int width, int height) {
  switch (orientation) {
    case 2:
      return {width - 1 - u, v};
    case 3:
      return {width - 1 - u, height - 1 - v};
    case 4:
      return {u, height - 1 - v};
    case 5:
      return {v, u};
    case 6:
      return {v, height - 1 - u};
    case 7:
      return {width - 1 - v, height - 1 - u};
    case 8:
      return {width - 1 - v, u};
    default:
      return {u, v};
  }
}

Pixels upright(const Pixels& stored, int orientation) {
  const bool turned = orientation >= 5;
  Pixels out(turned ? stored.height : stored.width, turned ? stored.width : stored.height, 3);
  for (int v = 0; v < out.height; ++v) {
    for (int u = 0; u < out.width; ++u) {
      const auto [x, y] = stored_at(orientation, u, v, stored.width, stored.height);
      std::copy_n(stored.at(x, y), 3, out.at(u, v));
    }
  }
  return out;
}

class Exif : public testing::TestWithParam<int> {};

TEST_P(Exif, IsTurnedUprightBeforeItIsCropped) {
  const int orientation = GetParam();
  for (const bool big_endian : {false, true}) {
    const Bytes bytes = jpeg_of(picture(83, 61), {.sampling = {{2, 2}, {1, 1}, {1, 1}},
                                                  .app1 = exif_app1(orientation, big_endian)});
    const Pixels stored = libjpeg_whole(bytes, true);
    const Pixels turned = upright(stored, orientation);
    const DecodeImageOptions all{.crop = resize_to({turned.height, turned.width}), .geometry = "g"};
    const Decoded whole = decode(bytes, all);
    EXPECT_EQ(whole.pixels, turned);
    EXPECT_EQ(whole.geometry,
              (std::vector<std::int32_t>{0, 0, turned.width, turned.height, 0, turned.width,
                                         turned.height, orientation}));
    DecodeImageOptions flipped = all;
    flipped.flip = 1;
    EXPECT_EQ(decode(bytes, flipped).pixels, mirrored(turned));

    // A PNG of the upright pixels knows no orientation. Mirrored sums may round the other way.
    const Bytes same = png_of(turned);
    for (std::uint64_t i = 0; i < 40; ++i) {
      const DecodeImageOptions part{
          .crop = random_resized_crop({24, 30}), .flip = 0.5F, .geometry = "g"};
      const Decoded found = decode(bytes, part, i);
      const Decoded expected = decode(same, part, i);
      ASSERT_LE(largest_difference(found.pixels, expected.pixels), 1) << "sample " << i;
      ASSERT_TRUE(std::equal(found.geometry.begin(), found.geometry.begin() + 7,
                             expected.geometry.begin()));
    }

    // Where nothing is resized they are the same to the bit, and so is the fill around them.
    for (std::uint64_t i = 0; i < 40; ++i) {
      const DecodeImageOptions part{
          .crop = random_crop({75, 70}, {.padding = 30, .fill = {1, 2, 3}, .pad_if_needed = true}),
          .flip = 0.5F};
      ASSERT_EQ(decode(bytes, part, i), decode(same, part, i)) << "sample " << i;
    }

    DecodeImageOptions ignoring{.crop = resize_to({61, 83}), .exif = false, .geometry = "g"};
    const Decoded as_stored = decode(bytes, ignoring);
    EXPECT_EQ(as_stored.pixels, stored);
    EXPECT_EQ(as_stored.geometry[7], 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Orientations, Exif, testing::Range(1, 9));

TEST(DecodeImage, TakesNonsenseInExifAsUpright) {
  const Pixels pixels = picture(40, 24);
  const Bytes plain = jpeg_of(pixels);
  for (const int value : {0, 9, 255})
    EXPECT_EQ(decode_all(jpeg_of(pixels, {.app1 = exif_app1(value)}), 40, 24).pixels,
              libjpeg_whole(plain, true));
  const Bytes whole = exif_app1(6);
  std::mt19937 random(4);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(decode_all(jpeg_of(pixels, {.app1 = cut}), 40, 24).fault, "");
    Bytes odd = whole;
    odd[size] = static_cast<std::byte>(random());
    EXPECT_EQ(decode_all(jpeg_of(pixels, {.app1 = odd}), 40, 24).fault, "");
  }
}

TEST(DecodeImage, SaysWhatSomethingElseIs) {
  EXPECT_EQ(decode_all({}, 8, 8).fault, "empty: 0 bytes");
  EXPECT_EQ(decode_all(bytes_of("8BPS..."), 8, 8).fault,
            "not an image that can be decoded: found a Photoshop image");
  EXPECT_EQ(
      decode_all(bytes_of("version https://git-lfs.github.com/spec/v1"), 8, 8).fault,
      "not an image that can be decoded: found a Git LFS pointer (git lfs pull gets the file)");
  EXPECT_EQ(decode_all(bytes_of("\n <!DOCTYPE HTML>"), 8, 8).fault,
            "not an image that can be decoded: found an HTML page");
  EXPECT_EQ(decode_all(bytes_of("no\n'"), 8, 8).fault,
            R"(not an image that can be decoded: it starts with 'no\x0a\x27')");
  EXPECT_EQ(decode_all(bytes_of("x"), 8, 8).fault,
            "not an image that can be decoded: it starts with 'x'");
  EXPECT_EQ(decode_all(bytes_of(std::string_view("\xFF\xD8", 2)), 8, 8).fault,
            R"(not an image that can be decoded: it starts with '\xff\xd8')");
}

// Writes another width and height into a file's header.
Bytes claim(Bytes bytes, const Bytes& marker, std::size_t at, std::initializer_list<int> numbers) {
  const auto found = std::ranges::search(bytes, marker);
  auto out = found.begin() + static_cast<std::ptrdiff_t>(at);
  for (const int number : numbers) *out++ = static_cast<std::byte>(number);
  return bytes;
}

TEST(DecodeImage, RefusesAHeaderThatClaimsTooMuchBeforeItAllocates) {
  const Pixels pixels = picture(20, 20);
  const Bytes jpeg = claim(jpeg_of(pixels), bytes_of("\xFF\xC0"), 5,
                           {60000 >> 8, 60000 & 255, 60000 >> 8, 60000 & 255});
  EXPECT_EQ(decode_all(jpeg, 8, 8).fault,
            "the header says 60000x60000 = 3600 megapixels, and the limit is 200: raise "
            "max_megapixels if this is real");

  Bytes png = png_of(1000000, 900000, {});
  const Bytes data = bytes_of(std::string_view("\0\0\1\0IDAT", 8));
  png.insert(png.end(), data.begin(), data.end());
  EXPECT_THAT(decode_all(png, 8, 8).fault,
              HasSubstr("1000000x900000 = 900000 megapixels, and the limit is 200"));

  const Bytes webp = claim(webp_of(pixels, true), bytes_of("VP8L"), 9, {0xFF, 0xFF, 0xFF, 0x0F});
  EXPECT_THAT(decode_all(webp, 8, 8).fault,
              HasSubstr("16384x16384 = 268.435 megapixels, and the limit is 200"));

  for (const Bytes& small : {jpeg_of(pixels), png_of(pixels), webp_of(pixels, false)}) {
    const DecodeImageOptions options{.crop = resize_to(8), .max_megapixels = 0.000399};
    EXPECT_THAT(decode(small, options).fault, HasSubstr("20x20 = 0.0004 megapixels"));
    EXPECT_EQ(decode(small, {.crop = resize_to(8), .max_megapixels = 0.0004}).fault, "");
  }
}

TEST(DecodeImage, RefusesAJpegOfMoreThanAHundredScans) {
  // One scan for every coefficient of every component: each costs a pass over the image.
  std::vector<jpeg_scan_info> scans{{3, {0, 1, 2}, 0, 0, 0, 0}};
  for (int component = 0; component < 3; ++component)
    for (int k = 1; k < 64; ++k) scans.push_back({1, {component}, k, k, 0, 0});
  const Pixels pixels = picture(64, 64);
  EXPECT_EQ(decode_all(jpeg_of(pixels, {.scans = scans}), 64, 64).fault,
            "more than 100 scans: save the image as a JPEG with fewer");
  scans.resize(100);
  const Bytes just = jpeg_of(pixels, {.scans = scans});
  EXPECT_EQ(decode_all(just, 64, 64).fault, "");
}

std::map<std::string, Bytes> files() {
  const Pixels pixels = picture(61, 47);
  return {{"jpeg", jpeg_of(pixels, {.sampling = {{2, 2}, {1, 1}, {1, 1}}, .app1 = exif_app1(6)})},
          {"jpeg with restarts", jpeg_of(pixels, {.restart = 2})},
          {"progressive", jpeg_of(pixels, {.progressive = true})},
          {"cmyk", jpeg_of(picture(61, 47, 4), {.input = JCS_CMYK, .stored = JCS_CMYK})},
          {"png", png_of(pixels)},
          {"interlaced png", png_of(61, 47, pixels.data, {.interlaced = true})},
          {"lossless webp", webp_of(pixels, true)},
          {"webp", webp_of(pixels, false)}};
}

// A fault, or a success that wrote everything: then the memory's old contents cannot be told.
std::string expect_whole_or_fault(const Bytes& bytes, const Crop& crop, std::uint64_t number) {
  const DecodeImageOptions options{.crop = crop, .max_megapixels = 1};
  const Decoded a = decode(bytes, options, number, 0);
  const Decoded b = decode(bytes, options, number, 255);
  EXPECT_EQ(a.fault, b.fault);
  if (a.fault.empty()) {
    EXPECT_EQ(a.pixels, b.pixels);
  }
  return a.fault;
}

TEST(DecodeImage, FaultsOnEveryTruncationThatTouchesTheRegion) {
  for (const auto& [name, bytes] : files()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(expect_whole_or_fault(bytes, resize_to(20), 0), "");
    const std::size_t step = bytes.size() > 4000 ? 7 : 1;
    for (std::size_t size = 0; size < bytes.size(); size += step) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      const std::string fault = expect_whole_or_fault(cut, resize_to(20), 0);
      // The last bytes are the end marker's and padding; the pixels are whole before them.
      if (size + 8 < bytes.size()) {
        ASSERT_NE(fault, "") << "the first " << size << " bytes";
      }
    }
  }
}

// As Pillow's convert("L").
Pixels grey_of(const Pixels& pixels) {
  Pixels grey(pixels.width, pixels.height, 1);
  for (std::size_t k = 0; k < grey.data.size(); ++k) {
    const auto level = [&](std::size_t c) { return unsigned{pixels.data[3 * k + c]}; };
    grey.data[k] = static_cast<std::uint8_t>(
        (level(0) * 19595 + level(1) * 38470 + level(2) * 7471 + 0x8000) >> 16);
  }
  return grey;
}

TEST(DecodeImage, OfOneChannelHasTheLumaOfItsPixels) {
  const Crop fills = letterbox({12, 31}, {.fill = {9, 9, 9}});
  for (const auto& [name, bytes] : files())
    for (const Crop& crop : {resize_to(20), fills})
      for (const float flip : {0.0F, 1.0F}) {
        SCOPED_TRACE(name);
        const Decoded color = decode(bytes, {.crop = crop, .flip = flip});
        ASSERT_EQ(color.fault, "");
        EXPECT_EQ(decode(bytes, {.crop = crop, .flip = flip, .channels = 1}).pixels,
                  grey_of(color.pixels));
      }
  const Bytes turned = jpeg_of(picture(20, 31), {.app1 = exif_app1(6)});
  EXPECT_EQ(decode(turned, {.crop = resize_to({31, 20}), .channels = 1}).pixels,
            grey_of(decode_all(turned, 20, 31).pixels));
  // What is grey keeps its levels.
  const Pixels grey = picture(24, 16, 1);
  EXPECT_EQ(decode(png_of(24, 16, grey.data, {.color = PNG_COLOR_TYPE_GRAY}),
                   {.crop = resize_to({16, 24}), .channels = 1})
                .pixels,
            grey);
}

// Bytes between the scan and the end marker, such as careless programs write.
Bytes with_stray_bytes(const Bytes& jpeg) {
  Bytes stray(jpeg.begin(), jpeg.end() - 2);
  for (const int byte : {0x12, 0x34, 0x56}) stray.push_back(static_cast<std::byte>(byte));
  stray.insert(stray.end(), jpeg.end() - 2, jpeg.end());
  return stray;
}
// Between two segments of the header.
Bytes with_stray_header_bytes(const Bytes& jpeg) {
  Bytes stray(jpeg.begin(), jpeg.begin() + 20);
  EXPECT_EQ(jpeg[20], std::byte{0xFF});  // behind JFIF's
  for (const int byte : {0x00, 0x01}) stray.push_back(static_cast<std::byte>(byte));
  stray.insert(stray.end(), jpeg.begin() + 20, jpeg.end());
  return stray;
}

TEST(DecodeImage, ToleratesWhatLibjpegOnlyWarnsAboutWhereAsked) {
  for (const JpegDecoder decoder : {JpegDecoder::reference, JpegDecoder::libjpeg}) {
    const auto stats = std::make_shared<JpegStats>();
    const auto with = [&](const Bytes& bytes, bool tolerant) {
      return decode(
          bytes,
          {.crop = resize_to({40, 60}), .tolerant = tolerant, .decoder = decoder, .stats = stats});
    };
    const Bytes whole = jpeg_of(picture(60, 40));
    const Decoded expected = with(whole, true);
    EXPECT_EQ(expected, with(whole, false));
    EXPECT_EQ(stats->counts().tolerated, 0U);
    std::uint64_t count = 0;
    for (const Bytes& stray : {with_stray_bytes(whole), with_stray_header_bytes(whole)}) {
      if (const Decoded strict = with(stray, false); !strict.fault.empty()) {
        EXPECT_THAT(strict.fault, AllOf(HasSubstr("xtraneous bytes"),
                                        HasSubstr(" (tolerant = true takes it, as Pillow does)")));
        ++count;
      }
      EXPECT_EQ(with(stray, true), expected);
    }
    EXPECT_GE(count, 1U);
    EXPECT_EQ(stats->counts().tolerated, count);
    // The end of a file is no warning that anybody passes over; what is missing before a marker becomes grey.
    Bytes cut(whole.begin(), whole.end() - 200);
    EXPECT_THAT(with(cut, true).fault, HasSubstr("remature end"));
    EXPECT_EQ(stats->counts().tolerated, count);
    cut.insert(cut.end(), whole.end() - 2, whole.end());
    EXPECT_THAT(with(cut, false).fault, HasSubstr("remature end"));
    EXPECT_EQ(with(cut, true).fault, "");
    EXPECT_EQ(stats->counts().tolerated, count + 1);
    // The next image is judged strictly again, and one that is an error gets no such hint.
    EXPECT_NE(with(with_stray_header_bytes(whole), false).fault, "");
    Bytes lossless = whole;
    const std::array frame{std::byte{0xFF}, std::byte{0xC0}};
    *(std::ranges::search(lossless, frame).begin() + 1) = std::byte{0xC3};
    EXPECT_THAT(with(lossless, false).fault,
                AllOf(HasSubstr("Unsupported JPEG process"), testing::Not(HasSubstr("tolerant"))));
  }
}

TEST(DecodeImage, LooksAtNothingBelowTheRegion) {
  // Central crops end well above the last rows.
  const Bytes bytes = jpeg_of(picture(200, 400), {});
  const Bytes cut(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(bytes.size() / 8));
  const Crop crop = center_crop(32, {.resize = 64});
  EXPECT_EQ(decode(cut, {.crop = crop}), decode(bytes, {.crop = crop}));
  EXPECT_EQ(decode(cut, {.crop = crop}).fault, "");
  EXPECT_THAT(decode(cut, {.crop = resize_to(9)}).fault, HasSubstr("remature end"));
}

TEST(DecodeImage, SurvivesRandomDamage) {
  std::mt19937 random(99);
  int faults = 0;
  for (const auto& [name, bytes] : files()) {
    SCOPED_TRACE(name);
    for (std::uint64_t i = 0; i < 400; ++i) {
      Bytes damaged = bytes;
      for (std::uint32_t n = 1 + random() % 6; n-- > 0;) {
        const std::size_t at = random() % damaged.size();
        switch (random() % 4) {
          case 0:
            damaged[at] = static_cast<std::byte>(random());
            break;
          case 1:
            damaged[at] ^= static_cast<std::byte>(1U << random() % 8);
            break;
          case 2:
            damaged.erase(damaged.begin() + static_cast<std::ptrdiff_t>(at),
                          damaged.begin() + static_cast<std::ptrdiff_t>(
                                                std::min(at + 1 + random() % 9, damaged.size())));
            break;
          default:
            damaged.insert(damaged.begin() + static_cast<std::ptrdiff_t>(at),
                           static_cast<std::byte>(random()));
        }
        if (damaged.empty()) break;
      }
      faults += !expect_whole_or_fault(damaged, random_resized_crop(16), i).empty();
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(faults, 800);
}

TEST(DecodeImage, RefusesOptionsThatCannotWork) {
  const Crop crop = resize_to(8);
  const auto made = [](DecodeImageOptions options) {
    return [options] { (void)decode_image(options); };
  };
  EXPECT_THAT(made({}), ThrowsMessage<std::invalid_argument>(HasSubstr("there is no crop")));
  EXPECT_THAT(made({.field = "", .crop = crop}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("name the field")));
  for (const float flip : {-0.1F, 1.1F, std::nanf("")})
    EXPECT_THAT(made({.crop = crop, .flip = flip}),
                ThrowsMessage<std::invalid_argument>(HasSubstr("between 0 and 1")));
  for (const double limit : {0.0, -1.0, std::nan("")})
    EXPECT_THAT(made({.crop = crop, .max_megapixels = limit}),
                ThrowsMessage<std::invalid_argument>(HasSubstr("more than 0")));
  EXPECT_THAT(made({.crop = crop, .background = Color(0, -1, 0)}),
              ThrowsMessage<std::invalid_argument>(
                  "decode_image: background: a level is 0 to 255, found -1"));
  EXPECT_THAT(made({.crop = crop, .channels = 2}),
              ThrowsMessage<std::invalid_argument>(
                  "decode_image: channels are 3, of RGB, or 1, of grey; found 2"));
  EXPECT_THAT(made({.crop = crop, .geometry = "image"}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("cannot be named 'image'")));
}

TEST(DecodeImage, IsMadeAgainFromItsDescription) {
  for (const Crop& crop :
       {random_resized_crop({5, 6}, {.scale = {0.2, 0.3}, .ratio = {1, 2}}),
        center_crop({5, 6}, {.resize = 9}), resize_to({5, 6}), letterbox({5, 6}),
        letterbox({5, 6}, {.fill = {1, 2, 3}}), cover_crop({5, 6}),
        cover_crop({5, 6}, {.position = CropPosition::random}), random_crop({5, 6}),
        five_crops({5, 6}, {.resize = 9}), ten_crops({5, 6}),
        random_crop({5, 6}, {.padding = 4, .fill = 7, .pad_if_needed = true}),
        scale_jitter({5, 6}, {.scale = {0.5, 1.5}, .fill = {4, 5, 6}})}) {
    const Description written =
        decode_image({.crop = crop, .background = Color(1, 2, 3)})->description();
    const TransformPtr again = transform::make("decode_image", written.options);
    EXPECT_EQ(again->description().options, written.options);
    EXPECT_THAT(written.options, HasSubstr(R"("background":[1,2,3])"));
    const std::string grey = decode_image({.crop = letterbox(5), .channels = 1, .tolerant = true})
                                 ->description()
                                 .options;
    EXPECT_EQ(transform::make("decode_image", grey)->description().options, grey);
    EXPECT_THAT(grey, HasSubstr(R"("channels":1,"tolerant":true)"));
    // Plans without a background say nothing of it.
    EXPECT_THAT(decode_image({.crop = crop})->description().options,
                AllOf(testing::Not(HasSubstr("background")), testing::Not(HasSubstr("channels")),
                      testing::Not(HasSubstr("tolerant"))));
  }
}

TEST(DecodeImage, RefusesDescriptionsThatCannotBe) {
  const auto refused = [](const std::string& options, const std::string& message) {
    EXPECT_THAT([&] { (void)transform::make("decode_image", options); },
                ThrowsMessage<Error>(HasSubstr(message)))
        << options;
  };
  refused(R"({"crop": {"zoom": {"size": [8, 8]}}})",
          "decode_image: 'crop': there is no crop 'zoom'; expected one of random_resized_crop, "
          "center_crop, resize_to, letterbox, random_crop, scale_jitter, five_crops, ten_crops, "
          "cover_crop");
  refused(R"({"crop": {"letterbox": {"size": [8]}}})",
          "'size': expected [height, width], found [8]");
  refused(R"({"crop": {"letterbox": {"size": [8, 8], "fill": [1, 2]}}})",
          "letterbox: 'fill': expected [red, green, blue], found [1,2]");
  refused(R"({"crop": {"random_crop": {"size": [8, 8], "pad": 4}}})", "'pad'");
  refused(R"({"crop": {"scale_jitter": {}}})", "'size' is missing");
  refused(R"({"crop": {"cover_crop": {"size": [8, 8], "position": "top"}}})",
          "'position': expected one of \"center\", \"random\"");
  refused(R"({"crop": {"scale_jitter": {"size": [8, 8], "scale": [1]}}})",
          "'scale': expected [low, high], found [1]");
  refused(R"({"crop": {"resize_to": {"size": [8, 8]}}, "background": [1]})",
          "decode_image: 'background': expected [red, green, blue]");
}

TEST(DecodeImage, BindsToEncodedBytesAndPutsOutASample) {
  const std::vector<FieldSpec> fields{{"label", DType::i64, {}}, {"image", DType::u8, {kDynamic}}};
  const Binding plain = decode_image({.crop = resize_to({6, 8})})->bind(fields);
  EXPECT_EQ(plain.inputs, std::vector<std::size_t>{1});
  EXPECT_EQ(plain.outputs, (std::vector<FieldSpec>{{"image", DType::u8, {6, 8, 3}}}));
  const Binding both =
      decode_image({.crop = resize_to({6, 8}), .geometry = "region"})->bind(fields);
  EXPECT_EQ(both.outputs,
            (std::vector<FieldSpec>{{"image", DType::u8, {6, 8, 3}}, {"region", DType::i32, {8}}}));
}

TEST(DecodeImage, NamesTheFieldsThatThereAreWhereOneDoesNotFit) {
  const TransformPtr transform = decode_image({.field = "photo", .crop = resize_to({6, 8})});
  const std::vector<FieldSpec> other{{"label", DType::i64, {}}, {"image", DType::u8, {kDynamic}}};
  EXPECT_THAT([&] { (void)transform->bind(other); },
              ThrowsMessage<std::invalid_argument>(AllOf(
                  HasSubstr("'photo'"), HasSubstr("label i64 []"), HasSubstr("image u8 [?]"))));
  for (const FieldSpec& wrong :
       {FieldSpec{"photo", DType::i8, {kDynamic}}, FieldSpec{"photo", DType::u8, {8, 8, 3}}}) {
    EXPECT_THAT([&] { (void)transform->bind(std::span(&wrong, 1)); },
                ThrowsMessage<std::invalid_argument>(
                    AllOf(HasSubstr("u8 [?]"), HasSubstr(wrong.to_string()))));
  }
}

TEST(DecodeImage, DescribesEveryParameter) {
  const Crop crop = resize_to({6, 8});
  std::vector<std::string> texts;
  for (const DecodeImageOptions& options :
       {DecodeImageOptions{.crop = crop}, DecodeImageOptions{.field = "photo", .crop = crop},
        DecodeImageOptions{.crop = resize_to({8, 6})},
        DecodeImageOptions{.crop = crop, .flip = 0.25F},
        DecodeImageOptions{.crop = crop, .max_megapixels = 3},
        DecodeImageOptions{.crop = crop, .exif = false},
        DecodeImageOptions{.crop = crop, .background = Color(0)},
        DecodeImageOptions{.crop = crop, .geometry = "region"}})
    texts.push_back(decode_image(options)->description().options);
  std::ranges::sort(texts);
  EXPECT_EQ(std::ranges::adjacent_find(texts), texts.end());
  EXPECT_EQ(decode_image({.crop = crop, .flip = 0.25F})->description().text,
            "decode_image(crop=resize_to(size=(6, 8)), flip=0.25)");
  // What has the same pixels differs in what changes speed only, which states do not see.
  const auto by = [&](JpegDecoder decoder) {
    return decode_image({.crop = crop, .decoder = decoder})->description().text;
  };
  EXPECT_EQ(by(JpegDecoder::fast), "decode_image(crop=resize_to(size=(6, 8)), decoder='fast')");
  EXPECT_EQ(by(JpegDecoder::libjpeg),
            "decode_image(crop=resize_to(size=(6, 8)), decoder='libjpeg')");
}

TEST(DecodeImage, GreyImagesAreNotFilledWithAColor) {
  const Crop color = letterbox(8, {.fill = {1, 2, 3}});
  const auto refused = [](auto make) {
    EXPECT_THAT(make, ThrowsMessage<std::invalid_argument>(HasSubstr(
                          "images of one channel cannot have a fill of three levels, (1, 2, 3)")));
  };
  refused([&] { (void)decode_image({.crop = color, .channels = 1}); });
  refused([&] { (void)decode_views({.views = {{.field = "a", .crop = color}}, .channels = 1}); });
  EXPECT_NO_THROW((void)decode_image({.crop = color}));
  EXPECT_NO_THROW((void)decode_image({.crop = letterbox(8), .channels = 1}));
}

}  // namespace
}  // namespace penstock
