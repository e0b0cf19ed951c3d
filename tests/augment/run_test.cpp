#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "src/augment/numbers.hpp"
#include "src/augment/plain_kernels.hpp"
#include "src/augment/sampling.hpp"
#include "src/augment/steps.hpp"
#include "tests/augment/makers.hpp"
#include "tests/augment/pictures.hpp"

namespace penstock::augment::test {
namespace {

const std::vector<ImageShape>& shapes() {
  static const std::vector<ImageShape> shapes = [] {
    std::vector<ImageShape> all;
    for (const auto& [height, width] : {std::pair(1, 1), std::pair(1, 9), std::pair(9, 1),
                                        std::pair(2, 3), std::pair(17, 33), std::pair(40, 131)})
      for (const int channels : {1, 3})
        all.push_back({.height = height, .width = width, .channels = channels});
    return all;
  }();
  return shapes;
}

TEST(Run, InPlaceIsAsOutOfPlaceForEveryOperationAndShape) {
  for (const ImageShape& shape : shapes()) {
    const Levels image = picture(shape);
    for (const Augmentation& augmentation : all_augmentations())
      for (std::uint64_t sample = 0; sample < 20; ++sample) {
        const Program program = program_of({&augmentation, 1}, shape, sample);
        Levels in_place = image;
        run(program, in_place.data(), shape, in_place.data());
        ASSERT_EQ(in_place, run_on(program, image, shape))
            << augmentation.to_string() << " " << shape.height << "x" << shape.width << "x"
            << shape.channels;
      }
  }
}

// Single steps, each from a whole image to a whole image.
Levels one_after_another(ProgramView program, Levels image, const ImageShape& shape) {
  for (const Step& step : program) image = run_on({&step, 1}, image, shape);
  return image;
}

TEST(Run, FusedTablesAreTheSameAsOneAfterAnother) {
  const std::vector<Augmentation> chain{brightness({0.5, 1.5}),
                                        solarize(140),
                                        contrast({0.5, 1.5}),
                                        invert(),
                                        posterize(5),
                                        equalize(),
                                        brightness({0.8, 1.2}),
                                        autocontrast(),
                                        saturation({0, 2}),
                                        brightness({1, 2}),
                                        solarize(60),
                                        flip(0.5),
                                        invert(),
                                        sharpness({0, 2})};
  for (const ImageShape& shape : shapes())
    for (std::uint64_t sample = 0; sample < 20; ++sample) {
      const Levels image = picture(shape, sample);
      const Program program = program_of(chain, shape, sample);
      ASSERT_EQ(run_on(program, image, shape), one_after_another(program, image, shape));
    }
}

TEST(Run, AProgramWithoutStepsCopies) {
  const ImageShape shape{.height = 5, .width = 7, .channels = 3};
  const Levels image = picture(shape);
  EXPECT_EQ(run_on({}, image, shape), image);
}

TEST(Run, WhatChangesNothingGivesTheSameLevels) {
  const ImageShape shape{.height = 19, .width = 45, .channels = 3};
  const Levels image = picture(shape);
  const Sampling bilinear{.interpolation = Interpolation::bilinear};
  const Sampling bicubic{.interpolation = Interpolation::bicubic};
  for (const Augmentation& augmentation :
       {brightness({1, 1}), contrast({1, 1}), saturation({1, 1}), sharpness({1, 1}), hue({0, 0}),
        hsv_jitter({.hue = 0, .saturation = 0, .value = 0}), solarize(256), posterize(8),
        gaussian_blur(1), gaussian_blur(9, {0.1, 0.1}), rotate({0, 0}),
        rotate({360, 360}, bilinear), rotate({-360, -360}, bicubic),
        translate({0, 0}, {0, 0}, bilinear), affine({}, bicubic), perspective(0),
        perspective(0, {}), random_apply(0, {invert()})})
    EXPECT_EQ(run_on(program_of({&augmentation, 1}, shape), image, shape), image)
        << augmentation.to_string();
}

TEST(Run, AnHsvStepThatChangesNothingLeavesEveryColor) {
  const ImageShape shape{.height = 256, .width = 256, .channels = 3};
  const Step step = hsv_step(0, 1, 1);
  Levels colors(shape.bytes());
  for (int red = 0; red < 256; ++red) {
    for (std::size_t at = 0; at < shape.pixels(); ++at) {
      colors[3 * at] = static_cast<std::uint8_t>(red);
      colors[3 * at + 1] = static_cast<std::uint8_t>(at / 256);
      colors[3 * at + 2] = static_cast<std::uint8_t>(at % 256);
    }
    ASSERT_EQ(run_on({&step, 1}, colors, shape), colors) << red;
  }
}

// The definition of HSV, in doubles: what becomes of a colour, not rounded but for its value.
std::array<double, 3> hsv_model(Rgb pixel, double turn, double saturation, double value) {
  const double most = std::max({pixel.red, pixel.green, pixel.blue});
  const double range = most - std::min({pixel.red, pixel.green, pixel.blue});
  double hue = 0;  // degrees
  if (range > 0) {
    if (most == pixel.red)
      hue = 60 * (pixel.green - pixel.blue) / range;
    else if (most == pixel.green)
      hue = 60 * (pixel.blue - pixel.red) / range + 120;
    else
      hue = 60 * (pixel.red - pixel.green) / range + 240;
  }
  hue = std::fmod(hue + 360 * turn + 720, 360);
  const double s = most > 0 ? std::min(1.0, range / most * saturation) : 0;
  const double v = std::floor(std::min(255.0, most * value));
  const auto channel = [&](double n) {
    const double k = std::fmod(n + hue / 60, 6);
    return v * (1 - s * std::clamp(std::min(k, 4 - k), 0.0, 1.0));
  };
  return {channel(5), channel(3), channel(1)};
}

TEST(Run, AnHsvStepIsTheDefinitionOfHsvRounded) {
  std::vector<int> levels{0, 1, 2, 3, 4, 7, 250, 253, 254, 255};
  for (int level = 15; level < 250; level += 13) levels.push_back(level);
  // Factors whose products with levels are not nearly whole, but for 0, 1 and 2.
  const double factors[] = {0, 0.3141, 0.7391, 1, 1.1237, 1.6613, 2};
  double worst = 0;
  for (const double turn : {0.0, 0.0091, -0.0143, 0.11, 0.25, -0.3137, 0.5, -0.5, 0.87, 1.0, -1.0})
    for (const double saturation : factors)
      for (const double value : factors) {
        const Step step = hsv_step(turn, saturation, value);
        for (const int red : levels)
          for (const int green : levels)
            for (const int blue : levels) {
              const Rgb found = changed_pixel(step, {red, green, blue});
              const auto exact = hsv_model({red, green, blue}, turn, saturation, value);
              worst = std::max({worst, std::abs(found.red - exact[0]),
                                std::abs(found.green - exact[1]), std::abs(found.blue - exact[2])});
              ASSERT_EQ(std::max({found.red, found.green, found.blue}),
                        static_cast<int>(std::max({exact[0], exact[1], exact[2]}) + 1e-9));
            }
      }
  // Half a level, and what the fractions of levels and turns lack.
  EXPECT_LE(worst, 0.51);
}

TEST(Run, TwoQuarterTurnsOfASquareAreExact) {
  const ImageShape shape{.height = 21, .width = 21, .channels = 3};
  const Levels image = picture(shape);
  const std::vector<Augmentation> quarter{rotate({90, 90})};
  const Levels turned = run_on(program_of(quarter, shape), image, shape);
  for (std::size_t y = 0; y < 21; ++y)
    for (std::size_t x = 0; x < 21; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        ASSERT_EQ(turned[(y * 21 + x) * 3 + c], image[(x * 21 + 20 - y) * 3 + c]);
}

TEST(Run, AMixtureOfOneImageIsThatImage) {
  const ImageShape shape{.height = 8, .width = 50, .channels = 3};
  const Levels image = picture(shape);
  const Program program{mix_step(StepKind::mix_begin, 20'000),
                        plain_step(StepKind::invert),
                        plain_step(StepKind::invert),
                        mix_step(StepKind::mix_add, 30'000),
                        plain_step(StepKind::flip),
                        plain_step(StepKind::flip),
                        mix_step(StepKind::mix_add, (1 << kMixBits) - 50'000, true)};
  EXPECT_EQ(run_on(program, image, shape), image);
  const Program inverted{mix_step(StepKind::mix_begin, 1 << (kMixBits - 1)),
                         plain_step(StepKind::invert),
                         mix_step(StepKind::mix_add, 1 << (kMixBits - 1), true)};
  for (const std::uint8_t level : run_on(inverted, image, shape)) ASSERT_EQ(level, 127);
}

TEST(Run, EqualizeAndAutocontrastLeaveAnImageOfOneLevel) {
  const ImageShape shape{.height = 30, .width = 30, .channels = 3};
  const Levels image(shape.bytes(), 77);
  for (const Augmentation& augmentation : {equalize(), autocontrast()})
    EXPECT_EQ(run_on(program_of({&augmentation, 1}, shape), image, shape), image);
}

// The vectors against the definition, number by number, on every CPU that this one can be.
class Kernels : public testing::TestWithParam<std::int64_t> {
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

TEST_P(Kernels, FunctionsOfAPixelAreTheirDefinition) {
  // All greys, and colours of all relations.
  Levels colors;
  for (int red = 0; red < 256; red += 15)
    for (int green = 0; green < 256; green += 15)
      for (int blue = 0; blue < 256; blue += 15)
        for (const int level : {red, green, blue})
          colors.push_back(static_cast<std::uint8_t>(level));
  for (int level = 0; level < 256; ++level)
    colors.insert(colors.end(), 3, static_cast<std::uint8_t>(level));
  std::vector<Step> steps{plain_step(StepKind::grayscale)};
  for (const double factor : {0.0, 0.1, 0.5, 0.99, 1.0, 1.37, 1.9, 8.0})
    steps.push_back(factor_step(StepKind::saturation, factor));
  for (double turn = -0.5; turn <= 0.5; turn += 0.0617) steps.push_back(hue_step(turn));
  for (double turn = -1; turn <= 1; turn += 0.0931)
    for (const double saturation : {0.0, 0.3, 1.0, 1.7, 8.0})
      for (const double value : {0.0, 0.6, 1.0, 1.4, 8.0})
        steps.push_back(hsv_step(turn, saturation, value));
  for (const Step& step : steps)
    for (const std::size_t pixels : {colors.size() / 3, std::size_t{5}, std::size_t{1}}) {
      Levels found(3 * pixels), expected(3 * pixels);
      apply_to_pixels(step, colors.data(), pixels, found.data());
      plain::apply_to_pixels(step, colors.data(), pixels, expected.data());
      ASSERT_EQ(found, expected) << step.values[0];
    }
  EXPECT_EQ(luma_sum(colors.data(), colors.size() / 3),
            plain::luma_sum(colors.data(), colors.size() / 3));
}

TEST_P(Kernels, TablesAndExtremesAreTheirDefinition) {
  Table tables[3];
  for (std::size_t level = 0; level < 256; ++level)
    for (std::size_t c = 0; c < 3; ++c)
      tables[c][level] = static_cast<std::uint8_t>(level * (91 + 2 * c) + c);
  for (const std::size_t pixels : {1U, 15U, 16U, 100U, 1000U}) {
    const Levels levels = picture({.height = 1, .width = static_cast<int>(pixels), .channels = 3});
    Levels found(levels.size()), expected(levels.size());
    apply_table(tables[0], levels.data(), levels.size(), found.data());
    plain::apply_table(tables[0], levels.data(), levels.size(), expected.data());
    ASSERT_EQ(found, expected);
    apply_tables(tables, levels.data(), pixels, found.data());
    plain::apply_tables(tables, levels.data(), pixels, expected.data());
    ASSERT_EQ(found, expected);
    reverse_line(levels.data(), pixels, found.data());
    plain::reverse_line(levels.data(), pixels, expected.data());
    ASSERT_EQ(found, expected);
    const Extremes extremes = extremes_of(levels.data(), pixels);
    Extremes plain_extremes;
    plain::find_extremes(levels.data(), pixels, plain_extremes);
    EXPECT_TRUE(std::ranges::equal(extremes.least, plain_extremes.least));
    EXPECT_TRUE(std::ranges::equal(extremes.most, plain_extremes.most));
  }
}

TEST_P(Kernels, NeighboursAreTheirDefinition) {
  const ImageShape shape{.height = 23, .width = 67, .channels = 3};
  const std::size_t line = 67 * 3;
  Levels image = picture(shape);
  for (std::size_t at = 0; at < line; ++at) image[at] = at % 2 == 0 ? 255 : 0;  // the extremes
  for (const double factor : {0.0, 0.3, 1.7, 8.0}) {
    const auto fixed =
        static_cast<std::int32_t>(factor_step(StepKind::sharpness, factor).values[0]);
    Levels found(line), expected(line);
    sharpen_line(image.data(), image.data() + line, image.data() + 2 * line, 3, line - 3, 3, fixed,
                 found.data());
    plain::sharpen_line(image.data(), image.data() + line, image.data() + 2 * line, 3, line - 3, 3,
                        fixed, expected.data());
    ASSERT_EQ(found, expected);
  }
  for (const int size : {1, 3, 5, 7, 23, 63})
    for (const double sigma : {0.1, 1.0, 9.0}) {
      const Step step = blur_step(size, sigma);
      std::vector<const std::uint8_t*> lines;
      for (int k = 0; k < size; ++k)
        lines.push_back(image.data() + static_cast<std::size_t>(k % 23) * line);
      const std::size_t margin = static_cast<std::size_t>(size / 2) * 3;
      std::vector<std::int16_t> found(line + 2 * margin), expected(line + 2 * margin);
      blur_columns(lines.data(), step.weights, step.count, line, found.data() + margin);
      plain::blur_columns(lines.data(), step.weights, step.count, line, expected.data() + margin);
      ASSERT_EQ(found, expected);
      Levels levels(line), expected_levels(line);
      blur_rows(found.data() + margin, step.weights, step.count, line, 3, levels.data());
      plain::blur_rows(found.data() + margin, step.weights, step.count, line, 3,
                       expected_levels.data());
      ASSERT_EQ(levels, expected_levels);
    }
  std::vector<std::uint32_t> sums(image.size(), 5), expected_sums(image.size(), 5);
  add_weighted(image.data(), image.size(), 65'000, sums.data());
  plain::add_weighted(image.data(), image.size(), 65'000, expected_sums.data());
  ASSERT_EQ(sums, expected_sums);
  Levels mixed(image.size()), expected_mixed(image.size());
  mix_levels(sums.data(), sums.size(), mixed.data());
  plain::mix_levels(sums.data(), sums.size(), expected_mixed.data());
  ASSERT_EQ(mixed, expected_mixed);
}

// Corners go where they should, and what lies between them where the projective map of doubles takes it.
TEST(Perspective, TakesCornersToTheirPlaces) {
  const ImageSize size{180, 240};
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    Random random = random_of(sample);
    std::array<Corner, 4> corners{};
    for (std::size_t k = 0; k < 4; ++k) {
      const double x = static_cast<double>(random.below(60));
      const double y = static_cast<double>(random.below(45));
      corners[k] = {k == 1 || k == 2 ? 239 - x : x, k >= 2 ? 179 - y : y};
    }
    const Step step = perspective_step(corners, size, {});
    const double whole = static_cast<double>(kWholePixel);
    const auto quotient = [&](std::size_t row, double x, double y) {
      const auto value = [&](std::size_t k, int bits) {
        return static_cast<double>(step.values[k]) / static_cast<double>(std::int64_t{1} << bits);
      };
      return (2 * value(row, kNumeratorBits) * x + 2 * value(row + 1, kNumeratorBits) * y +
              value(row + 2, kNumeratorBits)) /
             (2 * value(6, kDenominatorBits) * x + 2 * value(7, kDenominatorBits) * y + 1);
    };
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_NEAR(quotient(0, corners[k].x, corners[k].y), k == 1 || k == 2 ? 239 : 0, 1e-3);
      EXPECT_NEAR(quotient(3, corners[k].x, corners[k].y), k >= 2 ? 179 : 0, 1e-3);
    }
    for (int y = 0; y < size.height; y += 7)
      for (int x = 0; x < size.width; x += 7) {
        const double u = quotient(0, x + 0.5, y + 0.5);
        const double v = quotient(3, x + 0.5, y + 0.5);
        const SourcePlace place = perspective_place(step, x, y, size.width, size.height);
        if (u > -1 && u < 240) {
          ASSERT_NEAR(static_cast<double>(place.u) / whole, u, 1e-3);
        }
        if (v > -1 && v < 180) {
          ASSERT_NEAR(static_cast<double>(place.v) / whole, v, 1e-3);
        }
      }
  }
}

TEST(Perspective, IsDefinedWhereTheCornersFold) {
  const Augmentation folded = perspective(1, {.interpolation = Interpolation::bilinear});
  for (const auto& [height, width] : {std::pair(2, 2), std::pair(4, 4), std::pair(3, 2),
                                      std::pair(2, 50), std::pair(7, 7), std::pair(60, 40)}) {
    const ImageShape shape{.height = height, .width = width, .channels = 3};
    const Levels image = picture(shape);
    for (std::uint64_t sample = 0; sample < 300; ++sample) {
      const Program program = program_of({&folded, 1}, shape, sample);
      Levels in_place = image;
      run(program, in_place.data(), shape, in_place.data());
      ASSERT_EQ(in_place, run_on(program, image, shape));
    }
  }
}

// What the fast way through a line gives, against each pixel by itself.
TEST_P(Kernels, MovedPixelsAreTheirDefinition) {
  for (const ImageShape& shape : shapes()) {
    const Levels image = picture(shape);
    const Picture from{image.data(), shape.height, shape.width, shape.channels};
    for (const Sampler sampler :
         {Sampler::nearest, Sampler::bilinear, Sampler::pillow_bilinear, Sampler::pillow_bicubic})
      for (std::uint64_t sample = 0; sample < 30; ++sample) {
        Random random = random_of(sample);
        const Step step = affine_step(affine_matrix({.degrees = random.uniform(-180, 180),
                                                     .shift_x = random.uniform(-9, 9),
                                                     .shift_y = random.uniform(-9, 9),
                                                     .scale = random.uniform(0.3, 3),
                                                     .shear_x = random.uniform(-50, 50)},
                                                    {shape.height, shape.width}),
                                      {sampler, {9, 100, 200}});
        const Levels found = run_on({&step, 1}, image, shape);
        Levels expected(image.size());
        for (int y = 0; y < shape.height; ++y)
          for (int x = 0; x < shape.width; ++x) {
            std::uint8_t* const to = expected.data() + (y * shape.width + x) * shape.channels;
            if (shape.channels == 3)
              augment::sample<3>(from, step, affine_place(step, x, y), to);
            else
              augment::sample<1>(from, step, affine_place(step, x, y), to);
          }
        ASSERT_EQ(found, expected) << static_cast<int>(sampler) << " " << sample;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(OnEveryTarget, Kernels,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) {
                           return std::string(hwy::TargetName(target.param));
                         });

}  // namespace
}  // namespace penstock::augment::test
