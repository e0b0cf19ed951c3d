#include "src/device/device_augmentation.hpp"

#include <stop_token>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/augment/policies.hpp>
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

TEST(DeviceAugmentation, OnTheHostEndsBetweenTwoImagesWhenItIsStopped) {
  const DeviceAugmentation augmentation = augmentation_of({invert()});
  const std::vector<SampleId> samples(3);
  std::vector<DeviceTransformRow> rows(3);
  for (DeviceTransformRow& row : rows) row.present = 1;
  std::vector<std::byte> programs(3 * augmentation.program_bytes());
  std::vector<std::byte> passes(3 * augmentation.pass_bytes());
  (void)augmentation.draw(RandomKey(1, 0), samples, rows, programs.data(), passes.data());
  const std::vector<std::byte> in(3 * 192, std::byte{10});
  std::vector<std::byte> out(in.size());
  std::stop_source stop;
  augmentation.run(in.data(), rows, programs.data(), out.data(), stop.get_token());
  EXPECT_EQ(out, std::vector<std::byte>(in.size(), std::byte{245}));
  stop.request_stop();
  EXPECT_THROW(augmentation.run(in.data(), rows, programs.data(), out.data(), stop.get_token()),
               Error);
}

TEST(DeviceAugmentation, TakesScratchMemoryForWhatItsOperationsMayDo) {
  constexpr std::uint64_t kSamples = 1000;
  const auto bytes = [](std::vector<Augmentation> operations) {
    return augmentation_of(std::move(operations)).cuda_scratch_bytes(kSamples);
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
  EXPECT_EQ(augmentation_of({aug_mix()}).host_scratch_bytes(kSamples), kImages);
}

}  // namespace
}  // namespace penstock::device
