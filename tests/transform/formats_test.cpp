// Images of kinds other than JPEG, as other programs wrote them: formats/make.py made the files and says what Pillow sees in them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <zlib.h>

#include <penstock/transform/decode_image.hpp>

#include "src/transform/formats/image_reader.hpp"
#include "src/transform/image_size.hpp"
#include "tests/jpeg/images.hpp"
#include "tests/project_path.hpp"

namespace penstock::transform {
namespace {

using namespace testing_images;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

Bytes read_file(const std::string& name) {
  std::ifstream file(test::project_path("tests/transform/formats/" + name), std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string content = text.str();
  Bytes bytes(content.size());
  std::ranges::transform(content, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

struct Whole {
  Pixels pixels;
  std::string fault;  // empty on success
};

// The image as it is, pixel for pixel.
Whole decode_upright(const Bytes& bytes, int width, int height, DecodeImageOptions options = {}) {
  options.crop = resize_to({height, width});
  Whole result{Pixels(width, height, 3), {}};
  const ConstTensorView in(bytes.data(), DType::u8, {std::ssize(bytes)});
  const TensorView out(reinterpret_cast<std::byte*>(result.pixels.data.data()), DType::u8,
                       {height, width, 3});
  Random random(RandomKey(1, 1), SampleId{});
  if (auto done = decode_image(std::move(options))
                      ->apply(std::span(&in, 1), std::vector<TensorView>{out}, random);
      !done)
    result.fault = done.fault().reason;
  return result;
}

struct Expected {
  std::string name;
  int width = 0;
  int height = 0;
  bool is_exact = true;
  std::uint32_t crc = 0;
  double mean_difference = 0;  // from another image, where it is not exact
  std::string other = "picture.png";
};

std::vector<Expected> expected() {
  std::vector<Expected> all;
  std::ifstream file(test::project_path("tests/transform/formats/expected.txt"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Expected one;
    std::string what;
    words >> one.name >> one.width >> one.height >> what;
    one.is_exact = what != "near";
    if (one.is_exact)
      one.crc = static_cast<std::uint32_t>(std::stoul(what, nullptr, 16));
    else
      words >> one.mean_difference >> one.other;
    if (one.other.empty()) one.other = "picture.png";
    all.push_back(one);
  }
  return all;
}

std::uint32_t crc_of(const Pixels& pixels) {
  return static_cast<std::uint32_t>(
      ::crc32(0, pixels.data.data(), static_cast<uInt>(pixels.data.size())));
}

double mean_difference(const Pixels& a, const Pixels& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.data.size(); ++k) sum += std::abs(a.data[k] - b.data[k]);
  return sum / static_cast<double>(a.data.size());
}

// A kind whose library this build lacks says so, and the test of its files is skipped.
bool is_built(const Bytes& bytes) { return static_cast<bool>(reader_for(bytes)); }

class Formats : public testing::TestWithParam<Expected> {};

TEST_P(Formats, HavePillowsPixels) {
  const Expected& expected = GetParam();
  const Bytes bytes = read_file(expected.name);
  if (!is_built(bytes)) {
    EXPECT_THAT(decode_upright(bytes, expected.width, expected.height).fault,
                HasSubstr("this build of Penstock has no "));
    GTEST_SKIP() << reader_for(bytes).fault().reason;
  }
  const auto size = upright_size(bytes, true);
  ASSERT_TRUE(size) << size.fault().reason;
  EXPECT_EQ(*size, ImageSize(expected.height, expected.width));
  const Whole found = decode_upright(bytes, expected.width, expected.height);
  ASSERT_EQ(found.fault, "");
  if (expected.is_exact) {
    EXPECT_EQ(crc_of(found.pixels), expected.crc);
  } else {
    const Whole picture =
        decode_upright(read_file(expected.other), expected.width, expected.height);
    EXPECT_LE(mean_difference(found.pixels, picture.pixels), expected.mean_difference);
  }
}

// However a file is cut, it is a fault, or has all of its pixels.
TEST_P(Formats, CutFilesAreFaults) {
  const Expected& expected = GetParam();
  const Bytes bytes = read_file(expected.name);
  if (!is_built(bytes)) GTEST_SKIP();
  const Whole whole = decode_upright(bytes, expected.width, expected.height);
  std::size_t faults = 0;
  const std::size_t step = std::max<std::size_t>(bytes.size() / 150, 1);
  for (std::size_t size = 0; size < bytes.size(); size += step) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const Whole found = decode_upright(cut, expected.width, expected.height);
    if (found.fault.empty())
      EXPECT_EQ(found.pixels, whole.pixels) << size << " of " << bytes.size() << " bytes";
    else
      ++faults;
  }
  EXPECT_GT(faults, 5U);
}

INSTANTIATE_TEST_SUITE_P(All, Formats, testing::ValuesIn(expected()), [](const auto& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, '.', '_');
  return name;
});

TEST(FormatsOfNames, EachHasAFile) { EXPECT_GE(expected().size(), 40U); }

TEST(Orientation, OfPngAndWebpCountsOnlyWithExif) {
  for (const char* name : {"orientation.png", "orientation.webp"}) {
    const Bytes bytes = read_file(name);
    const Whole stored = decode_upright(bytes, 37, 22, {.exif = false});
    EXPECT_EQ(stored.pixels, decode_upright(read_file("picture.png"), 37, 22).pixels) << name;
    EXPECT_EQ(*upright_size(bytes, false), ImageSize(22, 37)) << name;
    EXPECT_EQ(*upright_size(bytes, true), ImageSize(37, 22)) << name;
  }
}

TEST(Orientation, TurnsLevelsOf16Bits) {
  const Bytes bytes = read_file("wide_orientation.png");
  const auto levels = [&](int width, int height, bool exif) {
    std::vector<std::uint16_t> out(static_cast<std::size_t>(width * height));
    const ConstTensorView in(bytes.data(), DType::u8, {std::ssize(bytes)});
    const TensorView to(reinterpret_cast<std::byte*>(out.data()), DType::u16, {height, width, 1});
    Random random(RandomKey(1, 1), SampleId{});
    const auto decode = decode_image(
        {.crop = resize_to({height, width}), .exif = exif, .channels = 1, .dtype = DType::u16});
    EXPECT_TRUE(decode->apply(std::span(&in, 1), std::vector<TensorView>{to}, random));
    return out;
  };
  const std::vector<std::uint16_t> stored = levels(37, 22, false);
  const std::vector<std::uint16_t> upright = levels(22, 37, true);
  EXPECT_EQ(stored[5], 5 * 79);
  for (std::size_t y = 0; y < 37; ++y)  // a quarter turn clockwise
    for (std::size_t x = 0; x < 22; ++x) EXPECT_EQ(upright[22 * y + x], stored[37 * (21 - x) + y]);
}

// The EXIF data stand behind the pixels: of the beginning alone no size must be told.
TEST(Orientation, OfAWebpNeedsTheWholeFile) {
  const Bytes bytes = read_file("orientation.webp");
  for (std::size_t size = 0; size + 1 < bytes.size(); size += 7)
    EXPECT_FALSE(upright_size(std::span(bytes).first(size), true)) << size;
}

// A TIFF of one strip: its entries of the directory, as tag, type, count and value, and the strip.
Bytes tiff_of(const std::vector<std::array<std::uint32_t, 4>>& entries, const Bytes& strip) {
  Bytes bytes;
  const auto put = [&](std::uint32_t value, int size) {
    for (int k = 0; k < size; ++k) bytes.push_back(static_cast<std::byte>(value >> (8 * k)));
  };
  put(0x002A4949, 4);
  put(8, 4);
  put(static_cast<std::uint32_t>(entries.size()), 2);
  for (const auto& [tag, type, count, value] : entries) {
    put(tag, 2);
    put(type, 2);
    put(count, 4);
    put(value, 4);
  }
  put(0, 4);
  bytes.insert(bytes.end(), strip.begin(), strip.end());
  return bytes;
}

std::string fault_of_tiff(std::uint32_t compression, std::uint32_t subfile, const Bytes& strip,
                          std::uint32_t tile = 0) {
  const std::uint32_t at = 8 + 2 + 12 * (tile == 0 ? 9 : 10) + 4;
  std::vector<std::array<std::uint32_t, 4>> entries{
      {254, 4, 1, subfile},     {256, 3, 1, 8}, {257, 3, 1, 8}, {258, 3, 1, tile == 0 ? 1U : 8U},
      {259, 3, 1, compression}, {262, 3, 1, 1}};
  const auto bytes = static_cast<std::uint32_t>(strip.size());
  if (tile == 0)
    entries.insert(entries.end(), {{273, 4, 1, at}, {278, 4, 1, 8}, {279, 4, 1, bytes}});
  else
    entries.insert(entries.end(),
                   {{322, 4, 1, tile}, {323, 4, 1, tile}, {324, 4, 1, at}, {325, 4, 1, bytes}});
  return decode_upright(tiff_of(entries, strip), 8, 8).fault;
}

TEST(Tiff, IsRefusedWhereItsDecoderCouldEndTheProcessOrTakeAllMemory) {
  const Bytes probe(8, std::byte{0});
  if (!is_built(tiff_of({}, probe))) GTEST_SKIP() << "built without libtiff";
  // JBIG, whose header asks for 2^31 - 1 pixels a side.
  Bytes jbig{std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0}};
  for (const std::uint32_t number : {0x7FFFFFFFU, 0x7FFFFFFFU, 1U, 0U})
    for (int k = 3; k >= 0; --k) jbig.push_back(static_cast<std::byte>(number >> (8 * k)));
  for (int k = 0; k < 4; ++k) jbig.insert(jbig.end(), {std::byte{0xFF}, std::byte{2}});
  EXPECT_EQ(fault_of_tiff(34661, 0, jbig), "a TIFF with compression 34661, which is not decoded");
  EXPECT_THAT(fault_of_tiff(1, 1, probe), HasSubstr("begins with a thumbnail"));
  EXPECT_THAT(fault_of_tiff(8, 0, probe, 1 << 14), HasSubstr("a tile or strip of 268435456 bytes"));
  EXPECT_EQ(fault_of_tiff(1, 0, probe), "");
}

// A bitmap of 3x2 pixels of 8 bits, whose palette is grey levels, with these runs.
Bytes bitmap_of(const std::vector<std::uint8_t>& runs) {
  Bytes bytes;
  const auto put = [&](std::uint32_t value, int size) {
    for (int k = 0; k < size; ++k) bytes.push_back(static_cast<std::byte>(value >> (8 * k)));
  };
  put('B' | 'M' << 8, 2);
  for (const std::uint32_t value :
       {0U, 0U, 14 + 40 + 4 * 256U, 40U, 3U, 2U, 8U << 16 | 1, 1U, 0U, 0U, 0U, 0U, 0U})
    put(value, 4);
  for (std::uint32_t level = 0; level < 256; ++level) put(level * 0x010101, 4);
  for (const std::uint8_t run : runs) put(run, 1);
  return bytes;
}

std::vector<int> levels_of(const Pixels& pixels) {
  std::vector<int> levels;
  for (std::size_t k = 0; k < pixels.data.size(); k += 3) levels.push_back(pixels.data[k]);
  return levels;
}

TEST(Bmp, OfRunsIsWhole) {
  const std::vector<int> whole{7, 7, 7, 9, 8, 8};
  for (const std::vector<std::uint8_t>& runs : {
           std::vector<std::uint8_t>{1, 9, 2, 8, 0, 0, 3, 7, 0, 0, 0, 1},
           {1, 9, 2, 8, 0, 0, 3, 7, 0, 1},
           {1, 9, 2, 8, 0, 0, 3, 7},        // without an end
           {1, 9, 3, 8, 0, 0, 4, 7, 0, 1},  // with the padding of rows
           {1, 9, 0, 3, 8, 8, 8, 0, 0, 0, 4, 7},
       }) {
    const Whole found = decode_upright(bitmap_of(runs), 3, 2);
    EXPECT_EQ(found.fault, "");
    EXPECT_EQ(levels_of(found.pixels), whole) << testing::PrintToString(runs);
  }
  // What a row's end or a jump leaves out has the first colour.
  EXPECT_EQ(levels_of(decode_upright(bitmap_of({1, 9, 0, 0, 3, 7, 0, 1}), 3, 2).pixels),
            (std::vector<int>{7, 7, 7, 9, 0, 0}));
  EXPECT_EQ(levels_of(decode_upright(bitmap_of({0, 2, 1, 1, 2, 7, 0, 1}), 3, 2).pixels),
            (std::vector<int>{0, 7, 7, 0, 0, 0}));
}

TEST(Bmp, WhoseRunsEndEarlyOrLeaveItIsAFault) {
  const std::vector<std::pair<std::vector<std::uint8_t>, std::string>> damaged{
      {{5, 9, 0, 0, 3, 7, 0, 1}, "a run leaves the picture in row 1 of 2"},
      {{3, 9, 0, 0, 1, 7, 0, 4, 1, 2, 3, 4, 0, 1}, "a run leaves the picture in row 2 of 2"},
      {{1, 9, 0, 2, 4, 0, 0, 0, 3, 7, 0, 1}, "a jump leaves the picture in row 1 of 2"},
      {{0, 2, 0, 2, 3, 7, 0, 1}, "a jump leaves the picture in row 1 of 2"},
      {{3, 9, 0, 1}, "the runs end in row 1 of 2"},
      {{3, 9, 0, 0, 2, 7, 0, 1}, "the runs end in row 2 of 2"}};
  for (const auto& [runs, what] : damaged)
    EXPECT_EQ(decode_upright(bitmap_of(runs), 3, 2).fault, "corrupt BMP data: " + what);
  EXPECT_EQ(decode_upright(bitmap_of({3, 9, 0, 0, 2, 7}), 3, 2).fault, "premature end of BMP file");
}

TEST(Heif, WhoseGridIsLargerThanTheHeaderSaysIsRefusedBeforeItTakesMemory) {
  Bytes bytes = read_file("grid.avif");
  if (!is_built(bytes)) GTEST_SKIP() << "built without libheif";
  constexpr std::string_view kName = "idat";
  const auto name = std::ranges::search(
      bytes, kName, [](std::byte a, char b) { return static_cast<char>(a) == b; });
  ASSERT_FALSE(name.empty());
  const auto size = name.end() + 4;  // 2 bytes each, big-endian
  size[0] = size[2] = std::byte{5000 >> 8};
  size[1] = size[3] = std::byte{5000 & 255};
  EXPECT_THAT(decode_upright(bytes, 37, 22).fault,
              HasSubstr("Image size 5000x5000 exceeds the maximum image size"));
}

TEST(Heif, OfAKindThatLibheifDoesNotReadSaysSoInOneLine) {
  Bytes bytes = read_file("avif.avif");
  if (!is_built(bytes)) GTEST_SKIP() << "built without libheif";
  for (std::size_t at = 4; at + 4 < 40; ++at)  // its brands become those of a sequence that is none
    if (bytes[at] == std::byte{'a'} && bytes[at + 1] == std::byte{'v'} &&
        bytes[at + 2] == std::byte{'i'})
      bytes[at + 3] = std::byte{'s'};
    else if (bytes[at] == std::byte{'m'} && bytes[at + 1] == std::byte{'i'})
      bytes[at] = std::byte{'x'};
  const std::string fault = decode_upright(bytes, 37, 22).fault;
  EXPECT_THAT(fault, HasSubstr("of a kind that libheif does not read: convert it"));
  EXPECT_THAT(fault, testing::Not(HasSubstr("\n")));
}

// A TIFF of `width` pixels in one row, of 16 bits a sample: colours, then what the fourth tag says of the extra samples.
Bytes wide_tiff(const std::vector<std::uint16_t>& samples, std::uint32_t width,
                std::uint32_t photometric, std::uint32_t extra, std::uint32_t planar = 1) {
  const auto per_pixel = static_cast<std::uint32_t>(samples.size()) / width;
  Bytes strip;
  for (const std::uint16_t sample : samples) {
    strip.push_back(static_cast<std::byte>(sample & 255));
    strip.push_back(static_cast<std::byte>(sample >> 8));
  }
  std::vector<std::array<std::uint32_t, 4>> entries{
      {256, 3, 1, width},
      {257, 3, 1, 1},
      {258, 3, 1, 16},
      {259, 3, 1, 1},
      {262, 3, 1, photometric},
      {273, 4, 1, 0},
      {277, 3, 1, per_pixel},
      {278, 4, 1, 1},
      {279, 4, 1, static_cast<std::uint32_t>(strip.size())},
      {284, 3, 1, planar}};
  if (extra > 0) entries.push_back({338, 3, 1, extra});
  entries[5][3] = static_cast<std::uint32_t>(8 + 2 + 12 * entries.size() + 4);
  return tiff_of(entries, strip);
}

// Every level of 16 bits that is divided is the nearest of 8 bits.
TEST(Tiff, DividesLevelsOf16BitsByAlphaBeforeTheyBecome8) {
  constexpr std::uint32_t kWidth = 4096;
  std::vector<std::uint16_t> rgb;
  std::vector<std::uint16_t> grey;
  for (std::uint32_t x = 0; x < kWidth; ++x) {
    const std::uint32_t alpha = 1 + 16 * x;
    for (const std::uint32_t part : {3U, 5U, 16U})
      rgb.push_back(static_cast<std::uint16_t>(alpha * part * (x % 4) / 48));
    rgb.push_back(static_cast<std::uint16_t>(alpha));
    grey.insert(grey.end(), {rgb[rgb.size() - 3], static_cast<std::uint16_t>(alpha)});
  }
  const Bytes bytes = wide_tiff(rgb, kWidth, 2, 1);
  if (!is_built(bytes)) GTEST_SKIP() << "built without libtiff";
  const auto nearest = [](std::uint32_t color, std::uint32_t alpha) {
    return static_cast<int>(std::floor(255.0 * color / alpha + 0.5));
  };
  const Whole found = decode_upright(bytes, kWidth, 1);
  ASSERT_EQ(found.fault, "");
  const Whole of_grey = decode_upright(wide_tiff(grey, kWidth, 1, 1), kWidth, 1);
  ASSERT_EQ(of_grey.fault, "");
  for (std::size_t x = 0; x < kWidth; ++x) {
    for (std::size_t c = 0; c < 3; ++c)
      ASSERT_EQ(found.pixels.data[3 * x + c], nearest(rgb[4 * x + c], rgb[4 * x + 3])) << x;
    ASSERT_EQ(of_grey.pixels.data[3 * x], nearest(grey[2 * x], grey[2 * x + 1])) << x;
  }
}

TEST(Tiff, OfPlanesIsDividedAsOneOfPixels) {
  const std::vector<std::uint16_t> rgba{1000, 2000, 3000, 3000, 0, 30000, 60000, 65535};
  const Bytes whole = wide_tiff(rgba, 2, 2, 1);
  if (!is_built(whole)) GTEST_SKIP() << "built without libtiff";
  // Four strips, one a plane: their places and sizes are lists behind the directory.
  Bytes planes = wide_tiff({1000, 0, 2000, 30000, 3000, 60000, 3000, 65535}, 2, 2, 1, 2);
  const std::size_t entry = 10;
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t k = 0; k < 4; ++k) planes[at + k] = static_cast<std::byte>(value >> (8 * k));
  };
  const auto data = static_cast<std::uint32_t>(8 + 2 + 12 * 11 + 4);
  for (const std::size_t tag : {5U, 8U}) {
    put(entry + 12 * tag + 4, 4);
    put(entry + 12 * tag + 8, static_cast<std::uint32_t>(planes.size()));
    for (std::uint32_t k = 0; k < 4; ++k) {
      planes.resize(planes.size() + 4);
      put(planes.size() - 4, tag == 5 ? data + 4 * k : 4);
    }
  }
  const Whole found = decode_upright(planes, 2, 1);
  ASSERT_EQ(found.fault, "");
  EXPECT_EQ(found.pixels.data, (std::vector<std::uint8_t>{85, 170, 255, 0, 117, 233}));
  EXPECT_EQ(found.pixels, decode_upright(whole, 2, 1).pixels);
}

TEST(Tiff, OfGreyLevelsOf16BitsHasItsAlpha) {
  const Bytes bytes = wide_tiff({40000, 0, 40000, 65535}, 2, 1, 2);
  if (!is_built(bytes)) GTEST_SKIP() << "built without libtiff";
  const Whole found = decode_upright(bytes, 2, 1, {.background = Color(10)});
  EXPECT_EQ(found.pixels.data, (std::vector<std::uint8_t>{10, 10, 10, 156, 156, 156}));
}

TEST(Tiff, ThatLibtiffDoesNotConvertIsNamed) {
  const Bytes bytes = wide_tiff({1, 2, 3, 4}, 1, 5, 0);
  if (!is_built(bytes)) GTEST_SKIP() << "built without libtiff";
  EXPECT_EQ(decode_upright(bytes, 1, 1).fault,
            "a TIFF that libtiff does not convert to RGB: CMYK colours of 16 bits a level; convert "
            "it, for example to RGB of 8 bits");
}

TEST(Png, UnpacksNoTextThatNoOneReads) {
  Bytes png = png_of(picture(1, 1));
  const auto chunk = [](std::string_view name, const std::string& content) {
    std::string text;
    const auto put = [&](std::uint32_t value) {
      for (int k = 3; k >= 0; --k) text += static_cast<char>(value >> (8 * k));
    };
    put(static_cast<std::uint32_t>(content.size()));
    const std::string body = std::string(name) + content;
    text += body;
    put(static_cast<std::uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()))));
    return text;
  };
  const std::string plain(7'900'000, 'A');
  uLongf size = ::compressBound(plain.size());
  std::string packed(size, '\0');
  ASSERT_EQ(::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                       reinterpret_cast<const Bytef*>(plain.data()), plain.size()),
            Z_OK);
  packed.resize(size);
  std::string texts;
  for (int k = 0; k < 30; ++k) texts += chunk("zTXt", std::string("k\0\0", 3) + packed);
  const auto* const begin = reinterpret_cast<const std::byte*>(texts.data());
  constexpr std::ptrdiff_t kBehindHeader = 8 + 25;
  png.insert(png.begin() + kBehindHeader, begin, begin + texts.size());
  const std::size_t before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  const Result<std::unique_ptr<ImageReader>> reader = reader_for(png);
  ASSERT_TRUE((*reader)->open(png));
  EXPECT_LT(::mallinfo2().uordblks + ::mallinfo2().hblkhd, before + (std::size_t{16} << 20));
}

TEST(Masks, WithAnOrientationAreRefused) {
  const Bytes image = png_of(picture(22, 37));
  const Bytes mask = read_file("orientation.png");
  std::vector<ConstTensorView> in{{image.data(), DType::u8, {std::ssize(image)}},
                                  {mask.data(), DType::u8, {std::ssize(mask)}}};
  std::vector<std::uint8_t> pixels(3 * 8 * 8 + 8 * 8);
  auto* const to = reinterpret_cast<std::byte*>(pixels.data());
  const std::vector<TensorView> out{{to, DType::u8, {8, 8, 3}},
                                    {to + 3 * 8 * 8, DType::u8, {8, 8}}};
  Random random(RandomKey(1, 1), SampleId{});
  const auto done = decode_image({.crop = resize_to(8), .masks = {"mask"}})->apply(in, out, random);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.fault().reason, HasSubstr("whose EXIF orientation is 6"));
}

TEST(Libraries, AreThoseOfTheBuild) {
  for (const ImageLibrary& library : image_libraries()) {
    EXPECT_THAT(library.name, AnyOf("giflib", "libheif", "libjxl", "libtiff"));
    EXPECT_THAT(library.version, testing::MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+"));
  }
}

}  // namespace
}  // namespace penstock::transform
