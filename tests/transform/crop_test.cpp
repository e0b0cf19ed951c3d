#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/transform/crop.hpp>

#include "src/transform/exact_math.hpp"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Random numbers(std::uint64_t sample) { return {RandomKey(7, 0), {.number = sample}}; }

TEST(ExactMath, AgreesWithTheMathLibraryToTheLastBits) {
  for (double value = 0.01; value < 100; value *= 1.003) {
    EXPECT_NEAR(transform::exact_log2(value), std::log2(value),
                2e-15 * std::max(1.0, std::abs(std::log2(value))));
    EXPECT_NEAR(transform::exact_exp2(value / 7) / std::exp2(value / 7), 1, 1e-14);
    EXPECT_NEAR(transform::exact_exp2(-value / 7) * std::exp2(value / 7), 1, 1e-14);
  }
}

TEST(RandomResizedCrop, StaysInTheImageWithWholePixels) {
  const Crop crop = random_resized_crop(224);
  for (const auto& [width, height] :
       {std::pair(500, 375), std::pair(1, 1), std::pair(3, 900), std::pair(900, 3)})
    for (std::uint64_t sample = 0; sample < 2'000; ++sample) {
      Random random = numbers(sample);
      const Region region = choose_region(crop, width, height, random);
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
  constexpr int kSamples = 20'000;
  std::array<int, 4> areas{};
  std::array<int, 4> ratios{};
  double x = 0;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    Random random = numbers(sample);
    const Region region = choose_region(crop, 4'000, 4'000, random);
    const double area = region.width * region.height / 16e6;
    const double ratio = std::log(region.width / region.height) / std::log(4.0 / 3);  // in [-1, 1]
    ++areas[static_cast<std::size_t>(std::clamp((area - 0.1) / 0.1, 0.0, 3.0))];
    ++ratios[static_cast<std::size_t>(std::clamp((ratio + 1) * 2, 0.0, 3.0))];
    x += region.x / (4'000 - region.width) / kSamples;
  }
  for (const int count : areas) EXPECT_NEAR(count, kSamples / 4, 310);  // five standard deviations
  for (const int count : ratios) EXPECT_NEAR(count, kSamples / 4, 310);
  EXPECT_NEAR(x, 0.5, 0.011);
}

TEST(RandomResizedCrop, FallsBackToTheLargestCentredCrop) {
  const Crop crop = random_resized_crop(224, {.scale = {1, 1}, .ratio = {1, 1}});
  Random random = numbers(0);
  EXPECT_EQ(choose_region(crop, 100, 60, random), (Region{20, 0, 60, 60}));
  EXPECT_EQ(choose_region(crop, 60, 101, random), (Region{0, 20, 60, 60}));
}

TEST(RandomResizedCrop, KeepsItsGeometryBetweenVersions) {
  // Saved runs rely on it: these change only with a new major version.
  const Crop crop = random_resized_crop(224);
  Random random = numbers(1);
  const Region region = choose_region(crop, 500, 375, random);
  Random again = numbers(1);
  EXPECT_EQ(choose_region(crop, 500, 375, again), region);
  EXPECT_EQ(region, (Region{12, 10, 411, 355}));
}

TEST(CenterCrop, TakesTheMiddleInOneRegion) {
  Random random = numbers(0);
  const Region region = choose_region(center_crop(224, {.resize = 256}), 512, 1024, random);
  EXPECT_EQ(region, (Region{32, 288, 448, 448}));
}

TEST(ResizeTo, TakesTheWholeImage) {
  Random random = numbers(0);
  EXPECT_EQ(choose_region(resize_to(10, 20), 33, 44, random), (Region{0, 0, 33, 44}));
}

TEST(Crop, RefusesWhatMakesNoSense) {
  EXPECT_THROW((void)random_resized_crop(0), std::invalid_argument);
  EXPECT_THROW((void)random_resized_crop(8, {.scale = {0, 1}}), std::invalid_argument);
  EXPECT_THROW((void)random_resized_crop(8, {.scale = {0.5, 1.5}}), std::invalid_argument);
  EXPECT_THROW((void)random_resized_crop(8, {.ratio = {2, 1}}), std::invalid_argument);
  EXPECT_THAT([] { (void)center_crop(224, {.resize = 200}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("raise resize")));
  EXPECT_THROW((void)resize_to(-1, 5), std::invalid_argument);
  Random random = numbers(0);
  EXPECT_THAT([&] { (void)choose_region(Crop{}, 5, 5, random); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("random_resized_crop(224)")));
}

}  // namespace
}  // namespace penstock
