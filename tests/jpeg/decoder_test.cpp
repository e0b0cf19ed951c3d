// The public decoder: whole images and regions in the caller's memory, of every kind of JPEG that libjpeg-turbo takes.
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>

#include "tests/jpeg/images.hpp"

namespace penstock::jpeg {
namespace {

using ::testing::HasSubstr;
using namespace testing_images;  // NOLINT(google-build-using-namespace)

Pixels decoded(Decoder& decoder, const Bytes& bytes, DecodeOptions options = {}) {
  Result<Info> info = decoder.open(bytes);
  if (!info) throw std::runtime_error(info.fault().reason);
  const auto down = [&](int pixels) { return (pixels + options.scale - 1) / options.scale; };
  Pixels pixels(options.region ? options.region->width : down(info->width),
                options.region ? options.region->height : down(info->height), 3);
  const auto row = static_cast<std::size_t>(3) * static_cast<std::size_t>(pixels.width);
  if (auto done = decoder.decode(options, pixels.data, row); !done)
    throw std::runtime_error(done.fault().reason);
  return pixels;
}

TEST(JpegDecoder, DecodesTheWholeImageAsLibjpegDoes) {
  const Bytes bytes = jpeg_of(picture(131, 77));
  Decoder decoder;
  EXPECT_EQ(decoded(decoder, bytes), libjpeg_whole(bytes));
  EXPECT_EQ(decoded(decoder, bytes, {.chroma = Chroma::smooth}), libjpeg_whole(bytes, true));
  EXPECT_EQ(decoded(decoder, bytes, {.scale = 2}), libjpeg_whole(bytes, false, 2));
}

TEST(JpegDecoder, DecodesARegionAsInTheWholeImage) {
  const Bytes bytes = jpeg_of(picture(131, 77));
  const Pixels whole = libjpeg_whole(bytes);
  const PixelRect rect{.x = 33, .y = 21, .width = 50, .height = 17};
  Decoder decoder;
  const Pixels part = decoded(decoder, bytes, {.region = rect});
  for (int y = 0; y < rect.height; ++y)
    for (int x = 0; x < rect.width; ++x)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(part.at(x, y)[c], whole.at(rect.x + x, rect.y + y)[c]) << x << ", " << y;
}

TEST(JpegDecoder, DecodesSeveralRegionsOfOneImage) {
  for (const bool progressive : {false, true}) {
    const Bytes bytes = jpeg_of(picture(64, 48), {.progressive = progressive});
    const Pixels whole = libjpeg_whole(bytes);
    Decoder decoder;
    ASSERT_TRUE(decoder.open(bytes));
    for (int x = 0; x < 64; x += 7) {
      std::vector<std::uint8_t> pixel(3);
      ASSERT_TRUE(decoder.decode({.region = PixelRect{x, 9, 1, 1}}, pixel, 3));
      EXPECT_EQ(pixel, std::vector<std::uint8_t>(whole.at(x, 9), whole.at(x, 9) + 3));
    }
  }
}

TEST(JpegDecoder, SmoothsBlocksOfWhichScansAreMissingAsLibjpegDoes) {
  const Bytes bytes = jpeg_of(picture(131, 77), {.progressive = true});
  const Pixels complete = libjpeg_whole(bytes, true);
  for (int scans = 1; scans < 10; ++scans) {
    SCOPED_TRACE(scans);
    const Bytes cut = first_scans(bytes, scans);
    const Pixels whole = libjpeg_whole(cut, true);
    EXPECT_FALSE(whole == complete);
    Decoder decoder;
    EXPECT_TRUE(decoded(decoder, cut, {.chroma = Chroma::smooth}) == whole);
    EXPECT_TRUE(decoded(decoder, cut) == libjpeg_whole(cut));
    const PixelRect rect{.x = 33, .y = 21, .width = 50, .height = 17};
    const Pixels part = decoded(decoder, cut, {.region = rect, .chroma = Chroma::smooth});
    for (int y = 0; y < rect.height; ++y)
      EXPECT_EQ(std::memcmp(part.at(0, y), whole.at(rect.x, rect.y + y), 3 * 50), 0) << y;
  }
}

TEST(JpegDecoder, LeavesTheBytesBetweenRowsAlone) {
  const Bytes bytes = jpeg_of(picture(16, 9));
  const Pixels whole = libjpeg_whole(bytes);
  std::vector<std::uint8_t> pixels(9 * 60, 0xAB);
  Decoder decoder;
  ASSERT_TRUE(decoder.open(bytes));
  ASSERT_TRUE(decoder.decode({}, pixels, 60));
  for (std::size_t y = 0; y < 9; ++y) {
    EXPECT_EQ(0, std::memcmp(pixels.data() + y * 60, whole.at(0, static_cast<int>(y)), 48));
    for (std::size_t x = 48; x < 60; ++x) ASSERT_EQ(pixels[y * 60 + x], 0xAB);
  }
}

TEST(JpegDecoder, SaysWhatTheHeaderSays) {
  const JpegKind kGrey{.input = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .sampling = {{1, 1}}};
  Decoder decoder;
  const Info plain = *decoder.open(jpeg_of(picture(20, 10)));
  EXPECT_EQ(plain.width, 20);
  EXPECT_EQ(plain.height, 10);
  EXPECT_EQ(plain.orientation, 1);
  EXPECT_EQ(plain.components, 3);
  EXPECT_FALSE(plain.progressive);
  EXPECT_EQ(plain.upright(), ImageSize(10, 20));
  EXPECT_TRUE(decoder.open(jpeg_of(picture(20, 10), {.progressive = true}))->progressive);
  EXPECT_EQ(decoder.open(jpeg_of(picture(20, 10, 1), kGrey))->components, 1);
  const Info turned = *decoder.open(jpeg_of(picture(20, 10), {.app1 = exif_app1(6)}));
  EXPECT_EQ(turned.orientation, 6);
  EXPECT_EQ(turned.upright(), ImageSize(20, 10));
}

// Pillow takes all of these but a BYTE, which libtiff takes in a TIFF.
TEST(JpegDecoder, FindsAnOrientationOfEveryTypeOfIntegers) {
  Decoder decoder;
  for (const bool big_endian : {false, true})
    for (const int type : {1, 3, 4, 6, 8, 9, 2, 5, 12}) {
      Bytes app1 = exif_app1(6, big_endian);
      const std::size_t entry = 6 + 8 + 2 + 12;
      const int size = type % 5 == 1 ? 1 : type % 5 == 3 ? 2 : 4;
      const auto put = [&](std::size_t at, int value, int bytes) {
        for (int k = 0; k < bytes; ++k)
          app1[at + static_cast<std::size_t>(k)] =
              static_cast<std::byte>(value >> 8 * (big_endian ? bytes - 1 - k : k));
      };
      put(entry + 2, type, 2);
      put(entry + 8, 0, 4);
      put(entry + 8, 6, size);
      const bool is_integer = type != 2 && type != 5 && type != 12;
      EXPECT_EQ(decoder.open(jpeg_of(picture(20, 10), {.app1 = app1}))->orientation,
                is_integer ? 6 : 1)
          << type << " " << big_endian;
    }
}

TEST(JpegDecoder, LeavesToLibjpegWhatItDoesNotTake) {
  const auto stats = std::make_shared<JpegStats>();
  Decoder decoder({.stats = stats});
  const Bytes bytes = jpeg_of(picture(50, 40), {.progressive = true});
  EXPECT_EQ(decoded(decoder, bytes), libjpeg_whole(bytes));
  (void)decoded(decoder, jpeg_of(picture(50, 40)));
  const JpegCounts counts = stats->counts();
  EXPECT_EQ(counts.own, 1U);
  EXPECT_EQ(counts.libjpeg[static_cast<std::size_t>(JpegFallback::progressive)], 1U);
}

TEST(JpegDecoder, LearnsAnIndexAndGoesByIt) {
  const auto index = std::make_shared<MemoryJpegIndex>();
  const auto stats = std::make_shared<JpegStats>();
  Decoder decoder({.index = index, .stats = stats});
  const Bytes bytes = jpeg_of(picture(200, 150));
  const DecodeOptions options{.region = PixelRect{100, 100, 20, 20}};
  const Pixels first = decoded(decoder, bytes, options);
  EXPECT_EQ(index->size(), 1U);
  EXPECT_EQ(decoded(decoder, bytes, options), first);
  EXPECT_EQ(stats->counts().indexed, 1U);
}

TEST(JpegDecoder, SaysWhatIsWrongWithAnImage) {
  Decoder decoder;
  EXPECT_FALSE(decoder.open(bytes_of("no JPEG")));
  Bytes bytes = jpeg_of(picture(100, 100));
  bytes.resize(bytes.size() / 2);
  ASSERT_TRUE(decoder.open(bytes));
  std::vector<std::uint8_t> pixels(30000);
  Result<void> result = decoder.decode({}, pixels, 300);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.fault().reason, HasSubstr("Premature end"));
}

TEST(JpegDecoder, RefusesWhatCannotBe) {
  Decoder decoder;
  std::vector<std::uint8_t> pixels(300);
  EXPECT_THROW((void)decoder.decode({}, pixels, 30), std::logic_error);
  const Bytes bytes = jpeg_of(picture(10, 10));
  ASSERT_TRUE(decoder.open(bytes));
  const auto refused = [&](const DecodeOptions& options, std::size_t row) {
    EXPECT_THROW((void)decoder.decode(options, pixels, row), std::invalid_argument);
  };
  refused({.region = PixelRect{5, 5, 6, 1}}, 30);
  refused({.region = PixelRect{-1, 0, 1, 1}}, 30);
  refused({.region = PixelRect{0, 0, 0, 1}}, 30);
  refused({.scale = 3}, 30);
  refused({}, 29);  // a row is 30 bytes
  refused({}, SIZE_MAX);
  refused({}, SIZE_MAX - 194);
  refused({}, 31);  // and there are 300 in all
  EXPECT_TRUE(decoder.decode({}, pixels, 30));
}

}  // namespace
}  // namespace penstock::jpeg
