#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/transform/crop.hpp>

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Random numbers(std::uint64_t sample) { return {RandomKey(7, 0), {.number = sample}}; }

Placement chosen(const Crop& crop, int width, int height, std::uint64_t sample = 0) {
  Random random = numbers(sample);
  return *choose_placement(crop, width, height, random);
}

constexpr PixelRect whole_of(ImageSize size) { return {0, 0, size.width, size.height}; }

TEST(RandomResizedCrop, StaysInTheImageWithWholePixels) {
  const Crop crop = random_resized_crop(224);
  for (const auto& [width, height] :
       {std::pair(500, 375), std::pair(1, 1), std::pair(3, 900), std::pair(900, 3)})
    for (std::uint64_t sample = 0; sample < 2'000; ++sample) {
      const auto [region, place, mirrored, cut] = chosen(crop, width, height, sample);
      EXPECT_FALSE(mirrored);
      ASSERT_EQ(place, whole_of(224));
      ASSERT_GE(region.x, 0);
      ASSERT_GE(region.y, 0);
      ASSERT_GE(region.width, 1);
      ASSERT_GE(region.height, 1);
      ASSERT_LE(region.x + region.width, width);
      ASSERT_LE(region.y + region.height, height);
      for (const double value : {region.x, region.y, region.width, region.height})
        ASSERT_EQ(value, std::floor(value));
    }
}

TEST(RandomResizedCrop, SpreadsAreaUniformlyAndRatioLogUniformly) {
  // A square image large enough that no attempt is refused for its ratio when the area is small.
  const Crop crop = random_resized_crop(224, {.scale = {0.1, 0.5}});
  constexpr int kDraws = 20'000;
  std::array<int, 4> areas{};
  std::array<int, 4> ratios{};
  double x = 0;
  for (std::uint64_t sample = 0; sample < kDraws; ++sample) {
    const Region region = chosen(crop, 4'000, 4'000, sample).region;
    const double area = region.width * region.height / 16e6;
    const double ratio = std::log(region.width / region.height) / std::log(4.0 / 3);  // in [-1, 1]
    ++areas[static_cast<std::size_t>(std::clamp((area - 0.1) / 0.1, 0.0, 3.0))];
    ++ratios[static_cast<std::size_t>(std::clamp((ratio + 1) * 2, 0.0, 3.0))];
    x += region.x / (4'000 - region.width) / kDraws;
  }
  for (const int count : areas) EXPECT_NEAR(count, kDraws / 4, 310);  // five standard deviations
  for (const int count : ratios) EXPECT_NEAR(count, kDraws / 4, 310);
  EXPECT_NEAR(x, 0.5, 0.011);
}

TEST(RandomResizedCrop, FallsBackToTheLargestCentredCrop) {
  const Crop crop = random_resized_crop(224, {.scale = {1, 1}, .ratio = {1, 1}});
  EXPECT_EQ(chosen(crop, 100, 60).region, (Region{20, 0, 60, 60}));
  EXPECT_EQ(chosen(crop, 60, 101).region, (Region{0, 20, 60, 60}));
}

TEST(RandomResizedCrop, KeepsItsGeometryBetweenVersions) {
  // Saved runs rely on it: these change only with a new major version.
  const Crop crop = random_resized_crop(224);
  const Region region = chosen(crop, 500, 375, 1).region;
  EXPECT_EQ(chosen(crop, 500, 375, 1).region, region);
  EXPECT_EQ(region, (Region{12, 10, 411, 355}));
}

TEST(CenterCrop, TakesTheMiddleInOneRegion) {
  EXPECT_EQ(chosen(center_crop(224, {.resize = 256}), 512, 1024),
            (Placement{{32, 288, 448, 448}, whole_of(224)}));
}

TEST(CenterCrop, ResizesToWholePixelsAndBeginsAtOne) {
  // 500x375 is resized to 341x256, of which the columns 58 to 281 are taken: half of 117 is 58.5, and
  // 58 is even.
  const Region region = chosen(center_crop(224, {.resize = 256}), 500, 375).region;
  EXPECT_DOUBLE_EQ(region.x, 58 * 500.0 / 341);
  EXPECT_DOUBLE_EQ(region.width, 224 * 500.0 / 341);
  EXPECT_DOUBLE_EQ(region.y, 16 * 375.0 / 256);
  EXPECT_DOUBLE_EQ(region.height, 224 * 375.0 / 256);
}

TEST(ResizeTo, TakesTheWholeImage) {
  EXPECT_EQ(chosen(resize_to({10, 20}), 33, 44),
            (Placement{{0, 0, 33, 44}, whole_of(ImageSize(10, 20))}));
}

// Sides from 1 to 8192, small ones as often as large ones.
int random_side(std::mt19937& random) {
  return 1 + static_cast<int>(random() % (1U << random() % 14));
}

ImageSize random_size(std::mt19937& random) {
  return {1 + static_cast<int>(random() % 300), 1 + static_cast<int>(random() % 300)};
}

// What holds for every crop: the region is of the image, and the place of the sample.
void expect_within(const Placement& placement, ImageSize size, int width, int height) {
  const auto& [region, place, mirrored, cut] = placement;
  EXPECT_FALSE(mirrored);
  ASSERT_GE(place.x, 0);
  ASSERT_GE(place.y, 0);
  ASSERT_GE(place.width, 1);
  ASSERT_GE(place.height, 1);
  ASSERT_LE(place.x + place.width, size.width);
  ASSERT_LE(place.y + place.height, size.height);
  ASSERT_GE(region.x, 0);
  ASSERT_GE(region.y, 0);
  ASSERT_GT(region.width, 0);
  ASSERT_GT(region.height, 0);
  ASSERT_LE(region.x + region.width, width * (1 + 1e-15));
  ASSERT_LE(region.y + region.height, height * (1 + 1e-15));
  // The frame puts the region where the place is.
  const Region frame = placement.frame(size);
  ASSERT_NEAR((region.x - frame.x) * size.width / frame.width, place.x, 1e-9 * size.width);
  ASSERT_NEAR((region.y - frame.y) * size.height / frame.height, place.y, 1e-9 * size.height);
  ASSERT_NEAR(region.width * size.width / frame.width, place.width, 1e-9 * size.width);
  ASSERT_NEAR(region.height * size.height / frame.height, place.height, 1e-9 * size.height);
}

TEST(Letterbox, ShowsAllOfTheImageInTheMiddle) {
  std::mt19937 random(3);
  for (int i = 0; i < 5'000; ++i) {
    const int width = random_side(random);
    const int height = random_side(random);
    const ImageSize size = random_size(random);
    const Placement found = chosen(letterbox(size), width, height);
    ASSERT_NO_FATAL_FAILURE(expect_within(found, size, width, height));
    ASSERT_EQ(found.region,
              (Region{0, 0, static_cast<double>(width), static_cast<double>(height)}));
    // One direction fits exactly; in the other the aspect is kept to a pixel, and the fill on both
    // sides is the same, or one pixel less above.
    const double scale = std::min(1.0 * size.width / width, 1.0 * size.height / height);
    ASSERT_TRUE(found.place.width == size.width || found.place.height == size.height);
    ASSERT_NEAR(found.place.width, std::max(width * scale, 1.0), 0.5 + 1e-9);
    ASSERT_NEAR(found.place.height, std::max(height * scale, 1.0), 0.5 + 1e-9);
    ASSERT_EQ(found.place.x, (size.width - found.place.width) / 2);
    ASSERT_EQ(found.place.y, (size.height - found.place.height) / 2);
  }
}

TEST(Letterbox, RoundsAHalfToTheEvenNumber) {
  EXPECT_EQ(chosen(letterbox(10), 20, 9).place.height, 4);   // 4.5
  EXPECT_EQ(chosen(letterbox(10), 20, 11).place.height, 6);  // 5.5
}

TEST(CoverCrop, FillsTheSampleWithAsMuchOfTheImageAsItsAspectHas) {
  std::mt19937 random(6);
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    const int width = random_side(random);
    const int height = random_side(random);
    const ImageSize size = random_size(random);
    const auto position = static_cast<CropPosition>(i % 2);
    const Placement found = chosen(cover_crop(size, {.position = position}), width, height, i);
    ASSERT_NO_FATAL_FAILURE(expect_within(found, size, width, height));
    ASSERT_EQ(found.place, whole_of(size));
    // One direction is shown whole; of the other as much as the aspect of the sample has, to a pixel of the resized image.
    const bool is_wide = std::int64_t{width} * size.height >= std::int64_t{height} * size.width;
    const double longer = is_wide ? found.region.width : found.region.height;
    ASSERT_EQ(is_wide ? found.region.height : found.region.width, is_wide ? height : width);
    const double exact =
        is_wide ? 1.0 * height * size.width / size.height : 1.0 * width * size.height / size.width;
    ASSERT_GE(longer, exact * (1 - 1e-12));
    ASSERT_LE(longer, exact * (1 + 1.0 / (is_wide ? size.width : size.height)));
  }
}

TEST(CoverCrop, TakesEveryPlaceEquallyOften) {
  // 40x30 covers 20x10 as 20x15: six places across, and one down.
  const Crop crop = cover_crop({20, 10}, {.position = CropPosition::random});
  std::map<double, int> seen;
  constexpr int kDraws = 36'000;
  for (std::uint64_t sample = 0; sample < kDraws; ++sample) {
    const Region region = chosen(crop, 30, 40, sample).region;
    EXPECT_EQ(region.y, 0);
    EXPECT_EQ(region.width, 20);
    ++seen[region.x];
  }
  ASSERT_EQ(seen.size(), 6U);
  for (const auto& [x, count] : seen) {
    EXPECT_EQ(std::fmod(x, 2), 0);
    EXPECT_NEAR(count, kDraws / 6, 354);  // five standard deviations
  }
}

TEST(CoverCrop, KeepsItsPlacesBetweenVersions) {
  // Saved runs rely on it: these change only with a new major version.
  const Crop crop = cover_crop({64, 96}, {.position = CropPosition::random});
  EXPECT_DOUBLE_EQ(chosen(crop, 500, 375, 1).region.y, 31.25);
}

TEST(RandomCrop, TakesEveryWindowOfThePaddedImageEquallyOften) {
  // The offsets are those of a 4x4 image with 2 pixels around it: -2 to 3 in both directions.
  const Crop crop = random_crop({3, 3}, {.padding = 2});
  std::map<std::pair<int, int>, int> seen;
  constexpr int kDraws = 36'000;
  for (std::uint64_t sample = 0; sample < kDraws; ++sample) {
    const Placement found = chosen(crop, 4, 4, sample);
    ASSERT_NO_FATAL_FAILURE(expect_within(found, 3, 4, 4));
    // Nothing is resized.
    ASSERT_EQ(found.region.width, found.place.width);
    ASSERT_EQ(found.region.height, found.place.height);
    const Region frame = found.frame(3);
    ASSERT_EQ(frame.width, 3);
    ASSERT_EQ(frame.height, 3);
    ++seen[{static_cast<int>(frame.x), static_cast<int>(frame.y)}];
  }
  EXPECT_EQ(seen.size(), 36U);
  for (const auto& [at, count] : seen) {
    EXPECT_GE(std::min(at.first, at.second), -2);
    EXPECT_LE(std::max(at.first, at.second), 3);
    EXPECT_NEAR(count, kDraws / 36, 160);  // five standard deviations
  }
}

TEST(RandomCrop, ShowsWhatLiesInTheWindow) {
  std::mt19937 random(4);
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    const int width = random_side(random) % 400 + 1;
    const int height = random_side(random) % 400 + 1;
    const ImageSize size = random_size(random);
    const int padding =
        static_cast<int>(random() % static_cast<unsigned>(std::min(size.width, size.height)));
    const Crop crop = random_crop(size, {.padding = padding, .pad_if_needed = true});
    const Placement found = chosen(crop, width, height, i);
    ASSERT_NO_FATAL_FAILURE(expect_within(found, size, width, height));
    const Region frame = found.frame(size);
    // torchvision pads once more by what is missing, on both sides.
    const auto pads = [&](int image, int sample) {
      return padding + std::max(sample - image - 2 * padding, 0);
    };
    ASSERT_GE(frame.x, -pads(width, size.width));
    ASSERT_GE(frame.y, -pads(height, size.height));
    ASSERT_LE(frame.x + size.width, width + pads(width, size.width));
    ASSERT_LE(frame.y + size.height, height + pads(height, size.height));
    ASSERT_EQ(found.region.x, std::max(frame.x, 0.0));
    ASSERT_EQ(found.region.y, std::max(frame.y, 0.0));
    ASSERT_EQ(found.region.x + found.region.width, std::min<double>(frame.x + size.width, width));
    ASSERT_EQ(found.region.y + found.region.height,
              std::min<double>(frame.y + size.height, height));
  }
}

TEST(RandomCrop, CallsAnImageThatIsTooSmallAFault) {
  Random random = numbers(0);
  const auto found = choose_placement(random_crop({20, 30}, {.padding = 2}), 25, 40, random);
  ASSERT_FALSE(found);
  EXPECT_EQ(
      found.fault().reason,
      "the image of 40x25 pixels (height x width) is smaller than the crop of 20x30 with 2 of "
      "padding: set pad_if_needed");
  EXPECT_TRUE(choose_placement(random_crop({20, 30}, {.padding = 3}), 25, 40, random));
}

TEST(ScaleJitter, ResizesAsTheImageFitsTimesTheScale) {
  std::mt19937 random(5);
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    const int width = random_side(random);
    const int height = random_side(random);
    const ImageSize size = random_size(random);
    const double low = 0.05 + static_cast<double>(random() % 100) / 60;
    const Range range{low, low + static_cast<double>(random() % 3)};
    const Placement found = chosen(scale_jitter(size, {.scale = range}), width, height, i);
    ASSERT_NO_FATAL_FAILURE(expect_within(found, size, width, height));
    // Its two draws, and torchvision's arithmetic.
    Random draws = numbers(i);
    const double ratio = std::min(1.0 * size.width / width, 1.0 * size.height / height) *
                         draws.uniform(range.low, range.high);
    const double offset = draws.uniform();
    const int across = std::max(static_cast<int>(width * ratio), 1);
    const int down = std::max(static_cast<int>(height * ratio), 1);
    ASSERT_EQ(found.place,
              (PixelRect{0, 0, std::min(across, size.width), std::min(down, size.height)}));
    const int left = static_cast<int>(std::max(across - size.width, 0) * offset);
    const int top = static_cast<int>(std::max(down - size.height, 0) * offset);
    ASSERT_DOUBLE_EQ(found.region.x, 1.0 * left * width / across);
    ASSERT_DOUBLE_EQ(found.region.y, 1.0 * top * height / down);
    ASSERT_DOUBLE_EQ(found.region.width, 1.0 * found.place.width * width / across);
    ASSERT_DOUBLE_EQ(found.region.height, 1.0 * found.place.height * height / down);
  }
}

// Their intersection over union, of numbers of whole pixels that a brute force counts.
double counted_overlap(const Region& a, const Region& b) {
  const auto has = [](const Region& region, double x, double y) {
    return x > region.x && x < region.x + region.width && y > region.y &&
           y < region.y + region.height;
  };
  int both = 0;
  int either = 0;
  for (int y = -200; y < 200; ++y)
    for (int x = -200; x < 200; ++x) {
      const bool in_a = has(a, x + 0.5, y + 0.5);
      const bool in_b = has(b, x + 0.5, y + 0.5);
      both += in_a && in_b ? 1 : 0;
      either += in_a || in_b ? 1 : 0;
    }
  return either == 0 ? 0 : static_cast<double>(both) / either;
}

TEST(RandomIouCrop, OverlapsABoxWhoseMiddleIsInIt) {
  constexpr int kWidth = 90;
  constexpr int kHeight = 60;
  const std::vector<Region> boxes{{3, 4, 30, 20}, {50, 10, 35, 45}, {0, 50, 4, 4}};
  for (const double least : {0.0, 0.3, 0.7}) {
    int parts = 0;
    double lowest = 1;
    for (std::uint64_t i = 0; i < 150; ++i) {
      Random random = numbers(i);
      const auto [region, place, mirrored, cut] =
          *choose_placement(random_iou_crop(40, {.overlaps = {least}, .scale = {0.3, 0.9}}), kWidth,
                            kHeight, random, 0, boxes);
      ASSERT_EQ(place, whole_of(40));
      ASSERT_GE(region.x, 0);
      ASSERT_GE(region.y, 0);
      ASSERT_LE(region.x + region.width, kWidth);
      ASSERT_LE(region.y + region.height, kHeight);
      if (region.width == kWidth) continue;  // none was found
      ++parts;
      ASSERT_GE(region.width, std::floor(0.3 * kWidth));
      ASSERT_LE(region.width, 0.9 * kWidth);
      ASSERT_GE(region.width / region.height, 0.5);
      ASSERT_LE(region.width / region.height, 2);
      double most = -1;
      for (const Region& box : boxes) {
        const double x = box.x + box.width / 2;
        const double y = box.y + box.height / 2;
        if (x > region.x && x < region.x + region.width && y > region.y &&
            y < region.y + region.height)
          most = std::max(most, counted_overlap(region, box));
      }
      ASSERT_GE(most, least - 1e-9) << "and 0 at the least: the middle of a box is in it";
      ASSERT_GE(most, 0);
      lowest = std::min(lowest, most);
    }
    EXPECT_GT(parts, 100) << least;
    EXPECT_LT(lowest, least + 0.2) << "the overlap is no more than was asked for";
  }
}

// Ultralytics' Mosaic and RandomPerspective, in doubles: where the part of an image that the canvas shows lies in the sample.
Region of_ultralytics(int number, double width, double height, ImageSize sample, double scale,
                      std::array<double, 2> meeting, std::array<double, 2> moved) {
  const double fit = std::min(sample.width / width, sample.height / height);
  const std::array<double, 2> size{width * fit, height * fit};
  const std::array<double, 2> of_sample{static_cast<double>(sample.width),
                                        static_cast<double>(sample.height)};
  std::array<double, 2> begin{};
  std::array<double, 2> end{};
  for (std::size_t d = 0; d < 2; ++d) {
    const bool is_second = d == 0 ? number % 2 == 1 : number >= 2;
    begin[d] = is_second ? meeting[d] : std::max(meeting[d] - size[d], 0.0);
    end[d] = is_second ? std::min(meeting[d] + size[d], 2 * of_sample[d]) : meeting[d];
    for (double* const at : {&begin[d], &end[d]}) {
      *at = (*at - of_sample[d]) * scale + moved[d];
      *at = std::clamp(*at, 0.0, of_sample[d]);
    }
  }
  return {.x = begin[0], .y = begin[1], .width = end[0] - begin[0], .height = end[1] - begin[1]};
}

TEST(MosaicCrop, PutsImagesWhereUltralyticsDoes) {
  const ImageSize sample(90, 120);
  const MosaicOptions options{.scale = {0.5, 1.5}, .translate = 0.2};
  const std::array<std::pair<int, int>, 4> sizes{{{300, 200}, {50, 400}, {1000, 31}, {120, 90}}};
  int hidden = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    Random draws = numbers(i);
    const double scale = draws.uniform(0.5, 1.5);
    std::array<double, 2> meeting{};
    std::array<double, 2> moved{};
    for (std::size_t d = 0; d < 2; ++d) {
      const double side = d == 0 ? sample.width : sample.height;
      meeting[d] = side * draws.uniform(0.5, 1.5);
      moved[d] = side * draws.uniform(0.3, 0.7);
    }
    for (int number = 0; number < 4; ++number) {
      const auto [width, height] = sizes[static_cast<std::size_t>(number)];
      Random random = numbers(i);
      const auto [region, place, mirrored, cut] =
          *choose_placement(mosaic(sample, options), width, height, random, number, {}, 4);
      const Region expected = of_ultralytics(number, width, height, sample, scale, meeting, moved);
      if (place.width == 0 || place.height == 0) {
        ASSERT_TRUE(expected.width < 1 || expected.height < 1);
        ++hidden;
        continue;
      }
      ASSERT_NEAR(place.x, expected.x, 1);
      ASSERT_NEAR(place.y, expected.y, 1);
      ASSERT_NEAR(place.width, expected.width, 2);
      ASSERT_NEAR(place.height, expected.height, 2);
      // At the same scale in both directions, but for what is rounded to whole pixels.
      const double fit = std::min(sample.width / static_cast<double>(width),
                                  sample.height / static_cast<double>(height));
      ASSERT_NEAR(region.width * fit * scale, place.width, 1 + place.width * 0.2);
      ASSERT_GE(region.x, 0);
      ASSERT_GE(region.y, 0);
      ASSERT_LE(region.x + region.width, width + 1e-9);
      ASSERT_LE(region.y + region.height, height + 1e-9);
      // What is in sight ends where the images meet, unless the sample does.
      const double inner = number % 2 == 1 ? place.x : place.x + place.width;
      const double at = (meeting[0] - sample.width) * scale + moved[0];
      ASSERT_NEAR(inner, std::clamp<double>(at, 0, sample.width), 0.5 + 1e-9);
    }
  }
  EXPECT_GT(hidden, 50);
  EXPECT_LT(hidden, 1000);
}

TEST(MosaicCrop, OfOneImageIsInTheMiddle) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    Random random = numbers(i);
    const auto [region, place, mirrored, cut] = *choose_placement(
        mosaic({90, 120}, {.scale = {0.5, 0.9}, .translate = 0}), 300, 200, random);
    ASSERT_EQ(region, (Region{0, 0, 300, 200}));
    ASSERT_NEAR(place.x + place.width / 2.0, 60, 1);
    ASSERT_NEAR(place.y + place.height / 2.0, 45, 1);
    ASSERT_GE(place.width, 59);
    ASSERT_LE(place.width, 109);
  }
}

TEST(MosaicCrop, RefusesWhatMakesNoSense) {
  const auto refuses = [](MosaicOptions options, const char* words) {
    EXPECT_THAT([&] { (void)mosaic(8, options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refuses({.scale = {0, 1}}, "mosaic: scale must be a range above 0");
  refuses({.translate = -0.1}, "mosaic: translate is a fraction of the sample's size from 0 to 1");
  refuses({.translate = 1.5}, "found 1.5");
  refuses({.fill = Color(300)}, "mosaic: fill");
  refuses({.mixup = 1.1}, "mosaic: mixup is a probability from 0 to 1, found 1.1");
  Random random = numbers(0);
  EXPECT_THAT([&] { (void)choose_placement(resize_to(8), 9, 9, random, 1, {}, 4); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("is not made of 4 images")));
  EXPECT_THAT([&] { (void)choose_placement(mosaic(8), 9, 9, random, 4, {}, 4); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("has no part 4")));
  EXPECT_EQ(mosaic(640, {.translate = 0.2}).to_string(), "mosaic(size=640, translate=0.2)");
}

TEST(RandomIouCrop, IsTheWholeImageWhereNoPartWillDo) {
  const std::vector<Region> box{{3, 4, 30, 20}};
  const Region whole{0, 0, 90, 60};
  const auto region_of = [&](const RandomIouCropOptions& options, std::span<const Region> boxes,
                             std::uint64_t sample) {
    Random random = numbers(sample);
    return choose_placement(random_iou_crop({20, 30}, options), 90, 60, random, 0, boxes)->region;
  };
  for (std::uint64_t sample = 0; sample < 20; ++sample) {
    EXPECT_EQ(region_of({}, {}, sample), whole);
    EXPECT_EQ(region_of({.overlaps = {1}}, box, sample), whole);
    // Parts of half of the image's sides are larger than twice the box.
    EXPECT_EQ(region_of({.overlaps = {0.9}, .scale = {0.5, 0.5}}, box, sample), whole);
    EXPECT_NE(region_of({.overlaps = {0}}, box, sample), whole);
  }
  // Of two overlaps each is drawn about as often.
  int wholes = 0;
  for (std::uint64_t sample = 0; sample < 1'000; ++sample)
    wholes += region_of({.overlaps = {0, 1}}, box, sample) == whole ? 1 : 0;
  EXPECT_GT(wholes, 430);
  EXPECT_LT(wholes, 570);
}

TEST(RandomIouCrop, ShowsACanvasAroundTheImage) {
  constexpr ImageSize kSize(80, 120);
  int zoomed = 0;
  double largest = 0;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    Random random = numbers(i);
    const Placement found = *choose_placement(
        random_iou_crop(kSize, {.zoom_out = 0.5, .zoom = {1.5, 4}}), 60, 40, random);
    ASSERT_EQ(found.region, (Region{0, 0, 60, 40}));
    const PixelRect& place = found.place;
    ASSERT_GE(std::min(place.x, place.y), 0);
    ASSERT_LE(place.x + place.width, kSize.width);
    ASSERT_LE(place.y + place.height, kSize.height);
    if (place.width == kSize.width) continue;
    ++zoomed;
    // Both sides are divided by the same number, and rounded.
    ASSERT_GE(place.width, 29);
    ASSERT_LE(place.width, 81);
    ASSERT_NEAR(place.width / 120.0, place.height / 80.0, 0.03);
    largest = std::max(largest, static_cast<double>(place.x) / (kSize.width - place.width));
  }
  EXPECT_GT(zoomed, 430);
  EXPECT_LT(zoomed, 570);
  EXPECT_GT(largest, 0.9) << "it is at the right, too";
  // A part of the canvas has its fill, and the image, in it.
  const std::vector<Region> box{{0, 0, 60, 40}};
  int beside = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    Random random = numbers(i);
    const Placement found = *choose_placement(
        random_iou_crop(kSize, {.overlaps = {0.1}, .zoom_out = 1}), 60, 40, random, 0, box);
    const Region frame = found.frame(kSize);
    ASSERT_GE(found.region.width, 1);
    ASSERT_GE(found.region.height, 1);
    ASSERT_LE(frame.width, 4 * 60 * 1.1);
    beside += found.place != whole_of(kSize) && found.region != box.front() ? 1 : 0;
  }
  EXPECT_GT(beside, 100);
}

TEST(RandomIouCrop, RefusesWhatMakesNoSense) {
  const auto refuses = [](RandomIouCropOptions options, const char* words) {
    EXPECT_THAT([&] { (void)random_iou_crop(8, std::move(options)); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refuses({.overlaps = {}}, "random_iou_crop: overlaps needs a number");
  refuses({.overlaps = {0.5, 1.5}}, "from 0 to 1, found 1.5");
  refuses({.scale = {0, 1}}, "scale must be");
  refuses({.scale = {0.5, 1.1}}, "scale must be");
  refuses({.ratio = {2, 1}}, "ratio must be");
  refuses({.zoom_out = 1.5}, "zoom_out is a probability from 0 to 1, found 1.5");
  refuses({.zoom = {0.5, 2}}, "1 at least, found 0.5");
  refuses({.fill = 256}, "a level is 0 to 255");
  EXPECT_EQ(random_iou_crop(300, {.zoom_out = 0.5}).to_string(),
            "random_iou_crop(size=300, zoom_out=0.5)");
  const Crop crop = random_iou_crop({3, 4}, {.overlaps = {0.5}, .fill = {1, 2, 3}});
  EXPECT_EQ(Crop::from_json(crop.to_json()), crop);
}

TEST(Crop, RefusesWhatMakesNoSense) {
  EXPECT_THROW((void)random_resized_crop(0), std::invalid_argument);
  EXPECT_THROW((void)random_resized_crop(8, {.scale = {0, 1}}), std::invalid_argument);
  EXPECT_THROW((void)random_resized_crop(8, {.scale = {0.5, 1.5}}), std::invalid_argument);
  EXPECT_THROW((void)random_resized_crop(8, {.ratio = {2, 1}}), std::invalid_argument);
  EXPECT_THROW((void)random_resized_crop(8, {.ratio = {1e-310, 1}}), std::invalid_argument);
  EXPECT_THAT([] { (void)center_crop(224, {.resize = 200}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("raise resize")));
  EXPECT_THROW((void)resize_to({-1, 5}), std::invalid_argument);
  Random random = numbers(0);
  EXPECT_THROW((void)letterbox({0, 5}), std::invalid_argument);
  EXPECT_THROW((void)cover_crop({5, 0}), std::invalid_argument);
  EXPECT_THAT(
      [] { (void)letterbox(5, {.fill = 256}); },
      ThrowsMessage<std::invalid_argument>("letterbox: fill: a level is 0 to 255, found 256"));
  EXPECT_THROW((void)random_crop(5, {.fill = {0, -1, 0}}), std::invalid_argument);
  EXPECT_THROW((void)random_crop(5, {.padding = -1}), std::invalid_argument);
  EXPECT_THAT(
      [] {
        (void)random_crop({9, 5}, {.padding = 5});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("less than the crop of 9x5")));
  EXPECT_THAT(
      [] {
        (void)scale_jitter(5, {.scale = {0, 2}});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("scale_jitter: scale must be")));
  EXPECT_THROW((void)scale_jitter(5, {.fill = 300}), std::invalid_argument);
  EXPECT_THAT([&] { (void)choose_placement(Crop{}, 5, 5, random); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("random_resized_crop(224)")));
}

TEST(Crop, SaysWhatItIs) {
  EXPECT_EQ(letterbox({5, 6}).to_string(), "letterbox(size=(5, 6))");
  EXPECT_EQ(cover_crop({5, 6}).to_string(), "cover_crop(size=(5, 6))");
  EXPECT_EQ(cover_crop({5, 6}, {.position = CropPosition::random}).to_string(),
            "cover_crop(size=(5, 6), position='random')");
  EXPECT_EQ(random_crop(32, {.padding = 4, .fill = {1, 2, 3}}).to_string(),
            "random_crop(size=32, padding=4, fill=(1, 2, 3))");
  EXPECT_EQ(scale_jitter(64).to_string(), "scale_jitter(size=64)");
}

// ---- resize_shortest ----

// torchvision's Resize(side, max_size), in its words: width and height of the resized image.
std::pair<int, int> of_torchvision(int width, int height, int side, int longest) {
  const int shorter = std::min(width, height);
  const int longer = std::max(width, height);
  int new_shorter = side;
  int new_longer = static_cast<int>(static_cast<double>(side) * longer / shorter);
  if (longest != 0 && new_longer > longest) {
    new_shorter = static_cast<int>(static_cast<double>(longest) * new_shorter / new_longer);
    new_longer = longest;
  }
  return width <= height ? std::pair(new_shorter, new_longer) : std::pair(new_longer, new_shorter);
}

TEST(ResizeShortest, HasTorchvisionsSizes) {
  for (const auto& [width, height] : {std::pair(500, 375), std::pair(375, 500), std::pair(640, 640),
                                      std::pair(2000, 300), std::pair(33, 1001)})
    for (const int side : {7, 480, 800})
      for (const int longest : {0, 1333}) {
        const auto expected = of_torchvision(width, height, side, longest);
        const double pixels = side;
        const Placement found =
            chosen(resize_shortest(30'000, {.sides = {pixels, pixels}, .longest = longest}), width,
                   height);
        EXPECT_EQ(found.place, (PixelRect{0, 0, expected.first, expected.second}));
        EXPECT_EQ(found.region,
                  (Region{0, 0, static_cast<double>(width), static_cast<double>(height)}));
      }
  EXPECT_EQ(chosen(resize_shortest(9, {.sides = {1, 1}, .longest = 5}), 1, 9'000).place,
            (PixelRect{0, 0, 1, 5}))
      << "no side has less than a pixel";
}

TEST(ResizeShortest, DrawsEachSideAboutAsOften) {
  const auto sides_of = [](const ResizeShortestOptions& options) {
    std::map<int, int> times;
    for (std::uint64_t sample = 0; sample < 3'300; ++sample)
      ++times[chosen(resize_shortest(1333, options), 600, 600, sample).place.width];
    return times;
  };
  const std::map<int, int> steps = sides_of({});
  ASSERT_EQ(steps.size(), 11U);
  for (const auto& [side, times] : steps) {
    EXPECT_EQ((side - 480) % 32, 0);
    EXPECT_NEAR(times, 300, 75) << side;
  }
  EXPECT_EQ(steps.begin()->first, 480);
  EXPECT_EQ(steps.rbegin()->first, 800);
  const std::map<int, int> all = sides_of({.sides = {10, 13}, .step = 1});
  EXPECT_EQ(all.size(), 4U);
  const std::map<int, int> short_of = sides_of({.sides = {10, 19}, .step = 5});
  EXPECT_EQ(short_of.size(), 2U) << "no more than the upper end";
}

TEST(ResizeShortest, ShowsARandomPartOfWhatIsLarger) {
  // 600x300 pixels, of which the sample shows 100 columns and all rows.
  const Crop crop = resize_shortest({400, 100}, {.sides = {300, 300}, .longest = 0});
  double least = 1e9;
  double most = 0;
  for (std::uint64_t sample = 0; sample < 500; ++sample) {
    const Placement found = chosen(crop, 200, 100, sample);
    ASSERT_EQ(found.place, (PixelRect{0, 0, 100, 300}));
    ASSERT_DOUBLE_EQ(found.region.width, 100.0 / 3);
    ASSERT_EQ(found.region.height, 100);
    least = std::min(least, found.region.x);
    most = std::max(most, found.region.x + found.region.width);
  }
  EXPECT_LT(least, 2);
  EXPECT_GT(most, 198);
  EXPECT_LE(most, 200);
}

// DETR's RandomSizeCrop of an image of 500x1000 pixels, whose shorter side is 400, 500 or 600 then.
TEST(ResizeShortest, CutsAPartOutFirst) {
  const Crop crop = resize_shortest(1333, {.sides = {800, 800}, .cut = 0.5});
  int parts = 0;
  std::map<int, int> wholes;
  double narrowest = 1e9;
  double lowest = 1e9;
  for (std::uint64_t sample = 0; sample < 2'000; ++sample) {
    const auto [region, place, mirrored, cut] = chosen(crop, 500, 1'000, sample);
    ASSERT_GE(region.x, 0);
    ASSERT_GE(region.y, 0);
    ASSERT_LE(region.x + region.width, 500 + 1e-9);
    ASSERT_LE(region.y + region.height, 1'000 + 1e-9);
    // All of the region is shown.
    ASSERT_EQ(std::min(place.x, place.y), 0);
    ASSERT_TRUE(std::min(place.width, place.height) == 800 ||
                std::max(place.width, place.height) == 1333);
    if (region.width == 500 && region.height == 1'000) continue;
    ++parts;
    // At one of the three sizes the part has 384 to 600 pixels or all, to within the rounding to pixels of the image.
    ASSERT_EQ(cut, region);
    bool fits = false;
    for (const int shorter : {400, 500, 600}) {
      const double scale = shorter / 500.0;
      const double width = region.width * scale;
      const double height = region.height * scale;
      const auto fits_in = [](double side, int whole) {
        return side > std::min(384, whole) - 0.61 && side < std::min(600, whole) + 0.61;
      };
      const bool is_this = fits_in(width, shorter) && fits_in(height, 2 * shorter);
      if (is_this) ++wholes[shorter];
      fits = fits || is_this;
    }
    ASSERT_TRUE(fits) << region.width << " x " << region.height;
    narrowest = std::min(narrowest, region.width);
    lowest = std::min(lowest, region.height);
  }
  EXPECT_NEAR(parts, 1'000, 120);
  EXPECT_EQ(wholes.size(), 3U);
  EXPECT_LT(narrowest, 384 / 1.2 + 10);
  EXPECT_LT(lowest, 384 / 1.2 + 10);
  // An image that is smaller than a part is whole in that direction.
  for (std::uint64_t sample = 0; sample < 50; ++sample)
    EXPECT_EQ(chosen(resize_shortest(
                         100, {.sides = {60, 60}, .cut = 1, .cut_sides = {30, 30}, .cut_step = 1}),
                     60, 40, sample)
                  .region,
              (Region{0, 0, 60, 40}));
}

TEST(ResizeShortest, RefusesWhatCannotBe) {
  const auto refuses = [](const ResizeShortestOptions& options, const char* what) {
    EXPECT_THAT([&] { (void)resize_shortest(8, options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(what)));
  };
  refuses({.sides = {0, 8}},
          "resize_shortest: sides are two numbers of pixels, such as [480, 800], found [0, 8]");
  refuses({.sides = {9, 8}}, "sides are two numbers of pixels");
  refuses({.sides = {8, 9.5}}, "found [8, 9.5]");
  refuses({.cut_sides = {9, 8}}, "cut_sides are");
  refuses({.cut_size = {0.5, 8}}, "cut_size are");
  refuses({.step = 0}, "resize_shortest: step is 1 pixel or more, found 0");
  refuses({.cut_step = -1}, "cut_step is 1 pixel or more, found -1");
  refuses({.longest = -1}, "longest is a number of pixels, or 0 for any, found -1");
  refuses({.cut = 1.5}, "resize_shortest: cut is a probability from 0 to 1, found 1.5");
  refuses({.fill = Color(300)}, "resize_shortest: fill");
}

// ---- box_safe_crop ----

TEST(BoxSafeCrop, HasAllBoxesInIt) {
  constexpr int kWidth = 90;
  constexpr int kHeight = 60;
  const std::vector<Region> boxes{{20.5, 12, 9.5, 20}, {40, 10.25, 15.5, 30}};
  std::array<double, 4> least{1e9, 1e9, 1e9, 1e9};
  std::array<double, 4> most{};
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    Random random = numbers(i);
    const auto [region, place, mirrored, cut] =
        *choose_placement(box_safe_crop({20, 30}), kWidth, kHeight, random, 0, boxes);
    ASSERT_EQ(place, whole_of({20, 30}));
    const std::array<double, 4> edges{region.x, region.y, region.x + region.width,
                                      region.y + region.height};
    for (std::size_t k = 0; k < 4; ++k) {
      ASSERT_EQ(edges[k], std::floor(edges[k]));
      least[k] = std::min(least[k], edges[k]);
      most[k] = std::max(most[k], edges[k]);
    }
  }
  // Each edge is drawn from that of the image to that of the boxes, and no further.
  EXPECT_THAT(least, testing::ElementsAre(0, 0, 56, 41));
  EXPECT_THAT(most, testing::ElementsAre(20, 10, kWidth, kHeight));
}

TEST(BoxSafeCrop, MayCutIntoThem) {
  const std::vector<Region> box{{20, 10, 40, 30}};
  double largest = 0;
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    Random random = numbers(i);
    const Region region =
        choose_placement(box_safe_crop(8, {.erosion = 0.5}), 90, 60, random, 0, box)->region;
    // Of what is around the boxes, a quarter may go on either side.
    ASSERT_LE(region.x, 30);
    ASSERT_GE(region.x + region.width, 50);
    ASSERT_LE(region.y, 17.5);
    ASSERT_GE(region.y + region.height, 32.5);
    largest = std::max(largest, region.x);
  }
  EXPECT_GT(largest, 27);
}

TEST(BoxSafeCrop, WithoutBoxesKeepsTheAspect) {
  const auto region_of = [](double erosion, std::uint64_t sample) {
    Random random = numbers(sample);
    return choose_placement(box_safe_crop(8, {.erosion = erosion}), 90, 60, random)->region;
  };
  double least = 1e9;
  double rightmost = 0;
  for (std::uint64_t sample = 0; sample < 500; ++sample) {
    ASSERT_EQ(region_of(0, sample), (Region{0, 0, 90, 60}));
    const Region region = region_of(0.5, sample);
    ASSERT_NEAR(region.width, region.height * 1.5, 0.51);
    ASSERT_GE(region.height, 30);
    ASSERT_GE(std::min(region.x, region.y), 0);
    ASSERT_LE(region.x + region.width, 90);
    ASSERT_LE(region.y + region.height, 60);
    least = std::min(least, region.height);
    rightmost = std::max(rightmost, region.x + region.width);
    const Region any = region_of(1, sample);
    ASSERT_GE(std::min(any.width, any.height), 1);
    ASSERT_LE(any.x + any.width, 90);
  }
  EXPECT_LT(least, 32);
  EXPECT_EQ(rightmost, 90);
  EXPECT_THAT([] { (void)box_safe_crop(8, {.erosion = -0.5}); },
              ThrowsMessage<std::invalid_argument>(
                  "box_safe_crop: erosion is a fraction from 0 to 1, found -0.5"));
}

}  // namespace
}  // namespace penstock
