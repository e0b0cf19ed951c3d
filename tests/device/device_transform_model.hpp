// A device transform by its definition, one pixel at a time in double precision, and images to try it on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <penstock/device/device_transform.hpp>

namespace penstock::testing_support {

struct DeviceTransformCase {
  std::string name;
  int height, width, channels;
  DeviceTransformOptions options;

  friend void PrintTo(const DeviceTransformCase& of, std::ostream* out) { *out << of.name; }
};

/// Sizes that the wide kernel takes and that it does not, every type, layout and augmentation.
inline std::vector<DeviceTransformCase> transform_cases() {
  std::vector<DeviceTransformCase> cases;
  const struct {
    int height, width, channels;
  } sizes[] = {{5, 7, 3},     {8, 12, 3}, {9, 4, 1},  {3, 5, 4},  {6, 8, 2},
               {224, 224, 3}, {5, 37, 3}, {5, 50, 4}, {5, 21, 2}, {5, 33, 1}};
  for (const auto& size : sizes)
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (const ImageLayout layout : {ImageLayout::nchw, ImageLayout::nhwc})
        for (const std::string what : {"plain", "all", "cutmix"}) {
          if (size.height == 224 && what == "all") continue;
          DeviceTransformOptions options{.dtype = dtype, .layout = layout};
          if (what != "plain") {
            options.mean = {0.485F};
            options.std = {0.229F};
            options.flip = 0.5;
            options.erase = {.probability = 0.5, .value = {0.25F}};
            options.cutmix = 1;
            if (what == "all") options.mixup = 0.4;
          }
          cases.push_back({std::to_string(size.height) + "x" + std::to_string(size.width) + "x" +
                               std::to_string(size.channels) + "_" + std::string(name_of(dtype)) +
                               "_" + name_of(layout) + "_" + what,
                           size.height, size.width, size.channels, options});
        }
  // More rows than a grid has, by either kernel.
  cases.push_back({"70000_rows_wide", 1, 4, 3, {}});
  cases.push_back({"70000_rows", 2, 3, 3, {.layout = ImageLayout::nhwc}});
  return cases;
}

inline FieldSpec image_field(int height, int width, int channels) {
  return {.name = "image", .dtype = DType::u8, .shape = {height, width, channels}};
}

struct DeviceTransformInput {
  std::vector<std::byte> images;
  std::vector<DeviceTransformRow> rows;
};

/// `count` random images and what is drawn for them; row 1 is without a sample.
inline DeviceTransformInput make_input(const DeviceTransform& transform,
                                       const DeviceTransformCase& of, std::size_t count) {
  DeviceTransformInput input;
  std::mt19937 random(7);
  input.images.resize(count * std::size_t(of.height) * std::size_t(of.width * of.channels));
  for (std::byte& pixel : input.images) pixel = static_cast<std::byte>(random());
  std::vector<SampleId> samples(count);
  for (std::size_t i = 0; i < count; ++i) samples[i].number = i * 31;
  std::vector<std::byte> present(count, std::byte{1});
  if (count > 1) present[1] = std::byte{0};
  input.rows.resize(count);
  transform.draw(RandomKey(3, 1), 5, 0, samples, present, input.rows);
  return input;
}

/// One value of the output, in f64.
inline double modelled(const DeviceTransformCase& of, const DeviceTransformInput& input,
                       std::size_t i, int c, int y, int x) {
  const auto number = [&](const std::vector<float>& list, double default_value) {
    return list.empty() ? default_value : double{list[list.size() == 1 ? 0 : std::size_t(c)]};
  };
  const auto inside = [&](const DeviceTransformRow::Box& box) {
    return y >= box.top && y < box.bottom && x >= box.left && x < box.right;
  };
  const auto alone = [&](std::size_t row) {
    const DeviceTransformRow& what = input.rows[row];
    if (inside(what.erase)) return number(of.options.erase.value, 0);
    const int from = what.flip != 0 ? of.width - 1 - x : x;
    const std::size_t at =
        ((row * std::size_t(of.height) + std::size_t(y)) * std::size_t(of.width) +
         std::size_t(from)) *
            std::size_t(of.channels) +
        std::size_t(c);
    const double pixel = static_cast<double>(input.images[at]) / 255;
    return (pixel - number(of.options.mean, 0)) / number(of.options.std, 1);
  };
  const DeviceTransformRow& row = input.rows[i];
  if (row.present == 0) return 0;
  const auto partner = static_cast<std::size_t>(row.partner);
  if (row.mix == DeviceTransformRow::Mix::mixup)
    return double{row.weight} * alone(i) + (1 - double{row.weight}) * alone(partner);
  return row.mix == DeviceTransformRow::Mix::cutmix && inside(row.cut) ? alone(partner) : alone(i);
}

}  // namespace penstock::testing_support
