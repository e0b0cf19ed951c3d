#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::uint64_t kSamples = 60;
using Levels = std::vector<std::uint8_t>;

/// Images u8 of this shape, each of other levels; a number each.
SourcePtr images(const Shape& shape) {
  const auto size = static_cast<std::size_t>(shape.elements());
  Levels levels(kSamples * size);
  for (std::size_t at = 0; at < levels.size(); ++at)
    levels[at] = static_cast<std::uint8_t>(at * 7 + at / size * 31 + at * at % 13);
  std::vector<std::int64_t> numbers(kSamples);
  for (std::size_t n = 0; n < kSamples; ++n) numbers[n] = static_cast<std::int64_t>(n);
  return source::memory({source::column("image", std::move(levels), shape),
                         source::column("number", std::move(numbers))});
}

std::vector<Augmentation> recipe() {
  return {flip(),
          random_apply(0.8, {color_jitter({.brightness = factors(0.4),
                                           .contrast = factors(0.4),
                                           .saturation = factors(0.4),
                                           .hue = {-0.1, 0.1}})}),
          timm_rand_augment(),
          random_apply(0.5, {gaussian_blur(5)}),
          trivial_augment_wide(),
          aug_mix()};
}

/// What each sample became, by its number.
std::map<std::int64_t, Levels> delivered(const Dataset& plan, int threads) {
  std::map<std::int64_t, Levels> found;
  Loader loader = plan.loader({.threads = threads});
  while (const auto step = loader.next())
    for (std::size_t part = 0; part < step->size(); ++part) {
      const auto image = (*step)[part]["image"];
      const auto rows = static_cast<std::size_t>(image.shape()[0]);
      const std::size_t bytes = image.byte_size() / rows;
      for (std::size_t row = 0; row < rows; ++row) {
        const auto* begin = image.data<std::uint8_t>() + row * bytes;
        found[(*step)[part]["number"].data<std::int64_t>()[row]] = Levels(begin, begin + bytes);
      }
    }
  return found;
}

TEST(AugmentImage, GivesTheSameBytesForAnyThreadsAndOrder) {
  const Dataset plan = Dataset(images({9, 14, 3})).seed(5);
  const auto augmented = augment_image({.operations = recipe()});
  const auto one = delivered(plan.map(augmented).batch(8), 1);
  ASSERT_EQ(one.size(), kSamples);
  EXPECT_EQ(delivered(plan.map(augmented).batch(8), 8), one);
  EXPECT_EQ(delivered(plan.map(augmented).batch(7), 3), one);
  EXPECT_EQ(delivered(plan.shuffle().map(augmented).batch(8), 8), one);
  EXPECT_NE(delivered(Dataset(images({9, 14, 3})).seed(6).map(augmented).batch(8), 1), one);
}

TEST(AugmentImage, AnotherEpochDrawsOthers) {
  const Dataset plan = Dataset(images({9, 14, 3})).seed(5);
  const auto augmented = augment_image({.operations = recipe()});
  const auto first = delivered(plan.map(augmented).batch(kSamples), 2);
  const auto last = delivered(plan.repeat(2).map(augmented).batch(kSamples), 2);
  EXPECT_NE(first, last);
}

TEST(AugmentImage, EachViewDrawsItsOwnAndTheFirstAsASingleImage) {
  const Shape single{9, 14, 3};
  const auto bytes = static_cast<std::size_t>(single.elements());
  // Views of the same image.
  MapFunctionOptions copies{.name = "copies",
                            .inputs = {"image"},
                            .outputs = {{"image", DType::u8, single.with_rows(4)}}};
  const auto copy = [bytes](std::span<const ConstTensorView> in, Outputs out, Random&) {
    for (std::size_t view = 0; view < 4; ++view)
      std::memcpy(out[0].raw() + view * bytes, in[0].raw(), bytes);
  };
  const auto augmented = augment_image({.operations = recipe()});
  const auto views = delivered(
      Dataset(images(single)).seed(5).map(map_function(copies, copy)).map(augmented).batch(8), 4);
  // The operation's place in the plan is part of the key.
  copies.outputs = {{"image", DType::u8, single}};
  const auto same = [bytes](std::span<const ConstTensorView> in, Outputs out, Random&) {
    std::memcpy(out[0].raw(), in[0].raw(), bytes);
  };
  const auto singles = delivered(
      Dataset(images(single)).seed(5).map(map_function(copies, same)).map(augmented).batch(8), 1);
  std::size_t differing = 0;
  for (const auto& [number, levels] : views) {
    const auto view = [&](std::size_t k) {
      return Levels(levels.begin() + static_cast<std::ptrdiff_t>(k * bytes),
                    levels.begin() + static_cast<std::ptrdiff_t>((k + 1) * bytes));
    };
    EXPECT_EQ(view(0), singles.at(number));
    for (std::size_t k = 1; k < 4; ++k) differing += view(k) != view(k - 1);
  }
  EXPECT_GT(differing, 3 * kSamples * 9 / 10);
}

TEST(AugmentImage, TakesGreyImages) {
  const Dataset plan = Dataset(images({9, 14, 1})).seed(5);
  const auto unchanged = augment_image(
      {.operations = {grayscale(), hue({0.1, 0.2}), saturation({0, 0}), hsv_jitter()}});
  EXPECT_EQ(delivered(plan.map(unchanged).batch(8), 2), delivered(plan.batch(8), 2));
  EXPECT_EQ(delivered(plan.map(augment_image({.operations = recipe()})).batch(8), 8),
            delivered(plan.map(augment_image({.operations = recipe()})).batch(8), 1));
}

TEST(AugmentImage, IsTheSamePlanAfterJson) {
  const Dataset plan =
      Dataset(images({9, 14, 3})).seed(5).map(augment_image({.operations = recipe()})).batch(8);
  const Registry registry;
  const Description description = augment_image({.operations = recipe()})->description();
  const TransformPtr made = registry.make_transform(description);
  EXPECT_EQ(made->description().options, description.options);
  EXPECT_EQ(delivered(Dataset(images({9, 14, 3})).seed(5).map(made).batch(8), 3),
            delivered(plan, 3));
  EXPECT_THAT(augment_image({.operations = {flip(0.25)}})->description().text,
              "augment_image(operations=[flip(probability=0.25)])");
}

TEST(AugmentImage, RefusesFieldsThatAreNoImages) {
  const auto bind = [](const Shape& shape, DType dtype, const char* name) {
    return [=] {
      const FieldSpec field{name, dtype, shape};
      (void)augment_image({.operations = {invert()}})->bind({&field, 1});
    };
  };
  EXPECT_THAT(bind({9, 9, 3}, DType::u8, "picture"),
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("augment_image needs a field 'image'"), HasSubstr("picture"))));
  for (const Shape& shape :
       {Shape{9, 9}, Shape{9, 9, 2}, Shape{9, 9, 4}, Shape{kDynamic, 9, 3}, Shape{2, 2, 9, 9, 3}})
    EXPECT_THAT(bind(shape, DType::u8, "image"),
                ThrowsMessage<std::invalid_argument>(
                    AllOf(HasSubstr("1 or 3 channels"), HasSubstr(shape.to_string()))));
  EXPECT_THAT(bind({9, 9, 3}, DType::f32, "image"),
              ThrowsMessage<std::invalid_argument>(HasSubstr("f32")));
  EXPECT_THAT(bind({40'000, 9, 3}, DType::u8, "image"),
              ThrowsMessage<std::invalid_argument>(HasSubstr("at most 32767x32767")));
  EXPECT_THAT([] { (void)augment_image({.field = ""}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("name the field")));
}

TEST(AugmentImage, GreyImagesAreNotFilledWithAColor) {
  const auto bind = [](std::int64_t channels, const Augmentation& operation) {
    const std::vector<FieldSpec> fields{{"image", DType::u8, {8, 9, channels}}};
    return augment_image({.operations = {invert(), operation}})->bind(fields);
  };
  const Sampling color{.fill = {1, 2, 3}};
  for (const Augmentation& operation :
       {rotate({0, 9}, color), random_apply(0.5, {shear({0, 9}, {}, color)}),
        timm_rand_augment("rand-m9", {.fill = {124, 116, 104}})}) {
    EXPECT_NO_THROW((void)bind(3, operation));
    EXPECT_THAT([&] { (void)bind(1, operation); },
                ThrowsMessage<std::invalid_argument>(AllOf(
                    HasSubstr("images of one channel cannot have a fill of three levels, as of"),
                    HasSubstr("fill"))));
  }
  EXPECT_NO_THROW((void)bind(1, rotate({0, 9}, {.fill = {7, 7, 7}})));
}

}  // namespace
}  // namespace penstock
