#include "src/device/device_augmentation.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/augment/augmentation.hpp>
#include <penstock/core/error.hpp>

#include "src/device/cuda_augmentation.hpp"

namespace penstock::device {
namespace {

const FieldSpec kField{.name = "image", .dtype = DType::u8, .shape = {8, 8, 3}};

DeviceAugmentation augmentation_of(std::vector<Augmentation> operations) {
  DeviceTransformOptions options;
  options.augment = std::move(operations);
  return {options, kField};
}

// Sample by sample, in place, and in another order.
TEST(DeviceAugmentation, OnTheHostDoesWhatIsDrawnForAGpu) {
  constexpr std::size_t kViews = 3;
  constexpr std::size_t kSamples = 20;
  constexpr std::size_t kImage = 192;
  DeviceTransformOptions options;
  options.augment = {timm_rand_augment(), random_apply(0.5, {aug_mix()})};
  const DeviceAugmentation augmentation(
      options, {.name = "image", .dtype = DType::u8, .shape = {kViews, 8, 8, 3}});
  std::vector<SampleId> samples(kSamples);
  for (std::size_t i = 0; i < kSamples; ++i) samples[i].number = 3 * i;
  std::vector<DeviceTransformRow> rows(kSamples * kViews);
  for (DeviceTransformRow& row : rows) row.present = 1;
  std::vector<std::byte> programs(kSamples * augmentation.program_bytes());
  std::vector<std::byte> passes(kSamples * augmentation.pass_bytes());
  const RandomKey key(1, 0);
  (void)augmentation.draw(key, samples, rows, programs.data(), passes.data());

  std::vector<std::byte> images(rows.size() * kImage);
  for (std::size_t k = 0; k < images.size(); ++k)
    images[k] = static_cast<std::byte>(k * 2'654'435'761U >> 11);
  std::vector<std::byte> expected(images.size());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const auto* steps = reinterpret_cast<const augment::Step*>(
        programs.data() + at * augmentation.program_bytes() / kViews);
    augment::run({steps, rows[at].steps},
                 reinterpret_cast<const std::uint8_t*>(images.data()) + at * kImage, {8, 8, 3},
                 reinterpret_cast<std::uint8_t*>(expected.data()) + at * kImage);
  }
  ASSERT_NE(images, expected);
  for (std::size_t i = kSamples; i-- > 0;)
    augmentation.run(key, samples[i], images.data() + i * kViews * kImage);
  EXPECT_EQ(images, expected);
}

TEST(DeviceAugmentation, TakesScratchMemoryForWhatItsOperationsMayDo) {
  constexpr std::uint64_t kSamples = 1000;
  const auto bytes = [](std::vector<Augmentation> operations) {
    return augmentation_of(std::move(operations)).scratch_bytes(kSamples);
  };
  constexpr std::size_t kImages = 1000 * 192;
  const std::size_t two = bytes({rotate({1, 2}), gaussian_blur(3)});
  EXPECT_GE(two, 2 * kImages);
  EXPECT_LT(two, 2 * kImages + 1024);
  for (const Augmentation& counts :
       {equalize(), contrast({1, 2}), random_apply(0.5, {autocontrast()}), trivial_augment_wide(),
        three_augment()})
    EXPECT_GE(bytes({counts}), two + 2 * kSamples * sizeof(ImageCounts));
  EXPECT_GE(bytes({random_choice({invert(), aug_mix()})}),
            7 * kImages + 2 * kSamples * sizeof(ImageCounts));
}

}  // namespace
}  // namespace penstock::device
