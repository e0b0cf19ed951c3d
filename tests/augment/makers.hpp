// One augmentation of every maker, for images of so many channels.
#pragma once

#include <cstdint>
#include <vector>

#include <penstock/augment/augmentation.hpp>

namespace penstock::augment::test {

inline std::vector<Augmentation> all_augmentations(int channels = 3) {
  const auto fill = [&](std::uint8_t r, std::uint8_t g, std::uint8_t b) {
    return channels == 1 ? decltype(Sampling::fill){r, r, r} : decltype(Sampling::fill){r, g, b};
  };
  const Sampling bilinear{.interpolation = Interpolation::bilinear, .fill = fill(1, 2, 3)};
  return {
      Augmentation(),
      brightness({0.5, 1.5}),
      contrast({0.5, 1.5}),
      saturation({0.5, 1.5}),
      hue({-0.2, 0.3}),
      color_jitter({.brightness = factors(0.4), .saturation = factors(0.2), .hue = {-0.1, 0.1}}),
      hsv_jitter({.hue = 0.1}),
      grayscale(),
      solarize(77),
      posterize(3),
      equalize(),
      autocontrast(),
      invert(),
      sharpness({0, 2}),
      gaussian_blur(7, {0.5, 1.5}),
      flip(0.3),
      vertical_flip(0.4),
      rotate({-30, 45}, bilinear),
      shear({-10, 20}, {-1, 1}, bilinear),
      translate({-0.1, 0.2}, {0, 0.5}),
      affine({.degrees = {-5, 5}, .scale = {0.8, 1.2}, .shear_y = {3, 4}}, bilinear),
      perspective(0.4, bilinear),
      random_apply(0.8, {flip(1), random_apply(0.5, {invert()})}),
      random_choice({equalize(), grayscale(), Augmentation()}, {1, 0, 2.5}),
      random_choice({equalize(), invert()}),
      trivial_augment_wide(),
      trivial_augment_wide(11, bilinear),
      rand_augment({.operations = 3, .magnitude = 5, .magnitudes = 10}, bilinear),
      auto_augment(bilinear),
      aug_mix({.severity = 5, .width = 2, .depth = 2, .alpha = 0.5, .all_operations = false}),
      aug_mix(),
      timm_rand_augment(),
      timm_rand_augment("rand-m7-n3-mstd101-p0.7-mmax8",
                        {.interpolation = Interpolation::bicubic, .fill = fill(124, 116, 104)}),
      three_augment(),
  };
}

}  // namespace penstock::augment::test
