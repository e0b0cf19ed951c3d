#include <cmath>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/transform/decode_image.hpp>
#include <penstock/transform/shrink_jpeg.hpp>

#include "src/jpeg/decoder/header.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock {
namespace {

using namespace testing_images;  // NOLINT(google-build-using-namespace)

ShrunkJpeg shrink(const Bytes& file, const ShrinkJpegOptions& options) {
  auto result = shrink_jpeg(file, options);
  EXPECT_TRUE(result) << (result ? "" : result.fault().reason);
  return result ? std::move(*result) : ShrunkJpeg{};
}

jpeg::JpegHeader header_of(const Bytes& file) {
  jpeg::JpegHeader header;
  EXPECT_EQ(jpeg::read_jpeg_header(file, header), std::nullopt);
  return header;
}

// The whole image at that size, as decode_image makes it, turned upright.
std::vector<std::uint8_t> resized(const Bytes& file, int height, int width) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(height * width * 3));
  const ConstTensorView in(file.data(), DType::u8, {std::ssize(file)});
  const std::vector<TensorView> out{
      {reinterpret_cast<std::byte*>(pixels.data()), DType::u8, {height, width, 3}}};
  Random random(RandomKey(1, 1), SampleId{.number = 1});
  const auto transform =
      decode_image({.crop = resize_to({height, width}), .decoder = JpegDecoder::reference});
  EXPECT_TRUE(transform->apply(std::span(&in, 1), out, random));
  return pixels;
}

double psnr(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(int{a[i]} - int{b[i]}, 2);
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) / std::max(squares, 1e-9));
}

TEST(ShrinkJpeg, IsTheResizedPictureWithTheChromaOfTheOriginal) {
  for (const auto& luma : {std::array{1, 1}, {2, 1}, {2, 2}, {1, 2}}) {
    const Bytes file =
        jpeg_of(picture(403, 309), {.sampling = {luma, {1, 1}, {1, 1}}, .quality = 95});
    const ShrunkJpeg small = shrink(file, {.longest_side = 200, .quality = 95});
    EXPECT_FALSE(small.kept);
    EXPECT_EQ(small.width, 200);
    EXPECT_EQ(small.height, 153);
    EXPECT_LT(small.bytes.size(), file.size());
    const jpeg::JpegHeader header = header_of(small.bytes);
    EXPECT_EQ(header.width, 200);
    EXPECT_EQ(header.height, 153);
    EXPECT_EQ((std::array{header.h, header.v}), luma);
    EXPECT_GT(psnr(resized(small.bytes, 153, 200), resized(file, 153, 200)), 27);
  }
}

TEST(ShrinkJpeg, KeepsWhatIsSmallEnoughByteForByte) {
  const Bytes file = jpeg_of(picture(150, 200), {.progressive = true});
  const ShrunkJpeg same = shrink(file, {.longest_side = 200});
  EXPECT_TRUE(same.kept);
  EXPECT_EQ(same.bytes, file);
  EXPECT_FALSE(shrink(file, {.longest_side = 199}).kept);
  EXPECT_EQ(shrink(file, {.longest_side = 1}).width, 1);
}

TEST(ShrinkJpeg, KeepsTheOrientationAsATag) {
  const Pixels pixels = picture(300, 200);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Bytes file = jpeg_of(pixels, {.quality = 95, .app1 = exif_app1(orientation)});
    const ShrunkJpeg small = shrink(file, {.longest_side = 150, .quality = 95});
    EXPECT_EQ(small.width, 150) << "as stored";
    EXPECT_EQ(header_of(small.bytes).orientation, orientation);
    const bool turned = orientation > 4;
    const int height = turned ? 150 : 100;
    const int width = turned ? 100 : 150;
    EXPECT_GT(psnr(resized(small.bytes, height, width), resized(file, height, width)), 30);
  }
}

TEST(ShrinkJpeg, StoresGreyAsGreyAndCmykAsYcc) {
  const Bytes grey =
      jpeg_of(picture(300, 200, 1),
              {.input = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .sampling = {{1, 1}}});
  EXPECT_EQ(header_of(shrink(grey, {.longest_side = 100}).bytes).components, 1);
  const Bytes cmyk = jpeg_of(picture(300, 200, 4), {.input = JCS_CMYK, .stored = JCS_CMYK});
  const ShrunkJpeg rgb = shrink(cmyk, {.longest_side = 100, .quality = 95});
  EXPECT_EQ(header_of(rgb.bytes).color, jpeg::JpegColor::ycc);
  EXPECT_GT(psnr(resized(rgb.bytes, 67, 100), resized(cmyk, 67, 100)), 30);
}

TEST(ShrinkJpeg, TakesNoDamagedFileAndNoNonsense) {
  Bytes file = jpeg_of(picture(300, 200), {});
  EXPECT_THROW((void)shrink_jpeg(file, {}), std::invalid_argument);
  EXPECT_THROW((void)shrink_jpeg(file, {.longest_side = 9, .quality = 0}), std::invalid_argument);
  EXPECT_THROW((void)shrink_jpeg(file, {.longest_side = 9, .quality = 101}), std::invalid_argument);
  file.resize(file.size() / 2);
  EXPECT_FALSE(shrink_jpeg(file, {.longest_side = 100}));
  EXPECT_FALSE(shrink_jpeg(std::span(file).first(9), {.longest_side = 100}));
}

}  // namespace
}  // namespace penstock
