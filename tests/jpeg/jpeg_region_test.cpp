// Penstock's own JPEG decoder against libjpeg-turbo's decoding of the whole image, to the bit.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/jpeg/decoder/region.hpp"
#include "tests/jpeg/jpeg_decoders.hpp"

namespace penstock::jpeg {
namespace {

using namespace testing_images;

std::vector<JpegKind> kinds() {
  std::vector<JpegKind> all{
      {.name = "444", .sampling = {{1, 1}, {1, 1}, {1, 1}}},
      {.name = "422", .sampling = {{2, 1}, {1, 1}, {1, 1}}},
      {.name = "420", .sampling = {{2, 2}, {1, 1}, {1, 1}}},
      {.name = "440", .sampling = {{1, 2}, {1, 1}, {1, 1}}},
      {.name = "411", .sampling = {{4, 1}, {1, 1}, {1, 1}}},
      {.name = "rgb", .stored = JCS_RGB},
  };
  for (const auto& factors : {std::array{1, 1}, {2, 2}, {1, 4}, {3, 2}})
    all.push_back({.name = "grey" + std::to_string(10 * factors[0] + factors[1]),
                   .input = JCS_GRAYSCALE,
                   .stored = JCS_GRAYSCALE,
                   .sampling = {factors}});
  return all;
}

Pixels source_pixels(const JpegKind& kind, int width, int height, unsigned seed = 1) {
  return picture(width, height, kind.input == JCS_GRAYSCALE ? 1 : 3, seed);
}

TEST(JpegRegion, DecodesEveryRectangleAsInTheWholeImage) {
  for_every_target([] {
    Dice dice(5);
    JpegRegion region;
    for (const JpegKind& plain_kind : kinds()) {
      for (const auto& [width, height] : {std::array{1, 1},
                                          {2, 3},
                                          {4, 40},
                                          {8, 8},
                                          {15, 16},
                                          {17, 33},
                                          {64, 64},
                                          {97, 61},
                                          {131, 143},
                                          {300, 90}}) {
        JpegKind kind = plain_kind;
        kind.quality = dice.one_of(std::vector{1, 10, 50, 75, 90, 95, 100});
        kind.restart = dice.one_of(std::vector{0, 0, 1, 2, 3, 7, 16, 40, 1000});
        SCOPED_TRACE(kind.name + " " + std::to_string(width) + "x" + std::to_string(height) +
                     " quality " + std::to_string(kind.quality) + " restart " +
                     std::to_string(kind.restart));
        const Bytes bytes = jpeg_of(source_pixels(kind, width, height), kind);
        for (const Chroma upsampling : kChromas) {
          const Pixels whole = libjpeg_whole(bytes, upsampling == Chroma::smooth);
          for (int i = 0; i < 12; ++i) {
            const PixelRect rect = i == 0   ? PixelRect{0, 0, width, height}
                                   : i == 1 ? PixelRect{width - 1, height - 1, 1, 1}
                                            : dice.part_of(width, height);
            ASSERT_EQ(by_own(region, bytes, rect, upsampling, 1 + dice.below(9)),
                      part_of(whole, rect))
                << text_of(rect) << (upsampling == Chroma::smooth ? " smooth" : " plain");
          }
        }
      }
    }
  });
}

TEST(JpegRegion, DecodesAtAHalfAQuarterAndAnEighthAsLibjpegDoes) {
  Dice dice(12);
  JpegRegion region;
  JpegReader reader;
  for (const JpegKind& plain_kind : kinds()) {
    for (const auto& [width, height] : {std::array{1, 1},
                                        {2, 3},
                                        {15, 16},
                                        {17, 33},
                                        {64, 64},
                                        {97, 61},
                                        {131, 243},
                                        {500, 90}}) {
      for (const int scale : {2, 4, 8}) {
        JpegKind kind = plain_kind;
        kind.quality = dice.one_of(std::vector{1, 10, 50, 75, 90, 95, 100});
        kind.restart = dice.one_of(std::vector{0, 0, 1, 3, 16});
        const Bytes bytes = jpeg_of(source_pixels(kind, width, height), kind);
        for (const Chroma upsampling : kChromas) {
          const Pixels whole = libjpeg_whole(bytes, upsampling == Chroma::smooth, scale);
          for (int i = 0; i < 8; ++i) {
            const PixelRect rect = i == 0 ? PixelRect{0, 0, whole.width, whole.height}
                                          : dice.part_of(whole.width, whole.height);
            SCOPED_TRACE(kind.name + " " + std::to_string(width) + "x" + std::to_string(height) +
                         " / " + std::to_string(scale) + " quality " +
                         std::to_string(kind.quality) + ", " + text_of(rect) +
                         (upsampling == Chroma::smooth ? " smooth" : " plain"));
            const auto expected = part_of(whole, rect);
            ASSERT_EQ(by_own(region, bytes, rect, upsampling, 1 + dice.below(9), scale), expected);
            ASSERT_EQ(by_libjpeg(reader, bytes, rect, upsampling, scale), expected);
          }
        }
      }
    }
  }
}

TEST(JpegRegion, DecodesEveryQuality) {
  Dice dice(6);
  JpegRegion region;
  for (int quality = 1; quality <= 100; ++quality) {
    JpegKind kind = dice.one_of(kinds());
    kind.quality = quality;
    const Bytes bytes =
        jpeg_of(source_pixels(kind, 160, 120, static_cast<unsigned>(quality)), kind);
    const PixelRect rect = dice.part_of(160, 120);
    for (const Chroma upsampling : kChromas)
      ASSERT_EQ(by_own(region, bytes, rect, upsampling),
                part_of(libjpeg_whole(bytes, upsampling == Chroma::smooth), rect))
          << kind.name << " quality " << quality << " " << text_of(rect);
  }
}

// Long enough for several streams, and too long for the samples to be decoded all at once.
TEST(JpegRegion, DecodesLargeImages) {
  JpegRegion region;
  Dice dice(7);
  for (const auto& [width, height] : {std::array{2000, 900}, {700, 2100}, {8192, 40}, {24, 8192}}) {
    for (const JpegKind& plain_kind : kinds()) {
      JpegKind kind = plain_kind;
      kind.restart = dice.one_of(std::vector{0, 0, 5, 64});
      const Bytes bytes = jpeg_of(source_pixels(kind, width, height), kind);
      const Chroma upsampling = dice.one_of(std::vector{Chroma::repeated, Chroma::smooth});
      const Pixels whole = libjpeg_whole(bytes, upsampling == Chroma::smooth);
      for (const PixelRect& rect : {PixelRect{0, 0, width, height}, dice.part_of(width, height)})
        ASSERT_TRUE(by_own(region, bytes, rect, upsampling) == part_of(whole, rect))
            << kind.name << " " << width << "x" << height << " " << text_of(rect);
    }
  }
}

// Coefficients far outside of what an encoder makes: wrapped sums, saturated ones.
TEST(JpegRegion, AgreesWhereCoefficientsOverflow) {
  for_every_target([] {
    JpegRegion region;
    JpegReader reader;
    Dice dice(8);
    int accepted = 0;
    for (int i = 0; i < 60; ++i) {
      JpegKind kind = dice.one_of(kinds());
      kind.quality = 1 + dice.below(100);
      Bytes bytes = jpeg_of(source_pixels(kind, 72, 56, static_cast<unsigned>(i)), kind);
      // Larger quantizers: the first DQT's payload begins 5 bytes behind its marker.
      for (std::size_t at = 2; at + 70 < bytes.size(); ++at) {
        if (bytes[at] != std::byte{0xFF} || bytes[at + 1] != std::byte{0xDB}) continue;
        for (std::size_t k = 0; k < 64; ++k)
          if (dice.below(3) == 0 || k == 0)
            bytes[at + 5 + k] = static_cast<std::byte>(dice.below(256));
      }
      for (const Chroma upsampling : kChromas) {
        const auto expected = by_libjpeg(reader, bytes, {0, 0, 72, 56}, upsampling);
        const auto found = by_own(region, bytes, {0, 0, 72, 56}, upsampling);
        if (found.empty()) continue;
        ++accepted;
        ASSERT_EQ(found, expected) << kind.name << " " << i;
      }
    }
    EXPECT_GT(accepted, 100);
  });
}

// What this decoder takes, libjpeg-turbo takes without a warning, and gives the same pixels.
void expect_no_more_than_libjpeg(JpegRegion& region, JpegReader& reader, const Bytes& bytes,
                                 const PixelRect& rect, Chroma upsampling, int& taken) {
  const auto found = by_own(region, bytes, rect, upsampling);
  if (found.empty()) return;
  ++taken;
  const auto expected = by_libjpeg(reader, bytes, rect, upsampling);
  ASSERT_FALSE(expected.empty()) << "libjpeg-turbo: " << reader.message();
  ASSERT_TRUE(found == expected);
}

// The offset of the first scan's data.
std::size_t scan_of(const Bytes& bytes) {
  JpegHeader header;
  EXPECT_FALSE(read_jpeg_header(bytes, header));
  return header.scan;
}

TEST(JpegRegion, TakesNoDamageThatLibjpegWarnsOf) {
  Dice dice(9);
  JpegRegion region;
  JpegReader reader;
  int taken = 0;
  constexpr int kFiles = 120;
  constexpr int kDamages = 60;
  for (int file = 0; file < kFiles; ++file) {
    JpegKind kind = dice.one_of(kinds());
    kind.quality = dice.one_of(std::vector{5, 40, 75, 90, 98});
    kind.restart = dice.one_of(std::vector{0, 0, 0, 1, 4, 13});
    const int width = 8 + dice.below(160);
    const int height = 8 + dice.below(160);
    const Bytes bytes =
        jpeg_of(source_pixels(kind, width, height, static_cast<unsigned>(file)), kind);
    const std::size_t scan = scan_of(bytes);
    for (int i = 0; i < kDamages; ++i) {
      SCOPED_TRACE(kind.name + " restart " + std::to_string(kind.restart) + ", file " +
                   std::to_string(file) + ", damage " + std::to_string(i));
      const Bytes bad = damaged(bytes, dice, i % 4 == 0 ? 0 : scan);
      const UsingLockstep lockstep(i % 3 != 0);
      const Chroma upsampling = kChromas[static_cast<std::size_t>(i % 2)];
      // Where the header claims other sizes, this is not part of the image.
      if (region.open(bad)) continue;
      const PixelRect rect =
          dice.part_of(std::min(region.header().width, 400), std::min(region.header().height, 400));
      ASSERT_NO_FATAL_FAILURE(
          expect_no_more_than_libjpeg(region, reader, bad, rect, upsampling, taken));
    }
  }
  // Damage below the region, and such as makes other pixels of a sound stream.
  EXPECT_GT(taken, kFiles * kDamages / 20);
}

TEST(JpegRegion, TakesNoTruncationThatLibjpegWarnsOf) {
  Dice dice(10);
  JpegRegion region;
  JpegReader reader;
  for (const int restart : {0, 6}) {
    for (const JpegKind& plain_kind : kinds()) {
      JpegKind kind = plain_kind;
      kind.restart = restart;
      const Bytes bytes = jpeg_of(source_pixels(kind, 181, 133), kind);
      int taken = 0;
      for (std::size_t size = 1; size < bytes.size(); size += 97) {
        SCOPED_TRACE(kind.name + ", the first " + std::to_string(size) + " bytes");
        const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        const PixelRect rect = dice.part_of(181, 133);
        const UsingLockstep lockstep(size / 97 % 2 == 0);
        ASSERT_NO_FATAL_FAILURE(
            expect_no_more_than_libjpeg(region, reader, cut, rect, kChromas[size % 2], taken));
      }
      EXPECT_GT(taken, 0) << kind.name;
      // Around the end, every byte.
      for (std::size_t less = 0; less < 60; ++less) {
        const Bytes cut(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(less));
        ASSERT_NO_FATAL_FAILURE(expect_no_more_than_libjpeg(region, reader, cut, {0, 0, 181, 133},
                                                            Chroma::repeated, taken));
      }
    }
  }
}

// 0xFF may be repeated before a marker, or the file may end there: libjpeg-turbo then warns.
TEST(JpegRegion, TakesNoFillBytesForAMarker) {
  JpegRegion region;
  JpegReader reader;
  Bytes bytes = jpeg_of(picture(8, 8), {});
  bytes.resize(bytes.size() - 2);
  bytes.insert(bytes.end(), 2, std::byte{0xFF});
  EXPECT_TRUE(by_libjpeg(reader, bytes, {0, 0, 8, 8}, Chroma::repeated).empty());
  EXPECT_TRUE(by_own(region, bytes, {0, 0, 8, 8}, Chroma::repeated).empty());
}

TEST(JpegRegion, DecodesTheNextImageAfterOneThatItGaveUp) {
  const Bytes good = jpeg_of(picture(90, 70), {});
  const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.size() / 2));
  const Pixels whole = libjpeg_whole(good);
  JpegRegion region;
  for (int i = 0; i < 6; ++i) {
    const UsingLockstep lockstep(i < 3);
    EXPECT_TRUE(by_own(region, cut, {0, 0, 90, 70}, Chroma::repeated).empty());
    EXPECT_EQ(by_own(region, good, {3, 5, 60, 50}, Chroma::repeated),
              part_of(whole, {3, 5, 60, 50}));
  }
}

// An index of another image's data, as a hostile file of them may have: what is decoded by it is given up, or right, and the next
// image is not touched by what was left of it.
TEST(JpegRegion, GivesUpInLockstepAsInLanes) {
  JpegRegion region;
  Dice dice(12);
  std::size_t given_up = 0;
  for (const int restart : {0, 2, 5}) {
    const Bytes bytes = jpeg_of(picture(240, 200, 3, 5),
                                {.sampling = {{2, 2}, {1, 1}, {1, 1}}, .restart = restart});
    const auto index = build_jpeg_index(bytes);
    ASSERT_TRUE(index);
    const PixelRect rect{10, 20, 200, 170};
    const auto whole = by_own(region, bytes, rect, Chroma::repeated);
    ASSERT_FALSE(whole.empty());
    for (int round = 0; round < 400; ++round) {
      Bytes bad = bytes;
      for (int i = 0; i < 3; ++i)
        bad[bad.size() / 4 +
            static_cast<std::size_t>(dice.below(static_cast<int>(bad.size() / 2)))] =
            static_cast<std::byte>(dice.below(255));
      std::vector<std::uint8_t> found[2];
      for (const bool always : {false, true}) {
        const UsingLockstep lockstep(always);
        found[always ? 1 : 0] =
            by_own(region, bad, rect, Chroma::repeated, 3, 1, {.index = &*index});
        ASSERT_EQ(by_own(region, bytes, rect, Chroma::repeated), whole);
      }
      ASSERT_TRUE(found[0] == found[1]) << round;
      given_up += found[0].empty() ? 1 : 0;
    }
  }
  EXPECT_GT(given_up, 100U);
  EXPECT_LT(given_up, 1200U);
}

}  // namespace
}  // namespace penstock::jpeg
