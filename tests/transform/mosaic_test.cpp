// Mosaics: four images and their instances in one sample.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/plan/dataset.hpp>
#include <penstock/transform/decode_image.hpp>

#include "src/transform/chain.hpp"
#include "tests/jpeg/images.hpp"
#include "tests/transform/chain_run.hpp"

namespace penstock::of_mosaics {
namespace {

using namespace testing_images;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using testing::ThrowsMessage;

constexpr int kHeight = 60;
constexpr int kWidth = 80;
constexpr std::uint8_t kFill = 114;
constexpr int kMost = 16;  // rows of a padded field

// An image of one level with the box of an instance.
struct Given {
  int width = 0;
  int height = 0;
  std::uint8_t level = 0;
  std::vector<float> boxes{};
  std::vector<std::int64_t> labels{};
  Bytes bytes{};

  static Given of(int width, int height, std::uint8_t level) {
    Given given{.width = width, .height = height, .level = level};
    Pixels pixels(width, height, 3);
    std::ranges::fill(pixels.data, level);
    given.bytes = png_of(pixels);
    given.boxes = {0, 0, static_cast<float>(width), static_cast<float>(height)};
    given.labels = {level};
    return given;
  }
};

std::vector<Given> four_images() {
  return {Given::of(100, 60, 10), Given::of(40, 90, 20), Given::of(300, 200, 30),
          Given::of(7, 5, 40)};
}

std::vector<FieldSpec> specs(std::size_t partners = 3) {
  std::vector<FieldSpec> all;
  for (std::size_t k = 0; k <= partners; ++k) {
    const std::string end = k == 0 ? "" : "_" + std::to_string(k);
    all.push_back({"image" + end, DType::u8, {kDynamic}});
    all.push_back({"boxes" + end, DType::f32, {kDynamic, 4}});
    all.push_back({"labels" + end, DType::i64, {kDynamic}});
  }
  all.push_back({"partners", DType::i64, {static_cast<std::int64_t>(partners)}});
  return all;
}

Instances boxes_and_labels() { return {.boxes = "boxes", .fields = {"labels"}}; }

DecodeImageOptions options_of(const Crop& crop, float flip = 0) {
  return {.crop = crop, .flip = flip, .instances = boxes_and_labels()};
}

struct Made {
  std::vector<std::uint8_t> image;
  std::vector<float> boxes;
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> partners;
  std::string fault;
  std::optional<std::uint64_t> bad_partner;
};

Made run(const DecodeImageOptions& options, const std::vector<Given>& images, std::uint64_t number,
         const std::vector<std::int64_t>& partners = {7, 8, 9}) {
  std::vector<ConstTensorView> record;
  const Given none;
  for (std::size_t k = 0; k <= partners.size(); ++k) {
    const Given& one = k < images.size() ? images[k] : none;
    record.emplace_back(one.bytes.data(), DType::u8, Shape{std::ssize(one.bytes)});
    record.push_back(source::values(one.boxes, {std::ssize(one.labels), 4}));
    record.push_back(source::values(one.labels, {std::ssize(one.labels)}));
  }
  record.push_back(source::values(partners));
  const test::ChainRun chain(
      specs(partners.size()),
      {decode_image(options),
       pad({.field = "boxes", .to = kMost, .lengths = "count", .also = {"labels"}})},
      record, number);
  Made made;
  made.fault = chain.fault();
  made.bad_partner = chain.bad_partner();
  if (!made.fault.empty()) return made;
  const std::size_t count = chain.count("count");
  made.image = chain.all<std::uint8_t>("image");
  made.boxes = chain.values<float>("boxes", 4 * count);
  made.labels = chain.values<std::int64_t>("labels", count);
  made.partners = chain.all<std::int64_t>("partners");
  return made;
}

// The sample that choose_placement() says, painted.
Made painted(const Crop& crop, const std::vector<Given>& images, std::uint64_t number, bool flip) {
  Made made{.image = std::vector<std::uint8_t>(std::size_t{3} * kHeight * kWidth, kFill)};
  for (std::size_t k = 0; k < images.size(); ++k) {
    Random random(RandomKey(7, 0), {.number = number});
    const Given& one = images[k];
    const PixelRect place =
        choose_placement(crop, one.width, one.height, random, static_cast<int>(k), {},
                         static_cast<int>(images.size()))
            ->place;
    if (place.width == 0) continue;
    const int left = flip ? kWidth - place.x - place.width : place.x;
    for (int y = place.y; y < place.y + place.height; ++y)
      for (int x = 3 * left; x < 3 * (left + place.width); ++x)
        made.image[static_cast<std::size_t>(3 * kWidth * y + x)] = one.level;
    made.labels.push_back(one.level);
    for (const int edge : {left, place.y, left + place.width, place.y + place.height})
      made.boxes.push_back(static_cast<float>(edge));
  }
  return made;
}

TEST(Mosaic, HasEachImageAndItsInstancesInTheirPlace) {
  const Crop crop = mosaic({kHeight, kWidth}, {.scale = {0.4, 1.7}, .translate = 0.3});
  const std::vector<Given> images = four_images();
  std::size_t instances = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    const bool flip = number % 2 == 1;
    const Made made = run(options_of(crop, flip ? 1 : 0), images, number);
    const Made expected = painted(crop, images, number, flip);
    ASSERT_EQ(made.fault, "");
    ASSERT_EQ(made.image, expected.image) << number;
    ASSERT_EQ(made.labels, expected.labels) << number;
    ASSERT_THAT(made.boxes, Pointwise(FloatNear(1e-3F), expected.boxes)) << number;
    ASSERT_THAT(made.partners, ElementsAre(7, 8, 9));
    instances += made.labels.size();
  }
  EXPECT_GT(instances, 600U) << "most samples show several images";
  EXPECT_LT(instances, 1200U) << "and in some one of them is out of sight";
}

TEST(Mosaic, WithoutPartnersIsOneImageInTheMiddle) {
  const Crop crop = mosaic({kHeight, kWidth}, {.scale = {0.5, 1}});
  const std::vector<Given> one{Given::of(100, 60, 10)};
  for (std::uint64_t number = 0; number < 50; ++number) {
    const Made made = run(options_of(crop), one, number, {-1, -1, -1});
    const Made expected = painted(crop, one, number, false);
    ASSERT_EQ(made.fault, "");
    ASSERT_EQ(made.image, expected.image);
    ASSERT_THAT(made.boxes, Pointwise(FloatNear(1e-3F), expected.boxes));
    ASSERT_THAT(made.partners, ElementsAre(-1, -1, -1));
  }
}

TEST(Mosaic, KeepsTheRowsOfEachImageInTheirOrder) {
  const Crop crop = mosaic({kHeight, kWidth}, {.scale = {1, 1}, .translate = 0});
  std::vector<Given> images = four_images();
  images[0].boxes = {};
  images[0].labels = {};
  images[1].boxes = {0, 0, 40, 90, 1, 1, 40, 90};
  images[1].labels = {21, 22};
  bool seen = false;
  for (std::uint64_t number = 0; number < 20; ++number) {
    const Made made = run(options_of(crop), images, number);
    ASSERT_EQ(made.fault, "");
    seen = seen || made.labels == std::vector<std::int64_t>{21, 22, 30, 40};
    ASSERT_TRUE(std::ranges::is_sorted(made.labels));
  }
  EXPECT_TRUE(seen);
}

TEST(Mosaic, IsMixedWithASecondOne) {
  const MosaicOptions options{.scale = {0.6, 1.2}, .translate = 0.1};
  MosaicOptions mixing = options;
  mixing.mixup = 0.5;
  std::vector<Given> images = four_images();
  for (const auto& [width, height, level] :
       {std::array{90, 120, 250}, {33, 30, 220}, {64, 48, 200}, {200, 20, 180}})
    images.push_back(Given::of(width, height, static_cast<std::uint8_t>(level)));
  const std::vector<Given> first(images.begin(), images.begin() + 4);
  int mixed = 0;
  double lowest = 1;
  double highest = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Made made =
        run(options_of(mosaic({kHeight, kWidth}, mixing)), images, number, {1, 2, 3, 4, 5, 6, 7});
    const Made alone = run(options_of(mosaic({kHeight, kWidth}, options)), first, number);
    ASSERT_EQ(made.fault, "");
    ASSERT_TRUE(std::equal(alone.boxes.begin(), alone.boxes.end(), made.boxes.begin()))
        << "those of the first come first";
    if (made.image == alone.image) {
      ASSERT_EQ(made.labels, alone.labels);
      continue;
    }
    ++mixed;
    for (std::size_t i = alone.labels.size(); i < made.labels.size(); ++i)
      ASSERT_GE(made.labels[i], 180) << "of the second mosaic";
    // The weight of the first, where both show one level: the lowest of the first, fill of neither.
    Made second{.image = std::vector<std::uint8_t>(made.image.size(), kFill)};
    for (std::size_t i = alone.labels.size(); i < made.labels.size(); ++i)
      for (int y = static_cast<int>(made.boxes[4 * i + 1]);
           y < static_cast<int>(made.boxes[4 * i + 3]); ++y)
        for (int x = 3 * static_cast<int>(made.boxes[4 * i]);
             x < 3 * static_cast<int>(made.boxes[4 * i + 2]); ++x)
          second.image[static_cast<std::size_t>(3 * kWidth * y + x)] =
              static_cast<std::uint8_t>(made.labels[i]);
    double weight = -1;
    for (std::size_t i = 0; i < made.image.size(); ++i) {
      const int a = alone.image[i];
      const int b = second.image[i];
      if (std::abs(a - b) < 60) continue;
      const double found = static_cast<double>(made.image[i] - b) / (a - b);
      if (weight < 0) weight = found;
      ASSERT_NEAR(found, weight, 1.0 / 60) << "one weight for all of a sample";
    }
    ASSERT_GE(weight, 0);
    lowest = std::min(lowest, weight);
    highest = std::max(highest, weight);
  }
  EXPECT_NEAR(mixed, 100, 25);
  // Beta(32, 32) has a standard deviation of 0.062.
  EXPECT_NEAR(lowest, 0.35, 0.1);
  EXPECT_NEAR(highest, 0.65, 0.1);
}

TEST(Mosaic, OfDamagedImagesIsAFaultThatNamesThePartner) {
  const Crop crop = mosaic({kHeight, kWidth}, {.scale = {0.6, 0.6}, .translate = 0});
  std::vector<Given> images = four_images();
  images[2].bytes.resize(20);
  EXPECT_THAT(run(options_of(crop), images, 1).fault, HasSubstr("partner 2 of it, record 8: "));
  EXPECT_EQ(run(options_of(crop), images, 1).bad_partner, 8U);
  images = four_images();
  images[0].bytes.resize(20);
  EXPECT_THAT(run(options_of(crop), images, 1).fault, testing::Not(HasSubstr("partner")));
  EXPECT_EQ(run(options_of(crop), images, 1).bad_partner, std::nullopt);
  images = four_images();
  images[3].boxes = {5, 5, 1, 1};
  EXPECT_THAT(run(options_of(crop), images, 1).fault,
              HasSubstr("partner 3 of it, record 9: 'boxes': the box of instance 0"));
}

TEST(Mosaic, RefusesWhatItCannotBeMadeOf) {
  const auto bind = [](const DecodeImageOptions& options, const std::vector<FieldSpec>& fields) {
    (void)decode_image(options)->bind(fields);
  };
  const Crop crop = mosaic(64);
  const auto refuses = [](const auto& call, const std::string& words) {
    EXPECT_THAT(call, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refuses(
      [&] {
        bind(options_of(crop), {specs()[0], specs()[1], specs()[2]});
      },
      "decode_image: mosaic(size=64) is made of a sample and 3 more: put partners(3) behind");
  refuses([&] { bind(options_of(mosaic(64, {.mixup = 0.1})), specs()); },
          "is made of a sample and 7 more, and 'partners i64 [3]' says");
  refuses([&] { bind(options_of(crop), specs(2)); }, "'partners i64 [2]' says that there are not");
  std::vector<FieldSpec> unlike = specs();
  unlike[3].shape = Shape({64, 64, 3});
  refuses([&] { bind(options_of(crop), unlike); }, "mosaic(size=64) takes image_1 u8 [64,64,3] as");
  unlike = specs();
  unlike[4].name = "others";
  refuses([&] { bind(options_of(crop), unlike); }, "needs a field 'boxes_1', and there is none");
  refuses(
      [&] {
        (void)transform::TransformChain(
            specs(),
            {decode_image({.crop = crop, .instances = Instances{.boxes = "boxes"}}),
             pad({.field = "boxes", .to = 4}), pad({.field = "labels", .to = 4})},
            7, 0, 0);
      },
      "'labels_1 i64 [?]' is of a partner, and no transform takes it");
  refuses([&] { (void)decode_image({.crop = crop, .geometry = "where"}); },
          "is made of several images: geometry is that of one");
  refuses([&] { (void)decode_image({.crop = crop, .masks = {"mask"}}); }, "takes no masks");
  refuses([&] { (void)decode_image({.crop = crop, .dtype = DType::u16}); }, "of dtype u8");
  refuses([&] { (void)crop_image({.crop = crop}); }, "decode_image takes it");
  refuses([&] { (void)decode_views({.views = {{.field = "view", .crop = crop}}}); },
          "which decode_image takes");
}

}  // namespace
}  // namespace penstock::of_mosaics
