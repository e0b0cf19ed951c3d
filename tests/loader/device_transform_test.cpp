#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::uint64_t kImages = 24;

// Image n is 2x4 pixels of (n, 2n, 3n), but for its first column, which is 200; its label is n.
class Images final : public Source {
 public:
  explicit Images(bool bad = false) : bad_(bad) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return kImages; }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override {
    if (bad_ && number == 3) return Fault{.reason = "made bad"};
    record.reset(2);
    const std::span<std::byte> bytes = *record.allocate(24 + 8);
    for (std::size_t k = 0; k < 24; ++k) {
      const std::size_t pixel = k / 3;
      bytes[k] = static_cast<std::byte>(pixel % 4 == 0 ? 200 : number * (1 + k % 3));
    }
    std::memcpy(bytes.data() + 24, &number, 8);
    record[0] = ConstTensorView(bytes.data(), DType::u8, {2, 4, 3});
    record[1] = ConstTensorView(bytes.data() + 24, DType::i64, {});
    return {};
  }
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    return "image " + std::to_string(number);
  }
  [[nodiscard]] std::string fingerprint() const override { return "images"; }

 private:
  bool bad_;
  std::vector<FieldSpec> fields_{{"image", DType::u8, {2, 4, 3}}, {"label", DType::i64, {}}};
};

Dataset images(bool bad = false) { return Dataset(std::make_shared<Images>(bad)).seed(7); }

const DeviceTransformOptions kHalfAndHalf{.mean = {0.5F}, .std = {0.25F}};

float normalised(double pixel) { return static_cast<float>((pixel / 255 - 0.5) / 0.25); }

TEST(DeviceTransformInALoader, ReplacesTheFieldAndLeavesTheOthers) {
  Loader loader = images().batch(8).transform_on_device(kHalfAndHalf).loader();
  ASSERT_EQ(loader.fields().size(), 2U);
  EXPECT_EQ(loader.fields()[0].to_string(), "image f32 [3,2,4]");
  std::uint64_t seen = 0;
  for (const Step& step : loader) {
    const DeviceBatch& part = step[0];
    const auto* pixels = part["image"].data<float>();
    EXPECT_EQ(part["image"].shape(), (Shape{8, 3, 2, 4}));
    EXPECT_EQ(part.bytes(), 8 * (24 * 4 + 8));
    for (std::uint64_t row = 0; row < part.size(); ++row, ++seen) {
      EXPECT_EQ(part["label"].data<std::int64_t>()[row], static_cast<std::int64_t>(seen));
      for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(pixels[row * 24 + c * 8], normalised(200), 1e-6);
        EXPECT_NEAR(pixels[row * 24 + c * 8 + 1], normalised(static_cast<double>(seen * (c + 1))),
                    1e-6);
      }
    }
  }
  EXPECT_EQ(seen, kImages);
  EXPECT_GT(loader.stats()[Stage::device_transform].busy_s, 0);
}

TEST(DeviceTransformInALoader, DigestsAreTakenBeforeIt) {
  const auto digest = [](const Dataset& plan) {
    Loader loader = plan.loader({.digest = true});
    while (loader.next()) {
    }
    return loader.digest();
  };
  EXPECT_EQ(
      digest(images().batch(8)),
      digest(images().batch(8).transform_on_device({.flip = 0.5, .mixup = 0.3, .cutmix = 1})));
}

TEST(DeviceTransformInALoader, TransformedDigestsAreOfItsBytesAndOfRealRowsAlone) {
  const Dataset batches = images(true)
                              .batch(10, {.remainder = Remainder::pad})
                              .transform_on_device({.dtype = DType::f16, .flip = 0.5})
                              .prefetch_to_devices(host_devices(2));
  const LoaderOptions options{.on_fault = OnFault::mask, .digest_transformed = true};
  Loader loader = batches.loader(options);
  Digest total;
  while (const auto step = loader.next()) {
    Digest expected;
    std::uint64_t row = 0;
    for (const DeviceBatch& part : *step) {
      const std::span<const std::byte> bytes = part["image"].bytes();
      const std::size_t row_bytes = bytes.size() / part.size();
      for (std::size_t i = 0; i < part.samples().size(); ++i) {
        RowHasher hasher(step->number(), row + i, part.samples()[i]);
        hasher.add(bytes.subspan(i * row_bytes, row_bytes));
        expected += hasher.finish();
      }
      row += part.size();
    }
    EXPECT_EQ(step->transformed_digest(), expected);
    total += expected;
    EXPECT_EQ(loader.transformed_digest(), total);
    EXPECT_EQ(step->digest(), Digest{});
    // Through a state, too.
    Loader resumed = batches.loader(options);
    resumed.restore(LoaderState::from_json(loader.state().to_json()));
    EXPECT_EQ(resumed.transformed_digest(), total);
  }
  EXPECT_NE(total, Digest{});
  loader.rewind();
  EXPECT_EQ(loader.transformed_digest(), Digest{});
}

std::vector<float> delivered_images(const Dataset& batches, const LoaderOptions& options = {}) {
  std::vector<float> all;
  Loader loader = batches.loader(options);
  while (const auto step = loader.next())
    for (const DeviceBatch& part : *step) {
      const TensorView image = part["image"];
      all.insert(all.end(), image.data<float>(), image.data<float>() + image.shape().elements());
    }
  return all;
}

// Where nothing is drawn, the operations are those of augment_image.
TEST(DeviceTransformInALoader, AugmentsFirstAndAsAugmentImageDoes) {
  for (const std::vector<Augmentation>& operations :
       {std::vector{invert()}, {equalize(), vertical_flip(1)}, {posterize(2), contrast({2, 2})}}) {
    const DeviceTransformOptions rest{.mean = {0.5F}, .flip = 0.5, .cutmix = 1};
    DeviceTransformOptions all = rest;
    all.augment = operations;
    EXPECT_EQ(delivered_images(images().batch(8).transform_on_device(all)),
              delivered_images(images()
                                   .map(augment_image({.operations = operations}))
                                   .batch(8)
                                   .transform_on_device(rest)));
  }
}

TEST(DeviceTransformInALoader, AugmentationsOfASampleDependOnItAlone) {
  const Dataset batches = images().shuffle().repeat(2).batch(12).transform_on_device(
      {.augment = {trivial_augment_wide(), random_apply(0.5, {aug_mix()})}});
  const std::vector<float> expected = delivered_images(batches, {.threads = 1});
  EXPECT_EQ(delivered_images(batches, {.threads = 8}), expected);
  EXPECT_EQ(delivered_images(batches.prefetch_to_devices(host_devices(3))), expected);
  // Otherwise batched, other samples beside it.
  EXPECT_EQ(delivered_images(images().shuffle().repeat(2).batch(4).transform_on_device(
                {.augment = {trivial_augment_wide(), random_apply(0.5, {aug_mix()})}})),
            expected);
  // Resumed at every step.
  Loader walker = batches.loader();
  for (std::size_t step = 0; step < 4; ++step) {
    Loader resumed = batches.loader();
    resumed.restore(walker.state());
    std::vector<float> rest;
    while (const auto next = resumed.next()) {
      const TensorView image = (*next)[0]["image"];
      rest.insert(rest.end(), image.data<float>(), image.data<float>() + image.shape().elements());
    }
    EXPECT_EQ(rest, std::vector<float>(expected.end() - static_cast<std::ptrdiff_t>(rest.size()),
                                       expected.end()));
    EXPECT_EQ(rest.size(), expected.size() * (4 - step) / 4);
    ASSERT_TRUE(walker.next());
  }
  // Another epoch, other draws: the second half is not the first one in another order.
  std::vector<float> first(expected.begin(), expected.begin() + expected.size() / 2);
  std::vector<float> second(expected.begin() + expected.size() / 2, expected.end());
  std::ranges::sort(first);
  std::ranges::sort(second);
  EXPECT_NE(first, second);
}

TEST(DeviceTransformInALoader, AugmentationsLeaveOtherDrawsAndSampleDigestsAlone) {
  const auto digests = [](std::vector<Augmentation> operations) {
    Loader loader = images()
                        .batch(8)
                        .transform_on_device({.augment = std::move(operations),
                                              .flip = 0.5,
                                              .mixup = 0.3,
                                              .erase = {.probability = 0.5}})
                        .loader({.digest = true, .digest_transformed = true});
    std::vector<float> weights;
    while (const auto step = loader.next())
      for (std::uint64_t row = 0; row < 8; ++row)
        weights.push_back((*step)[0]["mix_weight"].data<float>()[row]);
    return std::tuple(loader.digest(), loader.transformed_digest(), weights);
  };
  const auto none = digests({});
  const auto nothing = digests({Augmentation()});
  EXPECT_EQ(nothing, none);
  const auto some = digests({rotate({-90, 90})});
  EXPECT_EQ(std::get<0>(some), std::get<0>(none));
  EXPECT_NE(std::get<1>(some), std::get<1>(none));
  EXPECT_EQ(std::get<2>(some), std::get<2>(none));
}

TEST(DeviceTransformInALoader, MaskedRowsAreNotAugmented) {
  Loader loader = images(true)
                      .batch(10, {.remainder = Remainder::pad})
                      .transform_on_device({.augment = {invert()}})
                      .loader({.on_fault = OnFault::mask});
  std::size_t absent = 0;
  while (const auto step = loader.next()) {
    const DeviceBatch& part = (*step)[0];
    for (std::uint64_t row = 0; row < part.size(); ++row) {
      const bool valid = part["valid"].data<bool>()[row] != 0;
      absent += valid ? 0 : 1;
      // The first column was 200.
      EXPECT_FLOAT_EQ(part["image"].data<float>()[row * 24], valid ? 55.0F / 255 : 0.0F);
    }
  }
  EXPECT_EQ(absent, 1U + 6U);
}

TEST(DeviceTransformInALoader, RefusesAugmentationsThatItCannotDo) {
  const auto message = [](const std::string& what) {
    return ThrowsMessage<std::invalid_argument>(HasSubstr(what));
  };
  EXPECT_THAT(
      [] {
        (void)images().batch(8).transform_on_device(
            {.augment = std::vector<Augmentation>(20, aug_mix())});
      },
      message("augment: the operations may draw more than 255 steps an image"));
  EXPECT_THAT(
      [] {
        (void)DeviceTransform({.augment = {invert()}},
                              {.name = "image", .dtype = DType::u8, .shape = {4, 4, 4}});
      },
      message("augment: it takes images of 1 or 3 channels, found image u8 [4,4,4]"));
  EXPECT_THAT(
      [] {
        (void)DeviceTransform({.augment = {invert()}},
                              {.name = "image", .dtype = DType::u8, .shape = {4, 40'000, 1}});
      },
      message("augment: it takes images of at most 32767x32767 pixels"));
}

// What is drawn for a sample alone is the same on one device and on four.
TEST(DeviceTransformInALoader, FlipsTheSameSamplesOnAnyNumberOfDevices) {
  const auto flipped = [](int devices) {
    Loader loader = images()
                        .repeat(3)
                        .batch(24)
                        .transform_on_device({.flip = 0.5})
                        .prefetch_to_devices(host_devices(devices))
                        .loader();
    std::vector<bool> flips;
    for (const Step& step : loader)
      for (const DeviceBatch& part : step)
        for (std::uint64_t row = 0; row < part.size(); ++row)
          flips.push_back(part["image"].data<float>()[row * 24 + 3] > 0.7F);
    return flips;
  };
  const auto one = flipped(1);
  EXPECT_EQ(one, flipped(4));
  const auto count = std::count(one.begin(), one.end(), true);
  EXPECT_GT(count, 20);
  EXPECT_LT(count, 52);
  EXPECT_NE(std::vector(one.begin(), one.begin() + 24),
            std::vector(one.begin() + 24, one.begin() + 48));
}

TEST(DeviceTransformInALoader, MixupTellsPartnersAndWeights) {
  Loader loader = images().batch(12).transform_on_device({.mixup = 1}).loader();
  const Step step = *loader.next();
  const DeviceBatch& part = step[0];
  const auto* partner = part["mix_row"].data<std::int32_t>();
  const auto* weight = part["mix_weight"].data<float>();
  const auto* pixels = part["image"].data<float>();
  for (std::size_t row = 0; row < 12; ++row) {
    const auto own = static_cast<double>(row);
    const auto other = static_cast<double>(partner[row]);
    EXPECT_NEAR(pixels[row * 24 + 1], (weight[row] * own + (1 - weight[row]) * other) / 255, 1e-6);
  }
}

TEST(DeviceTransformInALoader, TargetsAreLabelsSmoothedAndMixedAsTheImages) {
  constexpr std::int64_t kClasses = 30;
  const DeviceTransformOptions options{
      .mixup = 1, .cutmix = 1, .mix_probability = 0.5, .classes = kClasses, .label_smoothing = 0.1};
  Loader loader = images().batch(7).transform_on_device(options).loader();
  int mixed = 0;
  for (const Step& step : loader) {
    const DeviceBatch& part = step[0];
    const auto* labels = part["label"].data<std::int64_t>();
    const auto* partner = part["mix_row"].data<std::int32_t>();
    const auto* weight = part["mix_weight"].data<float>();
    ASSERT_EQ(part["target"].shape(), (Shape{static_cast<std::int64_t>(part.size()), kClasses}));
    const auto* targets = part["target"].data<float>();
    for (std::size_t row = 0; row < part.size(); ++row) {
      mixed += weight[row] != 1 ? 1 : 0;
      std::vector<double> expected(kClasses, 0.1 / kClasses);
      expected[static_cast<std::size_t>(labels[row])] += 0.9 * weight[row];
      expected[static_cast<std::size_t>(labels[partner[row]])] += 0.9 * (1 - weight[row]);
      for (std::size_t k = 0; k < kClasses; ++k)
        ASSERT_NEAR(targets[row * kClasses + k], expected[k], 1e-6);
    }
  }
  EXPECT_GT(mixed, 3);
  EXPECT_LT(mixed, 21);

  Loader few = images().batch(8).transform_on_device({.classes = 5}).loader();
  EXPECT_THAT([&] { (void)few.next(); },
              ThrowsMessage<Error>(HasSubstr("targets of 5 classes: sample 5 of source 0 has the "
                                             "label 5, and they count from 0 to 4")));
  EXPECT_THAT(
      [] { (void)images().batch(8).transform_on_device({.classes = 5, .label = "tag"}).loader(); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("there is no field 'tag'")));
  EXPECT_THAT([] { (void)images().batch(8).transform_on_device({.label_smoothing = 0.1}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("give classes")));
}

TEST(DeviceTransformInALoader, RowsWithoutASampleAreZeroes) {
  Loader padded =
      images().batch(9, {.remainder = Remainder::pad}).transform_on_device(kHalfAndHalf).loader();
  (void)padded.next();
  (void)padded.next();
  const Step last = *padded.next();
  const auto* pixels = last[0]["image"].data<float>();
  EXPECT_NE(pixels[5 * 24], 0);
  for (std::size_t k = 6 * 24; k < 9 * 24; ++k) EXPECT_EQ(pixels[k], 0);

  Loader masked =
      images(true).batch(8).transform_on_device(kHalfAndHalf).loader({.on_fault = OnFault::mask});
  const Step first = *masked.next();
  EXPECT_EQ(first[0]["image"].data<float>()[3 * 24], 0);
  EXPECT_NE(first[0]["image"].data<float>()[4 * 24], 0);
}

TEST(DeviceTransformInALoader, HeldBatchesKeepTheirBytes) {
  Loader loader = images()
                      .repeat()
                      .batch(8)
                      .transform_on_device({.dtype = DType::f16})
                      .prefetch_to_devices(host_devices(2), {.depth = 3})
                      .loader({.threads = 2});
  std::vector<std::pair<Step, std::vector<std::byte>>> held;
  for (int k = 0; k < 200; ++k) {
    if (held.size() == 3) {
      for (const auto& [step, bytes] : held) {
        const auto now = step[1]["image"].bytes();
        ASSERT_TRUE(std::equal(now.begin(), now.end(), bytes.begin(), bytes.end()));
      }
      held.erase(held.begin());
    }
    Step step = *loader.next();
    const auto bytes = step[1]["image"].bytes();
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    held.emplace_back(std::move(step), std::move(copy));
  }
}

TEST(DeviceTransformInALoader, CountsAgainstTheBudget) {
  const auto held = [](const Dataset& plan) { return plan.loader().stats().memory_bytes; };
  EXPECT_GT(held(images().batch(1024).transform_on_device({})),
            held(images().batch(1024)) + 3 * 1024 * 24 * 4);
  // On host devices images are augmented where they are, and nothing is carried to a GPU.
  EXPECT_EQ(held(images().batch(1024).transform_on_device({.augment = {aug_mix()}})),
            held(images().batch(1024).transform_on_device({})));
}

TEST(DeviceBatch, CopiesAFieldToTheCallersMemory) {
  Loader loader = images().batch(8).loader();
  const Step step = *loader.next();
  std::vector<std::int64_t> labels(9, -1);
  step[0].copy_to("label", labels.data(), 9 * sizeof(std::int64_t), nullptr);
  EXPECT_THAT(labels, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, -1));
  EXPECT_THAT(
      [&] { step[0].copy_to("label", labels.data(), 63, nullptr); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("64 bytes, and there is room for 63")));
}

TEST(Dataset, RefusesADeviceTransformThatCannotWork) {
  using Error = std::invalid_argument;
  EXPECT_THAT([] { (void)images().transform_on_device({}); },
              ThrowsMessage<Error>(HasSubstr("after .batch")));
  EXPECT_THAT([] { (void)images().batch(8).transform_on_device({.field = "picture"}); },
              ThrowsMessage<Error>(HasSubstr("no field 'picture'")));
  EXPECT_THAT([] { (void)images().batch(8).transform_on_device({.field = "label"}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'label'"), HasSubstr("i64"))));
  EXPECT_THAT([] { (void)images().batch(8).transform_on_device({}).transform_on_device({}); },
              ThrowsMessage<Error>(HasSubstr("transformed already")));
}

}  // namespace
}  // namespace penstock
