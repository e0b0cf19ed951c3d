// Images of kinds other than JPEG, as other programs wrote them: formats/make.py made the files and says what Pillow sees in them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
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

TEST(Libraries, AreThoseOfTheBuild) {
  for (const ImageLibrary& library : image_libraries()) {
    EXPECT_THAT(library.name, AnyOf("giflib", "libheif", "libjxl", "libtiff"));
    EXPECT_THAT(library.version, testing::MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+"));
  }
}

}  // namespace
}  // namespace penstock::transform
