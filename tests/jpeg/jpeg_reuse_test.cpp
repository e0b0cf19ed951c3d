// A reader keeps nothing of one image that could show in the next.
#include <cstddef>
#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/jpeg/libjpeg/libjpeg_reader.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock::jpeg {
namespace {

using namespace testing_images;
using testing::HasSubstr;

constexpr int kSide = 40;
constexpr unsigned kQuantizationTables = 0xDB;
constexpr unsigned kHuffmanTables = 0xC4;

unsigned byte_at(const Bytes& bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]);
}

// The file without its segments of one kind.
Bytes without(unsigned marker, const Bytes& jpeg) {
  constexpr unsigned kStartOfScan = 0xDA;
  Bytes out(jpeg.begin(), jpeg.begin() + 2);
  std::size_t at = 2;
  while (byte_at(jpeg, at + 1) != kStartOfScan) {
    const std::size_t size = 2 + byte_at(jpeg, at + 2) * 256 + byte_at(jpeg, at + 3);
    const auto segment = jpeg.begin() + static_cast<std::ptrdiff_t>(at);
    if (byte_at(jpeg, at + 1) != marker)
      out.insert(out.end(), segment, segment + static_cast<std::ptrdiff_t>(size));
    at += size;
  }
  out.insert(out.end(), jpeg.begin() + static_cast<std::ptrdiff_t>(at), jpeg.end());
  return out;
}

// Its pixels, or libjpeg's words.
std::string decode(JpegReader& reader, const Bytes& jpeg) {
  std::string result;
  const std::uint8_t* const* rows = nullptr;
  if (reader.open(jpeg) && reader.begin({0, 0, kSide, kSide}, kSide)) rows = reader.rows(0, kSide);
  if (rows == nullptr) result = reader.message();
  for (int y = 0; rows != nullptr && y < kSide; ++y)
    result.append(reinterpret_cast<const char*>(rows[y]), kSide * kPixelBytes);
  reader.close();
  return result;
}

TEST(JpegReader, TakesNoQuantizationTablesFromTheImageBefore) {
  const Bytes whole = jpeg_of(picture(kSide, kSide), {});
  const Bytes lacking = without(kQuantizationTables, whole);
  ASSERT_LT(lacking.size(), whole.size());
  JpegReader reader;
  EXPECT_THAT(decode(reader, lacking), HasSubstr("was not defined"));
  EXPECT_EQ(decode(reader, whole).size(), kSide * kSide * kPixelBytes);
  EXPECT_THAT(decode(reader, lacking), HasSubstr("was not defined"));
}

TEST(JpegReader, TakesNoHuffmanTablesFromTheImageBefore) {
  // libjpeg decodes a file without Huffman tables with the standard ones, as Motion JPEG needs. A
  // progressive file brings its own.
  const Bytes lacking = without(kHuffmanTables, jpeg_of(picture(kSide, kSide), {}));
  const Bytes other = jpeg_of(picture(kSide, kSide, 3, 2), {.progressive = true});
  JpegReader fresh;
  const std::string alone = decode(fresh, lacking);
  ASSERT_EQ(alone.size(), kSide * kSide * kPixelBytes);
  JpegReader used;
  ASSERT_EQ(decode(used, other).size(), kSide * kSide * kPixelBytes);
  EXPECT_EQ(decode(used, lacking), alone);
}

}  // namespace
}  // namespace penstock::jpeg
