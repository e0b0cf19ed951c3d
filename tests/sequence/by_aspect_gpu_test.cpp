// Batches by aspect on GPUs: what lies there, what is made of it and their digests are the host's, each batch in its
// shape.
#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/device/cuda_support.hpp"

namespace penstock {
namespace {

// Images [h,w,3] of its own number, for a record that is a number.
TransformPtr paint(ImageSize shape) {
  return map_function(
      {.name = "paint",
       .inputs = {"number"},
       .outputs = {{"image", DType::u8, {shape.height, shape.width, 3}}}},
      [](std::span<const ConstTensorView> in, Outputs out, Random& random) {
        const std::span pixels(out[0].data<std::uint8_t>(), out[0].byte_size());
        for (std::uint8_t& level : pixels)
          level = static_cast<std::uint8_t>(*in[0].data<std::int64_t>() + random.below(40));
      });
}

Dataset batches(std::mt19937_64& random) {
  const auto gpus = static_cast<std::uint64_t>(gpu_count());
  std::vector<std::int64_t> numbers(90);
  std::vector<ImageSize> sizes;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    numbers[k] = static_cast<std::int64_t>(k);
    sizes.emplace_back(1 + static_cast<int>(random() % 50), 1 + static_cast<int>(random() % 50));
  }
  return Dataset(source::memory({source::column("number", std::move(numbers))}))
      .seed(random())
      .batch_by_aspect(paint, {.shapes = {{9, 4}, {4, 9}, {16, 16}, {31, 2}},
                               .pixels = 256 * std::max<std::uint64_t>(gpus, 8),
                               .multiple = gpus,
                               .sizes = sizes})
      .repeat(2);
}

// Every part of every step on GPUs has the shapes of the host's, and the digests are the same.
void expect_the_hosts(const Dataset& plan) {
  const int gpus = gpu_count();
  std::vector<Device> cuda;
  for (int gpu = 0; gpu < gpus; ++gpu) cuda.push_back({Device::Kind::cuda, gpu});
  const LoaderOptions options{.digest = true, .digest_transformed = true};
  Loader host = plan.prefetch_to_devices(host_devices(gpus)).loader(options);
  Loader device = plan.prefetch_to_devices(cuda).loader(options);
  while (const auto expected = host.next()) {
    const auto step = device.next();
    ASSERT_TRUE(step);
    ASSERT_EQ(step->digest(), expected->digest());
    ASSERT_EQ(step->transformed_digest(), expected->transformed_digest());
    for (std::size_t part = 0; part < cuda.size(); ++part) {
      (*step)[part].synchronize();
      ASSERT_EQ((*step)[part]["image"].shape(), (*expected)[part]["image"].shape());
    }
  }
  EXPECT_FALSE(device.next());
}

TEST(ByAspectOnGpu, BatchesAndDigestsAreTheHosts) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  std::mt19937_64 random(1);
  for (int round = 0; round < 3; ++round) expect_the_hosts(batches(random));
}

TEST(ByAspectOnGpu, WhatIsMadeOfEachShapeIsTheHosts) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  std::mt19937_64 random(2);
  for (const bool on_consumer : {false, true}) {
    expect_the_hosts(batches(random).transform_on_device(
        {.mean = {0.5}, .std = {0.25}, .flip = 0.5F, .on_consumer_stream = on_consumer}));
    expect_the_hosts(batches(random).transform_on_device({.flip = 0.5F,
                                                          .mixup = 0.4F,
                                                          .cutmix = 1,
                                                          .mix_probability = 1,
                                                          .erase = {.probability = 0.5},
                                                          .on_consumer_stream = on_consumer}));
  }
}

TEST(ByAspectOnGpu, AugmentationsOfEachShapeAreTheHosts) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  std::mt19937_64 random(3);
  expect_the_hosts(batches(random).transform_on_device(
      {.augment = {rotate({-30, 30}), brightness({0.5, 1.5})}, .flip = 0.5F}));
}

}  // namespace
}  // namespace penstock
