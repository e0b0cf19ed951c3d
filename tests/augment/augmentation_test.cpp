#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>

#include "tests/augment/makers.hpp"

namespace penstock::augment::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

TEST(Augmentation, IsTheSameAfterJson) {
  for (const Augmentation& augmentation : all_augmentations()) {
    const Augmentation read = Augmentation::from_json(augmentation.to_json());
    EXPECT_EQ(read, augmentation) << augmentation.to_json();
    EXPECT_EQ(read.to_string(), augmentation.to_string());
  }
}

TEST(Augmentation, IsEqualToOneOfTheSameOptionsAlone) {
  const auto all = all_augmentations();
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < all.size(); ++b)
      EXPECT_EQ(all[a] == all[b], a == b) << all[a].to_string() << " " << all[b].to_string();
  EXPECT_EQ(brightness({0.5, 1.5}), brightness({0.5, 1.5}));
}

TEST(Augmentation, ShowsWhatItWasMadeOf) {
  EXPECT_EQ(brightness({0.6, 1.4}).to_string(), "brightness(factor=(0.6, 1.4))");
  EXPECT_EQ(random_apply(0.2, {grayscale()}).to_string(),
            "random_apply(probability=0.2, operations=[grayscale()])");
  EXPECT_EQ(hsv_jitter().to_json(), R"({"hsv_jitter":{"hue":0.015,"saturation":0.7,"value":0.4}})");
  EXPECT_EQ(factors(0.4), (Range{0.6, 1.4}));
  EXPECT_EQ(factors(2), (Range{0, 3}));
}

TEST(Augmentation, EachMakerRefusesWhatIsOutOfRangeByItsName) {
  const Range backwards{1, 0.5};
  const std::vector<std::pair<std::string, std::function<void()>>> refused{
      {"brightness: factor", [&] { (void)brightness(backwards); }},
      {"brightness: factor",
       [] {
         (void)brightness({-0.1, 1});
       }},
      {"contrast: factor",
       [] {
         (void)contrast({0, 9});
       }},
      {"saturation: factor", [&] { (void)saturation(backwards); }},
      {"sharpness: factor", [&] { (void)sharpness(backwards); }},
      {"hue: turn",
       [] {
         (void)hue({-0.6, 0});
       }},
      {"color_jitter: brightness", [&] { (void)color_jitter({.brightness = backwards}); }},
      {"color_jitter: contrast", [&] { (void)color_jitter({.contrast = backwards}); }},
      {"color_jitter: saturation", [&] { (void)color_jitter({.saturation = backwards}); }},
      {"color_jitter: hue",
       [] {
         (void)color_jitter({.hue = {0, 0.7}});
       }},
      {"hsv_jitter: hue", [] { (void)hsv_jitter({.hue = 1.01}); }},
      {"hsv_jitter: saturation", [] { (void)hsv_jitter({.saturation = -0.1}); }},
      {"hsv_jitter: value", [] { (void)hsv_jitter({.value = 2}); }},
      {"factors", [] { (void)factors(-1); }},
      {"solarize: threshold", [] { (void)solarize(257); }},
      {"posterize: bits", [] { (void)posterize(9); }},
      {"gaussian_blur: kernel_size is odd", [] { (void)gaussian_blur(4); }},
      {"gaussian_blur: kernel_size", [] { (void)gaussian_blur(65); }},
      {"gaussian_blur: sigma",
       [] {
         (void)gaussian_blur(3, {0, 1});
       }},
      {"flip: probability", [] { (void)flip(1.1); }},
      {"vertical_flip: probability", [] { (void)vertical_flip(-0.1); }},
      {"rotate: degrees",
       [] {
         (void)rotate({0, 361});
       }},
      {"shear: x",
       [] {
         (void)shear({0, 90});
       }},
      {"shear: y",
       [] {
         (void)shear({0, 1}, {-90, 0});
       }},
      {"translate: x",
       [] {
         (void)translate({0, 2}, {0, 0});
       }},
      {"translate: y",
       [] {
         (void)translate({0, 0}, {-2, 0});
       }},
      {"affine: degrees",
       [] {
         (void)affine({.degrees = {0, 999}});
       }},
      {"affine: translate_x",
       [] {
         (void)affine({.translate_x = {0, 2}});
       }},
      {"affine: translate_y",
       [] {
         (void)affine({.translate_y = {0, 2}});
       }},
      {"affine: scale",
       [] {
         (void)affine({.scale = {0, 1}});
       }},
      {"affine: shear_x",
       [] {
         (void)affine({.shear_x = {0, 90}});
       }},
      {"affine: shear_y",
       [] {
         (void)affine({.shear_y = {0, 90}});
       }},
      {"perspective: distortion", [] { (void)perspective(1.5); }},
      {"random_apply: probability", [] { (void)random_apply(2, {}); }},
      {"random_choice", [] { (void)random_choice({}); }},
      {"random_choice: weights",
       [] {
         (void)random_choice({invert()}, {1, 2});
       }},
      {"random_choice", [] { (void)random_choice({invert()}, {-1}); }},
      {"random_choice", [] { (void)random_choice({invert()}, {0}); }},
      {"trivial_augment_wide: magnitudes", [] { (void)trivial_augment_wide(1); }},
      {"rand_augment: operations", [] { (void)rand_augment({.operations = -1}); }},
      {"rand_augment: magnitude", [] { (void)rand_augment({.magnitude = 31}); }},
      {"rand_augment: magnitudes", [] { (void)rand_augment({.magnitudes = 1}); }},
      {"aug_mix: severity", [] { (void)aug_mix({.severity = 11}); }},
      {"aug_mix: width", [] { (void)aug_mix({.width = 0}); }},
      {"aug_mix: depth", [] { (void)aug_mix({.depth = -1}); }},
      {"aug_mix: alpha", [] { (void)aug_mix({.alpha = 0}); }},
      {"timm_rand_augment: 'original-m9'", [] { (void)timm_rand_augment("original-m9"); }},
      {"timm_rand_augment: 'rand-m'", [] { (void)timm_rand_augment("rand-m"); }},
      {"timm_rand_augment: 'rand-m9.5'", [] { (void)timm_rand_augment("rand-m9.5"); }},
      {"timm_rand_augment: 'rand-p2'", [] { (void)timm_rand_augment("rand-p2"); }},
      {"timm_rand_augment: 'rand-w0'", [] { (void)timm_rand_augment("rand-w0"); }},
      {"gaussian_blur", [] { (void)three_augment({.kernel_size = 2}); }},
  };
  for (const auto& [begin, make] : refused)
    EXPECT_THAT(make, ThrowsMessage<std::invalid_argument>(StartsWith(begin))) << begin;
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(
      [&] {
        (void)brightness({none, none});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("nan")));
  EXPECT_THAT([&] { (void)hsv_jitter({.hue = none}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("nan")));
}

TEST(Augmentation, RefusesOperationsThatLieTooDeepInEachOther) {
  Augmentation deep = flip();
  for (int level = 1; level < 16; ++level) deep = random_apply(0.5, {deep});
  EXPECT_EQ(Augmentation::from_json(deep.to_json()), deep);
  EXPECT_THAT([&] { (void)random_apply(0.5, {deep}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("at most 16 deep in each other")));
  const Augmentation many = random_choice(std::vector<Augmentation>(2000, flip()));
  EXPECT_THAT(
      [&] {
        (void)random_choice({many, many, many});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("at most 4096 together")));
}

TEST(Augmentation, RefusesJsonThatIsNoOperation) {
  const auto read = [](const char* json) {
    return [json] { (void)Augmentation::from_json(json); };
  };
  EXPECT_THAT(read("{"), ThrowsMessage<Error>(HasSubstr("not JSON")));
  EXPECT_THAT(read("[1]"), ThrowsMessage<Error>(HasSubstr("an object such as {\"flip\"")));
  EXPECT_THAT(read(R"({"blurr": {}})"),
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("no operation 'blurr'"), HasSubstr("gaussian_blur, flip"))));
  EXPECT_THAT(read(R"({"flip": {"chance": 1}})"), ThrowsMessage<Error>(HasSubstr("'chance'")));
  EXPECT_THAT(read(R"({"hue": {"turn": [0.1]}})"),
              ThrowsMessage<Error>(AllOf(StartsWith("the operation: hue"),
                                         HasSubstr("'turn': expected [low, high], found [0.1]"))));
  for (const char* missing : {R"({"brightness": {}})", R"({"hue": {}})", R"({"rotate": {}})",
                              R"({"shear": {"x": [1, 2]}})", R"({"translate": {"y": [0, 0]}})"})
    EXPECT_THAT(read(missing), ThrowsMessage<Error>(HasSubstr("is missing"))) << missing;
  EXPECT_THAT(read(R"({"hue": {"turn": [0.1, 0.9]}})"),
              ThrowsMessage<std::invalid_argument>(StartsWith("hue: turn")));
  EXPECT_THAT(read(R"({"rotate": {"degrees": [0, 1], "fill": [0, 0]}})"),
              ThrowsMessage<Error>(HasSubstr("'fill'")));
  EXPECT_THAT(
      read(R"({"random_apply": {"probability": 1, "operations": [{"invert": {"by": 2}}]}})"),
      ThrowsMessage<Error>(HasSubstr("'by'")));
}

}  // namespace
}  // namespace penstock::augment::test
