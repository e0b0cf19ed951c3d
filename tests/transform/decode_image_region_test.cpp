// Every rectangle that JpegReader decodes is that rectangle of the whole image.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/jpeg/libjpeg/libjpeg_reader.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock::transform {
namespace {

using namespace testing_images;

std::vector<JpegKind> kinds() {
  const std::vector<std::pair<std::string, std::vector<std::array<int, 2>>>> samplings{
      {"444", {{1, 1}, {1, 1}, {1, 1}}},          {"422", {{2, 1}, {1, 1}, {1, 1}}},
      {"420", {{2, 2}, {1, 1}, {1, 1}}},          {"440", {{1, 2}, {1, 1}, {1, 1}}},
      {"411", {{4, 1}, {1, 1}, {1, 1}}},          {"410", {{4, 2}, {1, 1}, {1, 1}}},
      {"441", {{1, 4}, {1, 1}, {1, 1}}},          {"mixed", {{2, 2}, {2, 1}, {1, 2}}},
      {"chroma_larger", {{1, 1}, {2, 2}, {2, 2}}}};
  std::vector<JpegKind> all;
  for (const auto& [name, sampling] : samplings) {
    all.push_back({.name = name, .sampling = sampling});
    all.push_back({.name = name + "_progressive", .sampling = sampling, .progressive = true});
    all.push_back({.name = name + "_scans", .sampling = sampling, .interleaved = false});
    all.push_back({.name = name + "_restarts", .sampling = sampling, .restart = 3});
  }
  for (const int factor : {1, 2, 3, 4}) {
    const JpegKind grey{.name = "grey" + std::to_string(factor),
                        .input = JCS_GRAYSCALE,
                        .stored = JCS_GRAYSCALE,
                        .sampling = {{factor, factor}}};
    all.push_back(grey);
    all.push_back(grey);
    all.back().name += "_progressive";
    all.back().progressive = true;
  }
  all.push_back({.name = "rgb", .stored = JCS_RGB});
  all.push_back({.name = "cmyk", .input = JCS_CMYK, .stored = JCS_CMYK});
  all.push_back({.name = "ycck420",
                 .input = JCS_CMYK,
                 .stored = JCS_YCCK,
                 .sampling = {{2, 2}, {1, 1}, {1, 1}, {2, 2}}});
  return all;
}

Pixels source_pixels(const JpegKind& kind, int width, int height) {
  const int channels = kind.input == JCS_GRAYSCALE ? 1 : kind.input == JCS_CMYK ? 4 : 3;
  return picture(width, height, channels);
}

// Pixels of a whole decode as RGB: Adobe's CMYK is stored inverted.
std::array<int, 3> rgb_at(const Pixels& whole, int x, int y) {
  const std::uint8_t* p = whole.at(x, y);
  if (whole.channels == 3) return {p[0], p[1], p[2]};
  const auto times = [&](int c) { return (2 * p[c] * p[3] + 255) / 510; };
  return {times(0), times(1), times(2)};
}

void expect_region(jpeg::JpegReader& reader, const Bytes& bytes, const Pixels& whole,
                   const PixelRect& rect, int span, const std::string& name,
                   jpeg::Chroma upsampling = jpeg::Chroma::repeated) {
  SCOPED_TRACE(name + " " + std::to_string(whole.width) + "x" + std::to_string(whole.height) +
               " region " + std::to_string(rect.x) + "," + std::to_string(rect.y) + " " +
               std::to_string(rect.width) + "x" + std::to_string(rect.height));
  ASSERT_TRUE(reader.open(bytes)) << reader.message();
  ASSERT_EQ(reader.width(), whole.width);
  ASSERT_EQ(reader.height(), whole.height);
  ASSERT_TRUE(reader.begin(rect, span, upsampling)) << reader.message();
  int wrong = 0;
  for (int y = rect.y; y < rect.y + rect.height && wrong == 0; ++y) {
    // As a resize does: a few rows, most of them seen before.
    const int first = std::max(rect.y, y - span + 1);
    const std::uint8_t* const* rows = reader.rows(first, y + 1);
    ASSERT_NE(rows, nullptr) << reader.message();
    for (int r = first; r <= y; ++r) {
      for (int x = 0; x < rect.width; ++x) {
        const auto expected = rgb_at(whole, rect.x + x, r);
        for (int c = 0; c < 3; ++c)
          wrong += rows[r - first][x * 4 + c] != expected[static_cast<std::size_t>(c)];
      }
    }
    ASSERT_EQ(wrong, 0) << "wrong numbers in row " << y;
  }
  reader.close();
}

class JpegReaderWith : public testing::TestWithParam<jpeg::Chroma> {};

TEST_P(JpegReaderWith, DecodesEveryRectangleAsInTheWholeImage) {
  const bool smooth = GetParam() == jpeg::Chroma::smooth;
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  jpeg::JpegReader reader;
  for (const JpegKind& kind : kinds()) {
    for (const auto& [width, height] :
         {std::array{1, 1}, {2, 3}, {4, 40}, {15, 16}, {17, 33}, {64, 64}, {97, 61}, {131, 143}}) {
      const Bytes bytes = jpeg_of(source_pixels(kind, width, height), kind);
      const Pixels whole = libjpeg_whole(bytes, smooth);
      expect_region(reader, bytes, whole, {0, 0, width, height}, 4, kind.name, GetParam());
      expect_region(reader, bytes, whole, {width - 1, height - 1, 1, 1}, 1, kind.name, GetParam());
      for (int i = 0; i < 25; ++i) {
        PixelRect rect{.x = below(width), .y = below(height)};
        rect.width = 1 + below(width - rect.x);
        rect.height = 1 + below(height - rect.y);
        expect_region(reader, bytes, whole, rect, 1 + below(9), kind.name, GetParam());
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Upsamplings, JpegReaderWith,
                         testing::Values(jpeg::Chroma::repeated, jpeg::Chroma::smooth));

TEST(JpegReader, ConvertsCmykWithoutAdobesMarkerAsAmountsOfInk) {
  const JpegKind kind{
      .name = "cmyk", .input = JCS_CMYK, .stored = JCS_CMYK, .quality = 100, .adobe = false};
  Pixels pixels(16, 16, 4);
  for (std::size_t i = 0; i < pixels.data.size(); i += 4) {
    pixels.data[i] = 255;     // cyan
    pixels.data[i + 3] = 51;  // a fifth of black
  }
  const Bytes bytes = jpeg_of(pixels, kind);
  jpeg::JpegReader reader;
  ASSERT_TRUE(reader.open(bytes));
  ASSERT_TRUE(reader.begin({0, 0, 16, 16}, 1));
  const std::uint8_t* const* rows = reader.rows(0, 1);
  ASSERT_NE(rows, nullptr);
  EXPECT_NEAR(rows[0][0], 0, 2);
  EXPECT_NEAR(rows[0][1], 204, 2);
  EXPECT_NEAR(rows[0][2], 204, 2);
  reader.close();
}

TEST(JpegReader, DecodesTheNextImageAfterAFailure) {
  const Bytes good = jpeg_of(picture(40, 40), {});
  const Pixels whole = libjpeg_whole(good);
  Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.size() / 2));
  jpeg::JpegReader reader;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(reader.open(cut));
    ASSERT_TRUE(reader.begin({0, 0, 40, 40}, 40));
    EXPECT_EQ(reader.rows(0, 40), nullptr);
    EXPECT_NE(reader.message().find("remature end"), std::string_view::npos) << reader.message();
    reader.close();
    expect_region(reader, good, whole, {3, 5, 20, 30}, 4, "good");
  }
}

}  // namespace
}  // namespace penstock::transform
