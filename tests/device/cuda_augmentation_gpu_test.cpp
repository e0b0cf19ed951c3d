// Augmentations on a GPU give the host's levels. Needs a GPU, and says so where there is none.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "src/device/device_augmentation.hpp"
#include "tests/augment/makers.hpp"
#include "tests/augment/pictures.hpp"
#include "tests/device/cuda_support.hpp"

namespace penstock::device {
namespace {

using augment::ImageShape;
using augment::test::all_augmentations;
using augment::test::picture;
using testing_support::to_host;

class CudaAugmentationGpu : public testing_support::OnGpu {
 protected:
  void expect_the_hosts_levels(const std::vector<Augmentation>& operations, const ImageShape& shape,
                               std::size_t samples, int views = 1) const;
};

FieldSpec field_of(const ImageShape& shape, int views) {
  return {.name = "image",
          .dtype = DType::u8,
          .shape = {views, shape.height, shape.width, shape.channels}};
}

void CudaAugmentationGpu::expect_the_hosts_levels(const std::vector<Augmentation>& operations,
                                                  const ImageShape& shape, std::size_t samples,
                                                  int views) const {
  DeviceTransformOptions options;
  options.augment = operations;
  const DeviceAugmentation augmentation(options, field_of(shape, views));
  const std::size_t images = samples * static_cast<std::size_t>(views);
  const std::size_t bytes = shape.bytes();
  std::vector<std::byte> in(images * bytes);
  for (std::size_t at = 0; at < images; ++at)
    std::memcpy(in.data() + at * bytes, picture(shape, at).data(), bytes);
  std::vector<SampleId> ids(samples);
  for (std::size_t at = 0; at < samples; ++at) ids[at].number = at * 7;
  std::vector<DeviceTransformRow> rows(images);
  for (std::size_t at = 0; at < images; ++at) rows[at].present = at == 1 ? 0 : 1;
  std::vector<std::byte> programs(samples * augmentation.program_bytes());
  std::vector<std::byte> passes(samples * augmentation.pass_bytes());
  const auto groups = augmentation.draw(RandomKey(3, 0), ids, rows, programs.data(), passes.data());
  std::vector<std::byte> expected(in.size());
  for (std::size_t at = 0; at < images; ++at) {
    const auto* steps = reinterpret_cast<const augment::Step*>(
        programs.data() + at * augmentation.program_bytes() / static_cast<std::size_t>(views));
    if (rows[at].present != 0)
      augment::run({steps, rows[at].steps},
                   reinterpret_cast<const std::uint8_t*>(in.data()) + at * bytes, shape,
                   reinterpret_cast<std::uint8_t*>(expected.data()) + at * bytes);
  }

  const auto to_device = [&](const std::vector<std::byte>& from) {
    auto memory = std::make_unique<DeviceMemory>(0, std::max<std::size_t>(from.size(), 1));
    check(cudaMemcpyAsync(memory->data(), from.data(), from.size(), cudaMemcpyHostToDevice,
                          stream()));
    return memory;
  };
  const auto in_memory = to_device(in);
  const auto program_memory = to_device(programs);
  const auto pass_memory = to_device(passes);
  const DeviceMemory scratch(0, augmentation.scratch_bytes(samples));
  // Whatever was there before.
  check(cudaMemsetAsync(scratch.data(), 0xA5, augmentation.scratch_bytes(samples), stream()));
  const std::byte* const result =
      augmentation.enqueue(in_memory->data(), groups, program_memory->data(), pass_memory->data(),
                           samples, scratch.data(), stream());
  std::vector<std::byte> found = to_host({result, in.size()}, stream());
  if (images > 1)  // nobody is there
    std::memcpy(found.data() + bytes, expected.data() + bytes, bytes);
  ASSERT_TRUE(found == expected);
  ASSERT_TRUE(to_host({in_memory->data(), in.size()}, stream()) == in);
}

TEST_F(CudaAugmentationGpu, GivesTheHostsLevelsForEveryOperationAndShape) {
  const ImageShape shapes[] = {{1, 1, 3},   {1, 9, 1},   {9, 1, 3},    {2, 3, 3},
                               {17, 33, 1}, {16, 64, 3}, {40, 131, 3}, {70, 66, 1}};
  for (const ImageShape& shape : shapes)
    for (const Augmentation& operation : all_augmentations(shape.channels)) {
      SCOPED_TRACE(operation.to_string() + " of " + std::to_string(shape.height) + "x" +
                   std::to_string(shape.width) + "x" + std::to_string(shape.channels));
      expect_the_hosts_levels({operation}, shape, 5);
      if (HasFatalFailure()) return;
    }
}

TEST_F(CudaAugmentationGpu, GivesTheHostsLevelsForSeveralOperations) {
  Random random = augment::test::random_of(9);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const int channels = round % 4 == 0 ? 1 : 3;
    const std::vector<Augmentation> all = all_augmentations(channels);
    std::vector<Augmentation> some;
    for (std::uint64_t k = 1 + random.below(5); k > 0; --k)
      some.push_back(all[random.below(all.size())]);
    expect_the_hosts_levels(some, {21, 34, channels}, 6, round % 3 == 0 ? 3 : 1);
    if (HasFatalFailure()) return;
  }
}

TEST_F(CudaAugmentationGpu, GivesTheHostsLevelsOfALargeImage) {
  expect_the_hosts_levels(
      {rotate({-20, 20}), equalize(), gaussian_blur(63, {9, 9}), contrast({2, 2})}, {333, 517, 3},
      2);
}

TEST_F(CudaAugmentationGpu, TakesMoreImagesThanAGridHasRows) {
  // Enough pixels for several warps, which go on to the next image together.
  expect_the_hosts_levels({brightness({0.5, 1.5}), equalize()}, {12, 40, 3}, 1'100);
}

}  // namespace
}  // namespace penstock::device
