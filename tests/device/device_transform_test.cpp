#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/core/half.hpp"
#include "tests/device/device_transform_model.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::DeviceTransformCase;
using testing_support::DeviceTransformInput;
using testing_support::image_field;
using testing_support::transform_cases;

double element(DType dtype, const std::byte* at) {
  std::uint16_t bits = 0;
  float value = 0;
  switch (dtype) {
    case DType::f16:
      std::memcpy(&bits, at, 2);
      return core::to_float(core::Half{bits});
    case DType::bf16:
      std::memcpy(&bits, at, 2);
      return core::to_float(core::Bfloat16{bits});
    default:
      std::memcpy(&value, at, 4);
      return value;
  }
}

// The distance between neighbours around `value`.
double ulp(DType dtype, double value) {
  const int bits = dtype == DType::f16 ? 10 : 7;
  const int smallest = dtype == DType::f16 ? -14 : -126;
  const int exponent = value == 0 ? smallest : std::max(std::ilogb(value), smallest);
  return std::ldexp(1, exponent - bits);
}

class DeviceTransformOnHost : public testing::TestWithParam<DeviceTransformCase> {};

TEST_P(DeviceTransformOnHost, GivesWhatItsDefinitionSays) {
  const DeviceTransformCase& of = GetParam();
  const DeviceTransform transform(of.options, image_field(of.height, of.width, of.channels));
  const std::size_t count = of.height > 100 ? 3 : 40;
  const DeviceTransformInput input = make_input(transform, of, count);
  const FieldSpec output = transform.output();
  std::vector<std::byte> out(count * output.bytes(), std::byte{0xAA});
  transform.run(input.images.data(), input.rows, out.data());

  const bool planes = of.options.layout == ImageLayout::nchw;
  const std::byte* at = out.data();
  for (std::size_t i = 0; i < count; ++i)
    for (std::int64_t e = 0; e < output.shape.elements(); ++e, at += size_of(output.dtype)) {
      const auto place = static_cast<int>(e);
      const int plane = of.height * of.width;
      const int c = planes ? place / plane : place % of.channels;
      const int pixel = planes ? place % plane : place / of.channels;
      const double expected = modelled(of, input, i, c, pixel / of.width, pixel % of.width);
      const double found = element(output.dtype, at);
      // Next to 0 the floats that are rounded are as far off as f32 is.
      const double bound =
          output.dtype == DType::f32 ? 1e-6 : std::max(ulp(output.dtype, expected), 1e-6);
      ASSERT_NEAR(found, expected, bound)
          << "row " << i << ", channel " << c << ", pixel " << pixel;
    }
}

INSTANTIATE_TEST_SUITE_P(DeviceTransform, DeviceTransformOnHost,
                         testing::ValuesIn(transform_cases()),
                         [](const auto& test) { return test.param.name; });

std::vector<SampleId> numbered(std::size_t count) {
  std::vector<SampleId> samples(count);
  for (std::size_t i = 0; i < count; ++i) samples[i].number = i;
  return samples;
}

std::vector<DeviceTransformRow> drawn(const DeviceTransform& transform,
                                      const std::vector<SampleId>& samples,
                                      std::uint64_t step = 0) {
  std::vector<DeviceTransformRow> rows(samples.size());
  transform.draw(RandomKey(1, 2), step, 0, samples, {}, rows);
  return rows;
}

TEST(DeviceTransformDraw, FlipsAndErasesASampleTheSameWayInAnyBatch) {
  const DeviceTransform transform({.flip = 0.5, .erase = {.probability = 0.5}},
                                  image_field(64, 48, 3));
  const auto samples = numbered(200);
  const auto whole = drawn(transform, samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto alone = drawn(transform, {samples[i]}, 99);
    EXPECT_EQ(alone[0].flip, whole[i].flip);
    EXPECT_EQ(0, std::memcmp(&alone[0].erase, &whole[i].erase, sizeof whole[i].erase));
  }
}

TEST(DeviceTransformDraw, EachViewDrawsByItself) {
  const DeviceTransformOptions options{.flip = 0.5, .erase = {.probability = 0.5}};
  const DeviceTransform single(options, image_field(64, 48, 3));
  const FieldSpec views{.name = "image", .dtype = DType::u8, .shape = {4, 64, 48, 3}};
  const DeviceTransform several(options, views);
  EXPECT_EQ(single.views(), 1U);
  EXPECT_EQ(several.views(), 4U);
  EXPECT_EQ(several.output().to_string(), "image f32 [4,3,64,48]");
  const auto samples = numbered(200);
  const auto alone = drawn(single, samples);
  std::vector<DeviceTransformRow> rows(800);
  std::vector<std::byte> present(200, std::byte{1});
  present[7] = std::byte{0};
  several.draw(RandomKey(1, 2), 0, 0, samples, present, rows);
  std::array<int, 4> as_the_first{};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(rows[4 * i].flip, alone[i].flip);
    EXPECT_EQ(0, std::memcmp(&rows[4 * i].erase, &alone[i].erase, sizeof alone[i].erase));
    for (std::size_t view = 0; view < 4; ++view) {
      EXPECT_EQ(rows[4 * i + view].present, i == 7 ? 0 : 1);
      as_the_first[view] += rows[4 * i + view].flip == alone[i].flip ? 1 : 0;
    }
  }
  for (std::size_t view = 1; view < 4; ++view) EXPECT_NEAR(as_the_first[view], 100, 35);
}

TEST(DeviceTransformDraw, EachSourceDrawsByItself) {
  const DeviceTransform transform({.flip = 0.5}, image_field(8, 8, 3));
  auto samples = numbered(200);
  const auto first = drawn(transform, samples);
  for (SampleId& sample : samples) sample.source = 1;
  const auto second = drawn(transform, samples);
  int same = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) same += first[i].flip == second[i].flip ? 1 : 0;
  EXPECT_NEAR(same, 100, 35);
}

TEST(DeviceTransform, ViewsAreImagesOneAfterAnother) {
  const DeviceTransformCase of{
      .name = "views",
      .height = 6,
      .width = 8,
      .channels = 3,
      .options = {.mean = {0.5F}, .flip = 0.5, .erase = {.probability = 0.5}}};
  const DeviceTransform single(of.options, image_field(6, 8, 3));
  const DeviceTransformInput input = make_input(single, of, 12);
  std::vector<std::byte> expected(12 * single.output().bytes());
  single.run(input.images.data(), input.rows, expected.data());
  const DeviceTransform several(of.options,
                                {.name = "image", .dtype = DType::u8, .shape = {3, 6, 8, 3}});
  std::vector<std::byte> found(4 * several.output().bytes());
  several.run(input.images.data(), input.rows, found.data());
  EXPECT_EQ(found, expected);
}

TEST(DeviceTransformDraw, KeepsToItsProbabilitiesAndSizes) {
  const DeviceTransform transform({.flip = 0.25, .erase = {.probability = 0.75}},
                                  image_field(100, 100, 3));
  constexpr int kCount = 20'000;
  int flips = 0;
  int erased = 0;
  for (const DeviceTransformRow& row : drawn(transform, numbered(kCount))) {
    flips += row.flip;
    if (row.erase.bottom == 0) continue;
    ++erased;
    const double height = row.erase.bottom - row.erase.top;
    const double width = row.erase.right - row.erase.left;
    EXPECT_LE(row.erase.bottom, 100);
    EXPECT_LE(row.erase.right, 100);
    EXPECT_GT(height * width, 100);  // 2% less what rounding takes
    EXPECT_LT(height * width, 3'500);
  }
  // Within 5 standard deviations.
  EXPECT_NEAR(flips, 0.25 * kCount, 310);
  EXPECT_NEAR(erased, 0.75 * kCount, 310);
}

TEST(DeviceTransform, GreyImagesAreNotFilledWithAColor) {
  const DeviceTransformOptions options{.augment = {rotate({0, 9}, {.fill = {1, 2, 3}})}};
  EXPECT_NO_THROW(DeviceTransform(options, image_field(6, 8, 3)));
  EXPECT_THAT([&] { DeviceTransform(options, image_field(6, 8, 1)); },
              testing::ThrowsMessage<std::invalid_argument>(testing::HasSubstr(
                  "augment: images of one channel cannot have a fill of three levels")));
}

TEST(DeviceTransformDraw, WeightsOfMixupAreBetaDistributed) {
  for (const double alpha : {0.2, 1.0, 4.0}) {
    const DeviceTransform transform({.mixup = alpha}, image_field(8, 8, 3));
    constexpr int kCount = 20'000;
    double sum = 0;
    double squares = 0;
    for (const DeviceTransformRow& row : drawn(transform, numbered(kCount))) {
      ASSERT_EQ(row.mix, DeviceTransformRow::Mix::mixup);
      ASSERT_GE(row.weight, 0);
      ASSERT_LE(row.weight, 1);
      sum += row.weight;
      squares += (row.weight - 0.5) * (row.weight - 0.5);
    }
    EXPECT_NEAR(sum / kCount, 0.5, 0.02) << alpha;
    EXPECT_NEAR(squares / kCount, 1 / (4 * (2 * alpha + 1)), 0.01) << alpha;
  }
}

TEST(DeviceTransformDraw, MixesAsOftenAsAsked) {
  constexpr int kCount = 20'000;
  int cut = 0, mixed = 0;
  const DeviceTransform transform(
      {.mixup = 1, .cutmix = 1, .mix_probability = 0.75, .cutmix_fraction = 0.2},
      image_field(8, 8, 3));
  for (const DeviceTransformRow& row : drawn(transform, numbered(kCount))) {
    cut += row.mix == DeviceTransformRow::Mix::cutmix ? 1 : 0;
    mixed += row.mix != DeviceTransformRow::Mix::none ? 1 : 0;
    if (row.mix == DeviceTransformRow::Mix::none) {
      ASSERT_EQ(row.weight, 1);
    }
  }
  EXPECT_NEAR(mixed, 0.75 * kCount, 310);
  EXPECT_NEAR(cut, 0.15 * kCount, 310);
}

TEST(DeviceTransformDraw, PartnersLieInTheSliceAndChangeWithTheStep) {
  const DeviceTransform transform({.cutmix = 1}, image_field(32, 32, 3));
  const auto first = drawn(transform, numbered(16), 0);
  bool changed = false;
  for (std::uint64_t step = 0; step < 20; ++step) {
    const auto rows = drawn(transform, numbered(16), step);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_GE(rows[i].partner, 0);
      ASSERT_LT(rows[i].partner, 16);
      ASSERT_NE(static_cast<std::size_t>(rows[i].partner), i);
      const double cut =
          (rows[i].cut.bottom - rows[i].cut.top) * (rows[i].cut.right - rows[i].cut.left);
      EXPECT_NEAR(rows[i].weight, 1 - cut / 1024, 1e-6);
    }
    changed = changed || rows[0].partner != first[0].partner;
  }
  EXPECT_TRUE(changed);
}

TEST(DeviceTransformDraw, MixesNobodyWithARowThatIsNotThere) {
  const DeviceTransform transform({.mixup = 1}, image_field(4, 4, 3));
  const auto samples = numbered(64);
  std::vector<std::byte> present(64, std::byte{1});
  for (std::size_t i = 0; i < 64; i += 3) present[i] = std::byte{0};
  std::vector<DeviceTransformRow> rows(64);
  transform.draw(RandomKey(1, 2), 0, 0, samples, present, rows);
  int mixed = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].present != 0, present[i] != std::byte{0});
    if (rows[i].mix == DeviceTransformRow::Mix::none) {
      EXPECT_EQ(rows[i].weight, 1);
      continue;
    }
    ++mixed;
    EXPECT_NE(present[i], std::byte{0});
    EXPECT_NE(present[static_cast<std::size_t>(rows[i].partner)], std::byte{0});
  }
  EXPECT_GT(mixed, 10);
  EXPECT_EQ(drawn(transform, numbered(1))[0].mix,
            DeviceTransformRow::Mix::none);  // nobody to mix with
}

TEST(DeviceTransform, RefusesWhatMakesNoSense) {
  const FieldSpec image = image_field(8, 8, 3);
  const auto finishing = [](DeviceTransformOptions options, const FieldSpec& input) {
    return [options, input] { (void)DeviceTransform(options, input); };
  };
  using Error = std::invalid_argument;
  EXPECT_THAT(finishing({}, {.name = "image", .dtype = DType::u8, .shape = {kDynamic}}),
              ThrowsMessage<Error>(AllOf(HasSubstr("image u8 [?]"), HasSubstr("decode_image"))));
  EXPECT_THAT(finishing({}, {.name = "image", .dtype = DType::f32, .shape = {8, 8, 3}}),
              ThrowsMessage<Error>(HasSubstr("u8")));
  for (const DeviceTransformOptions& mixing :
       {DeviceTransformOptions{.mixup = 1}, {.cutmix = 1}, {.classes = 3}})
    EXPECT_THAT(
        finishing(mixing, {.name = "image", .dtype = DType::u8, .shape = {2, 8, 8, 3}}),
        ThrowsMessage<Error>(HasSubstr("mixup, cutmix and targets are of one image a sample")));
  EXPECT_THAT(finishing({}, image_field(8, 8, 5)), ThrowsMessage<Error>(HasSubstr("channels")));
  EXPECT_THAT(finishing({.dtype = DType::u8}, image),
              ThrowsMessage<Error>(HasSubstr("f32, f16 or bf16, found u8")));
  EXPECT_THAT(finishing({.mean = {123, 116, 103}}, image),
              ThrowsMessage<Error>(HasSubstr("divide mean and standard deviation by 255")));
  EXPECT_THAT(finishing({.mean = {0.1F, 0.2F}}, image),
              ThrowsMessage<Error>(HasSubstr("mean has 2 numbers")));
  EXPECT_THAT(finishing({.std = {0}}, image), ThrowsMessage<Error>(HasSubstr("std")));
  EXPECT_THAT(finishing({.flip = 1.5}, image), ThrowsMessage<Error>(HasSubstr("flip")));
  EXPECT_THAT(finishing({.mixup = -1}, image), ThrowsMessage<Error>(HasSubstr("mixup")));
  EXPECT_THAT(finishing({.erase = {.probability = 1, .area = {0, 0.33}}}, image),
              ThrowsMessage<Error>(HasSubstr("area")));
}

}  // namespace
}  // namespace penstock
