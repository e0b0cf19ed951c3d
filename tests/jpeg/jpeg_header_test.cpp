// Which JPEGs Penstock's own decoder takes, and what it reads from their headers.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/jpeg/decoder/header.hpp"
#include "src/jpeg/decoder/region.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock::jpeg {
namespace {

using namespace testing_images;

std::optional<JpegFallback> refusal_of(const Bytes& bytes) {
  JpegHeader header;
  return read_jpeg_header(bytes, header);
}

JpegHeader header_of(const Bytes& bytes) {
  JpegHeader header;
  EXPECT_FALSE(read_jpeg_header(bytes, header));
  return header;
}

std::size_t find(const Bytes& bytes, unsigned marker) {
  const Bytes pair{std::byte{0xFF}, static_cast<std::byte>(marker)};
  const auto found = std::ranges::search(bytes, pair);
  EXPECT_FALSE(found.empty());
  return static_cast<std::size_t>(found.begin() - bytes.begin());
}

Bytes with(Bytes bytes, std::size_t at, unsigned value) {
  bytes[at] = static_cast<std::byte>(value);
  return bytes;
}

Bytes insert(Bytes bytes, std::size_t at, std::string_view what) {
  const Bytes more = bytes_of(what);
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  return bytes;
}

constexpr unsigned kSof0 = 0xC0;
constexpr unsigned kDqt = 0xDB;
constexpr unsigned kDht = 0xC4;
constexpr unsigned kSos = 0xDA;

TEST(JpegHeader, SaysWhatItDoesNotTake) {
  const Pixels pixels = picture(40, 30);
  const Bytes plain = jpeg_of(pixels);
  EXPECT_EQ(refusal_of(plain), std::nullopt);
  EXPECT_EQ(refusal_of(jpeg_of(pixels, {.progressive = true})), JpegFallback::progressive);
  EXPECT_EQ(refusal_of(jpeg_of(pixels, {.interleaved = false})), JpegFallback::scans);
  EXPECT_EQ(refusal_of(jpeg_of(picture(40, 30, 4), {.input = JCS_CMYK, .stored = JCS_CMYK})),
            JpegFallback::components);
  EXPECT_EQ(refusal_of(jpeg_of(pixels, {.sampling = {{4, 2}, {1, 1}, {1, 1}}})),
            JpegFallback::sampling);
  EXPECT_EQ(refusal_of(jpeg_of(pixels, {.sampling = {{2, 2}, {2, 1}, {1, 2}}})),
            JpegFallback::sampling);
  const std::size_t sof = find(plain, kSof0);
  EXPECT_EQ(refusal_of(with(plain, sof + 1, 0xC9)), JpegFallback::arithmetic);
  EXPECT_EQ(refusal_of(with(plain, sof + 1, 0xC3)), JpegFallback::coding);
  EXPECT_EQ(refusal_of(with(plain, sof + 4, 12)), JpegFallback::precision);
}

TEST(JpegHeader, TakesExtendedBaseline) {
  const Bytes plain = jpeg_of(picture(40, 30));
  EXPECT_EQ(refusal_of(with(plain, find(plain, kSof0) + 1, 0xC1)), std::nullopt);
}

TEST(JpegHeader, LeavesWhateverIsOddToLibjpeg) {
  const Bytes plain = jpeg_of(picture(40, 30));
  const std::size_t sof = find(plain, kSof0);
  const std::size_t sos = find(plain, kSos);
  const std::size_t dht = find(plain, kDht);
  const std::vector<Bytes> odd{
      with(plain, sof + 6, 0),                    // no height (with the one below)
      with(plain, sof + 3, 18),                   // a length that does not fit
      with(plain, sos + 4, 9),                    // more components than there are
      with(plain, sos + 5, 77),                   // of another name
      with(plain, sos + 6, 0x44),                 // tables that are not there
      with(plain, sos + 11, 1),                   // part of the coefficients
      with(plain, dht + 4, 0x21),                 // a table of no kind
      with(with(plain, dht + 5, 3), dht + 6, 0),  // codes that do not fit
      insert(plain, sos, "x"),                    // between segments
      insert(plain, sos, {"\xFF\xD8", 2}),        // the start in the middle
      insert(plain, sos, {"\xFF\xD0", 2}),        // a restart without pixels
      insert(plain, sos, {"\xFF\xE3\0\1", 4}),    // shorter than its length
      Bytes(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(sos + 8)),
  };
  // Lengths and tables are looked at when the decoding begins.
  const auto taken = [](const Bytes& bytes) {
    JpegRegion region;
    return !region.open(bytes) && region.begin({0, 0, 1, 1}, 1, Chroma::repeated);
  };
  EXPECT_TRUE(taken(plain));
  EXPECT_TRUE(taken(insert(plain, sos, {"\xFF\xFE\0\4hi", 6})));
  EXPECT_TRUE(taken(insert(plain, sos, {"\xFF\xFF\xFF\xE3\0\3x", 7}))) << "padding is no oddity";
  for (std::size_t i = 1; i < odd.size(); ++i) EXPECT_FALSE(taken(odd[i])) << i;
  EXPECT_FALSE(taken(with(odd[0], sof + 5, 0)));
}

TEST(JpegHeader, SurvivesEveryTruncation) {
  const Bytes plain = jpeg_of(picture(40, 30), {.app1 = exif_app1(6)});
  for (std::size_t size = 0; size < find(plain, kSos) + 14; ++size) {
    // A copy of its own size, for the sanitizer to watch its end.
    const Bytes cut(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(refusal_of(cut), JpegFallback::header) << size;
  }
}

TEST(JpegHeader, ReadsSizesSamplingRestartsAndOrientation) {
  const JpegHeader header = header_of(jpeg_of(
      picture(41, 30), {.sampling = {{2, 2}, {1, 1}, {1, 1}}, .restart = 3, .app1 = exif_app1(6)}));
  EXPECT_EQ(header.width, 41);
  EXPECT_EQ(header.height, 30);
  EXPECT_EQ(header.components, 3);
  EXPECT_EQ(header.h, 2);
  EXPECT_EQ(header.v, 2);
  EXPECT_EQ(header.mcus_per_row(), 3);
  EXPECT_EQ(header.mcu_rows(), 2);
  EXPECT_EQ(header.blocks_per_mcu(), 6);
  EXPECT_EQ(header.restart_interval, 3);
  EXPECT_EQ(header.orientation, 6);
  EXPECT_EQ(header.color, JpegColor::ycc);

  const JpegHeader grey = header_of(jpeg_of(
      picture(41, 30, 1), {.input = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .sampling = {{2, 3}}}));
  EXPECT_EQ(grey.blocks_per_mcu(), 1);
  EXPECT_EQ(grey.mcus_per_row(), 6);
  EXPECT_EQ(grey.rows_together, 3);
  EXPECT_EQ(grey.color, JpegColor::grey);
}

// The bytes of a whole image as both decode it.
void expect_libjpegs_pixels(const Bytes& bytes) {
  const Pixels whole = libjpeg_whole(bytes);
  JpegRegion region;
  ASSERT_FALSE(region.open(bytes));
  ASSERT_TRUE(region.begin({0, 0, whole.width, whole.height}, 1, Chroma::repeated));
  for (int y = 0; y < whole.height; ++y) {
    const std::uint8_t* const* rows = region.rows(y, y + 1);
    ASSERT_NE(rows, nullptr);
    for (int x = 0; x < whole.width; ++x)
      for (int c = 0; c < 3; ++c) ASSERT_EQ(rows[0][4 * x + c], whole.at(x, y)[c]);
  }
}

TEST(JpegHeader, ChoosesColorsAsLibjpegDoes) {
  // Without JFIF's marker: as Adobe's says, else by the components' names.
  const Bytes ycc = jpeg_of(picture(40, 30));
  Bytes bare = ycc;
  bare.erase(bare.begin() + 2, bare.begin() + 20);  // APP0
  const std::size_t sof = find(bare, kSof0);
  const std::size_t sos = find(bare, kSos);
  const auto named = [&](std::string_view names) {
    Bytes bytes = bare;
    for (std::size_t c = 0; c < 3; ++c) {
      bytes[sof + 10 + 3 * c] = static_cast<std::byte>(names[c]);
      bytes[sos + 5 + 2 * c] = static_cast<std::byte>(names[c]);
    }
    return bytes;
  };
  const auto adobe = [&](Bytes bytes, char transform) {
    return insert(std::move(bytes), 2,
                  std::string{"\xFF\xEE\0\x0E"
                              "Adobe\0\0\0\0\0\0",
                              15} +
                      transform);
  };
  EXPECT_EQ(header_of(named("\1\2\3")).color, JpegColor::ycc);
  EXPECT_EQ(header_of(named("RGB")).color, JpegColor::rgb);
  EXPECT_EQ(header_of(named("abc")).color, JpegColor::ycc);
  EXPECT_EQ(header_of(adobe(named("\1\2\3"), 0)).color, JpegColor::rgb);
  EXPECT_EQ(header_of(adobe(named("RGB"), 1)).color, JpegColor::ycc);
  EXPECT_EQ(header_of(adobe(named("RGB"), 9)).color, JpegColor::ycc);
  EXPECT_EQ(header_of(adobe(ycc, 0)).color, JpegColor::ycc) << "JFIF wins";
  for (const Bytes& bytes : {named("RGB"), named("abc"), adobe(named("\1\2\3"), 0),
                             adobe(named("RGB"), 1), adobe(ycc, 0)})
    expect_libjpegs_pixels(bytes);
}

TEST(JpegHeader, ReadsQuantizersOfTwoBytes) {
  Bytes bytes = jpeg_of(picture(40, 30), {.quality = 80});
  // The same numbers, a zero byte before each.
  for (int table = 0; table < 2; ++table) {
    std::size_t at = 2;
    while (!(bytes[at + 1] == static_cast<std::byte>(kDqt) &&
             bytes[at + 4] == static_cast<std::byte>(table)))
      at += 2 + std::to_integer<std::size_t>(bytes[at + 2]) * 256 +
            std::to_integer<std::size_t>(bytes[at + 3]);
    bytes[at + 3] = std::byte{131};
    bytes[at + 4] = static_cast<std::byte>(16 + table);
    for (std::size_t k = 64; k-- > 0;)
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at + 5 + k), std::byte{0});
  }
  EXPECT_GT(header_of(bytes).quant[1][63], 1);
  expect_libjpegs_pixels(bytes);
}

}  // namespace
}  // namespace penstock::jpeg
