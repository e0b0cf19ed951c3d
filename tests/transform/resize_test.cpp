// The resize against a plain model of its arithmetic, to the bit, and against Pillow, to one level.
#include "src/transform/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace penstock::transform {
namespace {

using Levels = std::vector<std::uint8_t>;

// Four bytes a pixel, with the slack behind it that readers may touch; the fourth byte is noise.
struct Image {
  int width;
  int height;
  Levels pixels;

  Image(int w, int h) : width(w), height(h) {
    pixels.assign(static_cast<std::size_t>(w * h) * jpeg::kPixelBytes + jpeg::kRowSlack, 0xEE);
  }
  std::uint8_t* at(int x, int y) {
    return pixels.data() + static_cast<std::size_t>(y * width + x) * jpeg::kPixelBytes;
  }
};

Image noise(int width, int height, std::mt19937& random) {
  Image image(width, height);
  for (auto& byte : image.pixels) byte = static_cast<std::uint8_t>(random());
  return image;
}

Image formula(int width, int height) {
  Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        image.at(x, y)[c] = static_cast<std::uint8_t>(
            (x * (37 + c * 11) + y * (91 - c * 23) + x * y * (c + 1)) % 256);
  return image;
}

Levels resized(Image& image, const Region& box, ImageSize size, bool mirror = false,
               ResizeFilter filter = ResizeFilter::bilinear) {
  Resize resize;
  resize.plan(image.width, image.height, box, size, mirror, filter);
  const PixelRect source = resize.source();
  EXPECT_GE(source.x, 0);
  EXPECT_GE(source.y, 0);
  EXPECT_LE(source.x + source.width, image.width);
  EXPECT_LE(source.y + source.height, image.height);
  jpeg::MemoryRows rows(image.pixels.data(),
                        static_cast<std::size_t>(image.width) * jpeg::kPixelBytes, source.x);
  Levels out(static_cast<std::size_t>(size.height * size.width * 3 + 1), 0xA5);
  EXPECT_TRUE(resize.run(rows, out.data(), std::ptrdiff_t{3} * size.width));
  EXPECT_EQ(out.back(), 0xA5) << "written behind the end";
  out.pop_back();
  return out;
}

// As Pillow's bilinear_filter and bicubic_filter.
double filtered(double x, ResizeFilter filter) {
  x = std::abs(x);
  if (filter == ResizeFilter::bilinear) return std::max(1.0 - x, 0.0);
  if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
  return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
}

// One output pixel's weights over the whole line, exact.
std::vector<double> exact_weights(int source, double begin, double extent, int output, int i,
                                  ResizeFilter filter) {
  const double scale = extent / output;
  const double stretch = std::max(scale, 1.0);
  const double support = stretch * (filter == ResizeFilter::bilinear ? 1 : 2);
  const double center = begin + (i + 0.5) * scale;
  const int low = std::max(static_cast<int>(center - support + 0.5), 0);
  const int high = std::min(static_cast<int>(center + support + 0.5), source);
  std::vector<double> weights(static_cast<std::size_t>(source), 0.0);
  double sum = 0;
  for (int k = low; k < high; ++k) {
    const double w = filtered((k - center + 0.5) / stretch, filter);
    weights[static_cast<std::size_t>(k)] = w;
    sum += w;
  }
  for (double& w : weights) w /= sum;
  return weights;
}

// The same in 1/16384, so that every running sum is the rounded one. In the arithmetic of the
// library, since a half may be rounded either way.
std::vector<int> integer_weights(int source, double begin, double extent, int output, int i,
                                 ResizeFilter filter) {
  const double scale = extent / output;
  const double stretch = std::max(scale, 1.0);
  const double support = stretch * (filter == ResizeFilter::bilinear ? 1 : 2);
  const double center = begin + (i + 0.5) * scale;
  const int low = std::max(static_cast<int>(center - support + 0.5), 0);
  const int high = std::min(static_cast<int>(center + support + 0.5), source);
  std::vector<double> weights(static_cast<std::size_t>(source), 0.0);
  double sum = 0;
  for (int k = low; k < high; ++k) {
    const double x = std::abs((k - center + 0.5) * (1.0 / stretch));
    double& w = weights[static_cast<std::size_t>(k)];
    if (filter == ResizeFilter::bilinear)
      w = std::max(1.0 - x, 0.0);
    else if (x < 1)
      w = (1.5 * x - 2.5) * x * x + 1;
    else
      w = x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
    sum += w;
  }
  std::vector<int> integers(weights.size(), 0);
  double running = 0;
  int given = 0;
  for (int k = low; k < high; ++k) {
    running += weights[static_cast<std::size_t>(k)];
    const int until =
        k == high - 1 ? 16384 : static_cast<int>(std::floor(running * (16384 / sum) + 0.5));
    integers[static_cast<std::size_t>(k)] = until - given;
    given = until;
  }
  return integers;
}

// Rows first, with 7 or 6 bits of fraction kept; then columns.
Levels model(Image& image, const Region& box, ImageSize size, bool mirror, ResizeFilter filter) {
  const int fraction = filter == ResizeFilter::bilinear ? 7 : 6;
  std::vector<int> between(static_cast<std::size_t>(size.height * image.width * 3));
  for (int y = 0; y < size.height; ++y) {
    const auto weights = integer_weights(image.height, box.y, box.height, size.height, y, filter);
    for (int x = 0; x < image.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        int sum = 1 << (13 - fraction);
        for (int k = 0; k < image.height; ++k)
          sum += weights[static_cast<std::size_t>(k)] * image.at(x, k)[c];
        between[static_cast<std::size_t>((y * image.width + x) * 3 + c)] = sum >> (14 - fraction);
      }
    }
  }
  Levels out(static_cast<std::size_t>(size.height * size.width * 3));
  for (int x = 0; x < size.width; ++x) {
    const auto weights = integer_weights(image.width, box.x, box.width, size.width, x, filter);
    const int to = mirror ? size.width - 1 - x : x;
    for (int y = 0; y < size.height; ++y) {
      for (int c = 0; c < 3; ++c) {
        int sum = 1 << (13 + fraction);
        for (int k = 0; k < image.width; ++k)
          sum += weights[static_cast<std::size_t>(k)] *
                 between[static_cast<std::size_t>((y * image.width + k) * 3 + c)];
        out[static_cast<std::size_t>((y * size.width + to) * 3 + c)] =
            static_cast<std::uint8_t>(std::clamp(sum >> (14 + fraction), 0, 255));
      }
    }
  }
  return out;
}

double largest_error(Image& image, const Region& box, ImageSize size, ResizeFilter filter,
                     const Levels& out) {
  double largest = 0;
  for (int y = 0; y < size.height; ++y) {
    const auto rows = exact_weights(image.height, box.y, box.height, size.height, y, filter);
    for (int x = 0; x < size.width; ++x) {
      const auto columns = exact_weights(image.width, box.x, box.width, size.width, x, filter);
      for (int c = 0; c < 3; ++c) {
        double sum = 0;
        for (int j = 0; j < image.height; ++j)
          for (int i = 0; i < image.width; ++i)
            sum += rows[static_cast<std::size_t>(j)] * columns[static_cast<std::size_t>(i)] *
                   image.at(i, j)[c];
        const double found = out[static_cast<std::size_t>((y * size.width + x) * 3 + c)];
        largest = std::max(largest, std::abs(found - std::clamp(sum, 0.0, 255.0)));
      }
    }
  }
  return largest;
}

struct Case {
  Image image;
  Region box;
  ImageSize size;
  bool mirror;
  ResizeFilter filter;
};

Case random_case(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto part = [&](double n) { return n * (1 + below(1000)) / 1000; };
  Case one{noise(1 + below(60), 1 + below(60), random),
           {},
           {1 + below(40), 1 + below(40)},
           below(2) == 1,
           below(2) == 1 ? ResizeFilter::bicubic : ResizeFilter::bilinear};
  one.box.width = part(one.image.width);
  one.box.height = part(one.image.height);
  one.box.x = (one.image.width - one.box.width) * below(1001) / 1000;
  one.box.y = (one.image.height - one.box.height) * below(1001) / 1000;
  if (below(3) == 0) {
    one.box = {std::floor(one.box.x), std::floor(one.box.y), std::ceil(one.box.width),
               std::ceil(one.box.height)};
  }
  return one;
}

// One of the instruction sets that this CPU has and this library was built for.
class ResizeOn : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

TEST_P(ResizeOn, EqualsThePlainModelToTheBit) {
  std::mt19937 random(11);
  for (int i = 0; i < 400; ++i) {
    Case one = random_case(random);
    SCOPED_TRACE(testing::Message()
                 << "case " << i << ": " << one.image.width << "x" << one.image.height << " box "
                 << one.box.x << "," << one.box.y << " " << one.box.width << "x" << one.box.height
                 << " to " << one.size.width << "x" << one.size.height
                 << (one.filter == ResizeFilter::bicubic ? ", bicubic" : ""));
    ASSERT_EQ(resized(one.image, one.box, one.size, one.mirror, one.filter),
              model(one.image, one.box, one.size, one.mirror, one.filter));
  }
}

TEST_P(ResizeOn, EqualsThePlainModelWhereManyPixelsBecomeOne) {
  std::mt19937 random(5);
  Image image = noise(700, 500, random);
  const Region box{.x = 0, .y = 0, .width = 700, .height = 500};
  for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::bicubic})
    EXPECT_EQ(resized(image, box, {2, 3}, false, filter), model(image, box, {2, 3}, false, filter));
}

std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> all = hwy::SupportedAndGeneratedTargets();
  if (std::ranges::count(all, HWY_SCALAR) == 0 && (HWY_TARGETS & HWY_SCALAR) != 0)
    all.push_back(HWY_SCALAR);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Targets, ResizeOn, testing::ValuesIn(targets()),
                         [](const auto& test) { return std::string(hwy::TargetName(test.param)); });

TEST(Resize, IsWithinALevelOfTheExactFilter) {
  std::mt19937 random(2);
  for (int i = 0; i < 60; ++i) {
    Case one = random_case(random);
    const Levels out = resized(one.image, one.box, one.size, false, one.filter);
    EXPECT_LT(largest_error(one.image, one.box, one.size, one.filter, out), 0.6) << "case " << i;
  }
}

TEST(Resize, KeepsAPlainColourWhateverTheScale) {
  for (const int level : {0, 1, 127, 200, 255}) {
    Image image(301, 203);
    std::ranges::fill(image.pixels, static_cast<std::uint8_t>(level));
    for (const int side : {1, 2, 7, 100, 224, 500}) {
      for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::bicubic}) {
        const Region box{.x = 1.3, .y = 2.7, .width = 290.1, .height = 199.9};
        const Levels out = resized(image, box, side, false, filter);
        EXPECT_EQ(std::ranges::count(out, level), std::ssize(out)) << level << " to " << side;
      }
    }
  }
}

// Black and white beside each other: a cubic goes beyond both.
TEST(Resize, KeepsToTheLevelsThatThereAre) {
  Image image(64, 64);
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x)
      for (int c = 0; c < 3; ++c) image.at(x, y)[c] = (x / 8 + y / 8) % 2 == 0 ? 0 : 255;
  const Region box{.x = 0, .y = 0, .width = 64, .height = 64};
  for (const int side : {50, 64, 150})
    EXPECT_EQ(resized(image, box, side, false, ResizeFilter::bicubic),
              model(image, box, side, false, ResizeFilter::bicubic));
}

TEST(Resize, CopiesWhereNothingChanges) {
  std::mt19937 random(8);
  Image image = noise(37, 29, random);
  const Levels out = resized(image, {.x = 3, .y = 5, .width = 31, .height = 20}, {20, 31});
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 31; ++x)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(out[static_cast<std::size_t>((y * 31 + x) * 3 + c)], image.at(x + 3, y + 5)[c]);
}

TEST(Resize, ReadsNoPixelThatWeighsNothing) {
  Resize resize;
  resize.plan(37, 29, {.x = 3, .y = 5, .width = 31, .height = 20}, {20, 31}, false);
  EXPECT_EQ(resize.source(), (PixelRect{3, 5, 31, 20}));
}

TEST(Resize, SaysWhenTheRowsEnd) {
  struct NoRows final : jpeg::RowSource {
    const std::uint8_t* const* rows(int, int) override { return nullptr; }
  } none;
  Resize resize;
  resize.plan(10, 10, {.x = 0, .y = 0, .width = 10, .height = 10}, 4, false);
  Levels out(48);
  EXPECT_FALSE(resize.run(none, out.data(), 12));
}

void expect_within_one(const Levels& found, const Levels& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1) << "at " << i;
}

// Pillow 13.0.0: Image.resize(size, Image.BILINEAR, box=box) of formula(width, height).
TEST(Resize, ShrinksAsPillowDoes) {
  Image image = formula(23, 19);
  const Levels pillow{123, 126, 123, 117, 128, 128, 124, 121, 134, 135, 132, 128, 139, 133, 132,
                      124, 128, 126, 123, 115, 128, 132, 115, 123, 123, 123, 116, 136, 120, 135,
                      131, 131, 144, 134, 126, 126, 123, 129, 123, 122, 137, 124, 130, 125, 131,
                      141, 125, 157, 129, 116, 156, 115, 123, 133, 118, 112, 118, 127, 132, 133,
                      145, 109, 121, 144, 135, 144, 137, 119, 128, 132, 135, 117, 132, 132, 118,
                      141, 121, 129, 142, 106, 129, 146, 122, 133, 135, 134, 124, 135, 127, 142};
  expect_within_one(resized(image, {.x = 2.25, .y = 1.5, .width = 17.5, .height = 15.75}, {5, 6}),
                    pillow);
}

TEST(Resize, EnlargesAsPillowDoesWithPixelsFromAroundTheBox) {
  Image image = formula(9, 7);
  const Levels pillow{
      199, 166, 135, 129, 199, 175, 33,  218, 202, 58,  117, 110, 82,  69,  69,  107, 75,  83,
      107, 104, 121, 112, 137, 161, 132, 109, 167, 101, 119, 152, 53,  143, 114, 78,  97,  76,
      103, 90,  77,  128, 123, 119, 152, 156, 160, 153, 165, 178, 65,  44,  198, 90,  38,  129,
      116, 71,  28,  141, 105, 71,  152, 140, 113, 151, 174, 157, 173, 183, 175, 158, 158, 159,
      126, 58,  230, 152, 85,  162, 177, 120, 61,  202, 155, 106, 162, 189, 150, 53,  224, 194,
      66,  139, 118, 84,  73,  61,  187, 97,  158, 157, 132, 123, 112, 160, 96,  137, 116, 142,
      123, 111, 147, 69,  147, 112, 87,  111, 78,  113, 90,  67,  206, 143, 77,  138, 160, 83,
      46,  160, 131, 72,  63,  177, 98,  33,  143, 124, 69,  30,  151, 106, 61,  169, 134, 107};
  expect_within_one(resized(image, {.x = 1, .y = 2, .width = 5, .height = 4}, {6, 8}), pillow);
}

// The same with Image.BICUBIC.
TEST(Resize, IsBicubicAsPillowIs) {
  Image large = formula(23, 19);
  const Levels shrunk{124, 126, 122, 116, 130, 128, 126, 120, 136, 133, 133, 127, 143, 132, 131,
                      122, 131, 124, 121, 113, 128, 135, 114, 123, 120, 124, 112, 137, 117, 135,
                      129, 133, 147, 138, 124, 126, 124, 131, 122, 119, 137, 121, 129, 126, 130,
                      145, 123, 162, 125, 114, 159, 112, 126, 132, 115, 109, 117, 128, 136, 136,
                      146, 106, 118, 145, 141, 146, 139, 116, 128, 133, 136, 111, 132, 134, 117,
                      142, 121, 131, 144, 104, 129, 147, 124, 132, 134, 136, 122, 135, 128, 147};
  const Region part{.x = 2.25, .y = 1.5, .width = 17.5, .height = 15.75};
  expect_within_one(resized(large, part, {5, 6}, false, ResizeFilter::bicubic), shrunk);
  Image small = formula(9, 7);
  const Levels enlarged{
      227, 178, 132, 136, 228, 194, 16,  238, 222, 38,  106, 99,  71,  43,  44,  96,  70,  78,
      98,  98,  117, 109, 136, 167, 139, 105, 173, 96,  116, 162, 34,  146, 113, 56,  78,  53,
      90,  67,  54,  127, 121, 117, 172, 176, 180, 173, 186, 201, 47,  23,  215, 83,  5,   128,
      119, 57,  6,   147, 103, 57,  159, 145, 116, 161, 178, 160, 199, 207, 199, 176, 174, 175,
      121, 51,  255, 156, 79,  174, 193, 118, 51,  236, 165, 95,  178, 213, 163, 37,  246, 215,
      43,  137, 117, 75,  49,  37,  211, 92,  161, 168, 148, 115, 108, 179, 93,  143, 115, 147,
      124, 105, 157, 50,  150, 113, 61,  97,  58,  102, 70,  44,  231, 145, 57,  143, 179, 60,
      26,  174, 132, 50,  47,  199, 89,  1,   150, 125, 55,  10,  156, 103, 41,  174, 140, 110};
  const Region box{.x = 1, .y = 2, .width = 5, .height = 4};
  expect_within_one(resized(small, box, {6, 8}, false, ResizeFilter::bicubic), enlarged);
}

TEST(Resize, ShrinksALotAsPillowDoes) {
  Image image = formula(40, 40);
  const Levels pillow{129, 122, 128, 129, 126, 130, 126, 126, 128,
                      128, 124, 125, 126, 127, 127, 125, 124, 123};
  expect_within_one(resized(image, {.x = 0, .y = 0, .width = 40, .height = 40}, {2, 3}), pillow);
}

}  // namespace
}  // namespace penstock::transform
