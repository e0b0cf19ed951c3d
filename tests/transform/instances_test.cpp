// Instances: boxes and keypoints stay where the pixels are that they were drawn around.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/augment/augmentation.hpp>
#include <penstock/loader/loader.hpp>
#include <penstock/plan/dataset.hpp>
#include <penstock/plan/plan_json.hpp>
#include <penstock/source/arrays.hpp>
#include <penstock/transform/augment_image.hpp>
#include <penstock/transform/decode_image.hpp>

#include "tests/jpeg/images.hpp"
#include "tests/transform/chain_run.hpp"

namespace penstock::of_instances {
namespace {

using namespace testing_images;
using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;
using testing::ThrowsMessage;

constexpr std::int64_t kMost = 8;  // rows of a padded field
using Numbers = std::vector<float>;

/// An image with its instances.
struct Given {
  Pixels image{1, 1, 3};
  Numbers boxes{};
  Numbers keypoints{};
  std::vector<std::int64_t> labels{};
};

/// What transforms made of it.
struct Made {
  std::vector<std::uint8_t> image;
  Numbers boxes;
  Numbers keypoints;
  std::vector<std::int64_t> labels;
  std::string fault;

  [[nodiscard]] std::size_t count() const { return labels.size(); }
};

template <class T>
ConstTensorView view_of(const std::vector<T>& numbers, const Shape& shape) {
  return source::values(numbers, shape);
}

/// Runs the transforms on an image that is decoded or, with `bytes`, encoded.
Made run(std::vector<TransformPtr> transforms, const Given& given, std::uint64_t number = 0,
         const Bytes* bytes = nullptr) {
  const std::int64_t points = given.labels.empty() || given.keypoints.empty()
                                  ? 1
                                  : std::ssize(given.keypoints) / 3 / std::ssize(given.labels);
  const std::vector<FieldSpec> fields{bytes == nullptr
                                          ? FieldSpec{"image", DType::u8, {kDynamic, kDynamic, 3}}
                                          : FieldSpec{"image", DType::u8, {kDynamic}},
                                      {"boxes", DType::f32, {kDynamic, 4}},
                                      {"keypoints", DType::f32, {kDynamic, points, 3}},
                                      {"labels", DType::i64, {kDynamic}}};
  for (const char* name : {"boxes", "keypoints", "labels"})
    transforms.push_back(
        pad({.field = name, .to = kMost, .lengths = std::string("number_of_") + name}));
  const std::int64_t rows = std::ssize(given.boxes) / 4;
  const std::int64_t instances = given.keypoints.empty() ? 0 : std::ssize(given.labels);
  const std::array<ConstTensorView, 4> record{
      bytes == nullptr ? view_of(given.image.data, {given.image.height, given.image.width, 3})
                       : ConstTensorView{bytes->data(), DType::u8, {std::ssize(*bytes)}},
      view_of(given.boxes, {rows, 4}), view_of(given.keypoints, {instances, points, 3}),
      view_of(given.labels, {std::ssize(given.labels)})};
  const test::ChainRun chain(fields, std::move(transforms), record, number);
  Made made;
  made.fault = chain.fault();
  if (!made.fault.empty()) return made;
  made.image = chain.all<std::uint8_t>("image");
  made.boxes = chain.values<float>("boxes", 4 * chain.count("number_of_boxes"));
  made.keypoints = chain.values<float>(
      "keypoints", 3 * static_cast<std::size_t>(points) * chain.count("number_of_keypoints"));
  made.labels = chain.values<std::int64_t>("labels", chain.count("number_of_labels"));
  return made;
}

Instances all_fields() {
  return {.boxes = "boxes", .keypoints = "keypoints", .fields = {"labels"}};
}
Instances boxes_and_labels() { return {.boxes = "boxes", .fields = {"labels"}}; }

TransformPtr crop(Crop crop, Instances instances, float flip = 0) {
  return crop_image({.crop = std::move(crop),
                     .flip = flip,
                     .filter = ResizeFilter::nearest,
                     .instances = std::move(instances)});
}
TransformPtr augment(std::vector<Augmentation> operations, Instances instances) {
  return augment_image({.operations = std::move(operations), .instances = std::move(instances)});
}

/// One box, of an image of 100x80 pixels (width x height), and its label.
Given one(Numbers box) {
  return {.image = Pixels(100, 80, 3), .boxes = std::move(box), .labels = {5}};
}

testing::Matcher<Numbers> near(const Numbers& expected) {
  return Pointwise(FloatNear(1e-3F), expected);
}

// ---- the numbers of each kind of crop, worked out by hand ----

TEST(Instances, FollowTheirCrop) {
  const Given given = one({10, 20, 60, 40});
  const auto box_after = [&](const Crop& of, float flip = 0) {
    return run({crop(of, boxes_and_labels(), flip)}, given).boxes;
  };
  EXPECT_THAT(box_after(resize_to({40, 200})), near({20, 10, 120, 20}));
  EXPECT_THAT(box_after(resize_to({40, 200}), 1), near({80, 10, 180, 20}));
  // 200x160 pixels, with 20 rows of fill above and below.
  EXPECT_THAT(box_after(letterbox({200, 200})), near({20, 60, 120, 100}));
  EXPECT_THAT(box_after(letterbox({200, 200}), 1), near({80, 60, 180, 100}));
  // The shorter side becomes 40, the longer 50; of these the middle 30x30, from (10, 5).
  EXPECT_THAT(box_after(center_crop(30, {.resize = 40})), near({0, 5, 20, 15}));
  // As high as the sample, 50 wide; 5 are cut off at either side.
  EXPECT_THAT(box_after(cover_crop({40, 40})), near({0, 10, 25, 20}));
}

TEST(Instances, StayOutOfTheFill) {
  // Boxes of annotations may reach beyond their images.
  const Given given = one({-10, -5, 130, 90});
  EXPECT_THAT(run({crop(letterbox({200, 200}), boxes_and_labels())}, given).boxes,
              near({0, 20, 200, 180}));
  // 50 columns of fill on the left, and 51 on the right.
  EXPECT_THAT(run({crop(letterbox({80, 201}), boxes_and_labels())}, given).boxes,
              near({50, 0, 150, 80}));
  EXPECT_THAT(run({crop(letterbox({80, 201}), boxes_and_labels(), 1)}, given).boxes,
              near({51, 0, 151, 80}));
}

TEST(Instances, ComeInEveryFormat) {
  const auto box_of = [](Numbers box, BoxFormat format, bool normalized) {
    Instances instances = boxes_and_labels();
    instances.format = format;
    instances.normalized = normalized;
    return run({crop(resize_to({80, 100}), instances)}, one(std::move(box))).boxes;
  };
  const Numbers expected{10, 20, 60, 40};
  EXPECT_THAT(box_of({10, 20, 60, 40}, BoxFormat::xyxy, false), near(expected));
  EXPECT_THAT(box_of({10, 20, 50, 20}, BoxFormat::xywh, false), near(expected));
  EXPECT_THAT(box_of({35, 30, 50, 20}, BoxFormat::cxcywh, false), near(expected));
  EXPECT_THAT(box_of({0.1F, 0.25F, 0.6F, 0.5F}, BoxFormat::xyxy, true), near(expected));
  EXPECT_THAT(box_of({0.1F, 0.25F, 0.5F, 0.25F}, BoxFormat::xywh, true), near(expected));
  EXPECT_THAT(box_of({0.35F, 0.375F, 0.5F, 0.25F}, BoxFormat::cxcywh, true), near(expected));
}

// ---- operations of augment_image ----

TEST(Instances, FollowEachOperation) {
  const Given given = one({10, 20, 60, 40});
  const auto box_after = [&](const Augmentation& operation) {
    return run({crop(resize_to({80, 100}), boxes_and_labels()),
                augment({operation}, boxes_and_labels())},
               given)
        .boxes;
  };
  EXPECT_THAT(box_after(flip(1)), near({40, 20, 90, 40}));
  EXPECT_THAT(box_after(vertical_flip(1)), near({10, 40, 60, 60}));
  EXPECT_THAT(box_after(translate({0.1, 0.1}, {-0.5, -0.5})), IsEmpty());
  EXPECT_THAT(box_after(translate({0.1, 0.1}, {-0.25, -0.25})), near({20, 0, 70, 20}));
  // By a quarter of a circle counterclockwise about (50, 40): (x, y) goes to (y + 10, 90 - x).
  EXPECT_THAT(box_after(rotate({90, 90})), near({30, 30, 50, 80}));
  EXPECT_THAT(box_after(rotate({180, 180})), near({40, 40, 90, 60}));
  EXPECT_THAT(box_after(affine({.scale = {0.5, 0.5}})), near({30, 30, 55, 40}));
  // What changes levels leaves them.
  EXPECT_THAT(box_after(invert()), near({10, 20, 60, 40}));
  EXPECT_THAT(box_after(perspective(0)), near({10, 20, 60, 40}));
}

TEST(Instances, ThatTurnBecomeTheBoxAroundTheirCorners) {
  const double angle = 30 * 3.14159265358979 / 180;
  const Made made = run({crop(resize_to({80, 100}), boxes_and_labels()),
                         augment({rotate({30, 30})}, boxes_and_labels())},
                        one({40, 35, 60, 45}));
  const auto across = static_cast<float>(10 * std::cos(angle) + 5 * std::sin(angle));
  const auto down = static_cast<float>(10 * std::sin(angle) + 5 * std::cos(angle));
  EXPECT_THAT(made.boxes, near({50 - across, 40 - down, 50 + across, 40 + down}));
}

// ---- what is removed ----

Given several() {
  return {.image = Pixels(100, 80, 3),
          .boxes = {0,  0,  10, 10,            // of 100 pixels, all of it stays
                    45, 0,  55, 10,            // half of it is in the left half of the image
                    60, 0,  70, 10,            // none is
                    48, 20, 90, 60,            // a strip of 2 pixels
                    30, 30, 30, 50},           // of no width
          .keypoints = {1,  1,  2, 9,  9,  1,  //
                        46, 1,  2, 54, 9,  2,  //
                        61, 1,  2, 62, 9,  2,  //
                        49, 30, 2, 0,  0,  0,  //
                        30, 30, 1, 30, 50, 1},
          .labels = {10, 11, 12, 13, 14}};
}

Made halved(const Instances& instances) {
  // A translation by half the width moves the right half out of the image, and what is left to the right.
  return run({crop(resize_to({80, 100}), all_fields()),
              augment({translate({0.5, 0.5}, {0, 0})}, instances)},
             several());
}

TEST(Instances, OfWhichTooLittleIsLeftGoFromEveryField) {
  const Made made = halved(all_fields());
  EXPECT_THAT(made.labels, ElementsAre(10, 11, 13));
  EXPECT_THAT(made.boxes, near({50, 0, 60, 10, 95, 0, 100, 10, 98, 20, 100, 60}));
  // What lies outside is not visible, and says so as what was never labelled.
  EXPECT_THAT(made.keypoints, near({51, 1, 2, 59, 9, 1,  //
                                    96, 1, 2, 0, 0, 0,   //
                                    99, 30, 2, 0, 0, 0}));

  Instances instances = all_fields();
  instances.min_size = 2.5;
  EXPECT_THAT(halved(instances).labels, ElementsAre(10, 11));
  instances.min_size = 2;
  EXPECT_THAT(halved(instances).labels, ElementsAre(10, 11, 13));
  instances.min_size = 0;  // a box without area shows nothing
  EXPECT_THAT(halved(instances).labels, ElementsAre(10, 11, 13));
  instances.min_visible = 0.49;
  EXPECT_THAT(halved(instances).labels, ElementsAre(10, 11));
  instances.min_visible = 0.51;
  EXPECT_THAT(halved(instances).labels, ElementsAre(10));
  instances.min_visible = 1;
  EXPECT_THAT(halved(instances).labels, ElementsAre(10));
}

TEST(Instances, AreNotRemovedByRounding) {
  Instances instances = boxes_and_labels();
  instances.min_visible = 1;
  for (int width = 1; width <= 300; ++width) {
    const Given given{
        .image = Pixels(width, 7, 3), .boxes = {0, 0, static_cast<float>(width), 7}, .labels = {3}};
    EXPECT_THAT(
        run({crop(resize_to(13), instances, 0.5F), augment({flip(1)}, instances)}, given).labels,
        ElementsAre(3))
        << width;
  }
  // The box that stands for none in many data sets.
  EXPECT_EQ(run({crop(resize_to(32), boxes_and_labels())}, one({0, 0, 1, 1})).fault, "");
}

TEST(Instances, OfAnImageMayBeNone) {
  const Given none{.image = Pixels(30, 20, 3)};
  const Made made =
      run({crop(resize_to(16), all_fields()), augment({flip(1)}, all_fields())}, none);
  EXPECT_EQ(made.fault, "");
  EXPECT_THAT(made.boxes, IsEmpty());
  EXPECT_THAT(made.labels, IsEmpty());
}

TEST(Instances, WithoutBoxesAllStay) {
  const Instances points{.keypoints = "keypoints"};
  const Made made =
      run({crop(resize_to({80, 100}), points), augment({translate({0.5, 0.5}, {0, 0})}, points)},
          several());
  EXPECT_THAT(made.labels, ElementsAre(10, 11, 12, 13, 14));
  EXPECT_THAT(made.keypoints, near({51, 1,  2, 59, 9,  1,  //
                                    96, 1,  2, 0,  0,  0,  //
                                    0,  0,  0, 0,  0,  0,  //
                                    99, 30, 2, 0,  0,  0,  //
                                    80, 30, 1, 80, 50, 1}));
}

TEST(Instances, OfMirroredImagesExchangeTheirKeypoints) {
  Instances instances = all_fields();
  instances.flip_index = {1, 0};
  const Given given{.image = Pixels(100, 80, 3),
                    .boxes = {0, 0, 100, 80},
                    .keypoints = {10, 20, 1, 70, 30, 2},
                    .labels = {1}};
  const auto points_after = [&](float flipped, std::vector<Augmentation> operations) {
    return run({crop(resize_to({80, 100}), instances, flipped),
                augment(std::move(operations), instances)},
               given)
        .keypoints;
  };
  const Numbers as_given{10, 20, 1, 70, 30, 2};
  EXPECT_THAT(points_after(0, {invert()}), near(as_given));
  EXPECT_THAT(points_after(1, {invert()}), near({30, 30, 2, 90, 20, 1}));
  EXPECT_THAT(points_after(0, {flip(1)}), near({30, 30, 2, 90, 20, 1}));
  EXPECT_THAT(points_after(1, {flip(1)}), near(as_given));
  EXPECT_THAT(points_after(0, {flip(1), invert(), flip(1)}), near(as_given));
  EXPECT_THAT(points_after(0, {vertical_flip(1)}), near({70, 50, 2, 10, 60, 1}));
  // Turned by half a circle, left is left.
  EXPECT_THAT(points_after(0, {flip(1), vertical_flip(1)}), near({90, 60, 1, 30, 50, 2}));
  EXPECT_THAT(points_after(0, {rotate({180, 180})}), near({90, 60, 1, 30, 50, 2}));
}

// ---- against the pixels themselves ----

// Each pixel says where it lies: its column and row.
Pixels places(int width, int height) {
  Pixels pixels(width, height, 3);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      pixels.at(x, y)[0] = static_cast<std::uint8_t>(x);
      pixels.at(x, y)[1] = static_cast<std::uint8_t>(y);
      pixels.at(x, y)[2] = 255;
    }
  return pixels;
}

// The last three are chosen by boxes.
std::vector<Crop> crops() {
  return {random_resized_crop({90, 110}, {.scale = {0.3, 1}}),
          center_crop({60, 80}, {.resize = 90}),
          resize_to({70, 150}),
          letterbox({131, 117}, {.fill = 0}),
          random_crop({60, 75}, {.padding = 20, .fill = 0, .pad_if_needed = true}),
          scale_jitter({90, 100}, {.scale = {0.6, 2}, .fill = 0}),
          cover_crop({60, 88}),
          cover_crop({84, 60}, {.position = CropPosition::random}),
          resize_shortest({100, 90}, {.sides = {60, 140},
                                      .step = 1,
                                      .longest = 150,
                                      .fill = 0,
                                      .cut = 0.5,
                                      .cut_sides = {60, 90},
                                      .cut_step = 1,
                                      .cut_size = {40, 80}}),
          random_iou_crop({80, 95}),
          random_iou_crop({91, 70}, {.zoom_out = 0.7, .zoom = {1, 2}}),
          box_safe_crop({85, 90}, {.erosion = 0.3})};
}

std::vector<Augmentation> operations() {
  return {flip(),
          vertical_flip(),
          rotate({-180, 180}),
          shear({-30, 30}, {-20, 20}),
          translate({-0.4, 0.4}, {-0.4, 0.4}),
          affine({.degrees = {-90, 90},
                  .translate_x = {-0.2, 0.2},
                  .translate_y = {-0.2, 0.2},
                  .scale = {0.7, 1.5},
                  .shear_x = {-15, 15},
                  .shear_y = {-15, 15}}),
          perspective(0.5, {.interpolation = Interpolation::nearest}),
          perspective(1, {.interpolation = Interpolation::nearest})};
}

// A number from 0 to below `end`, of a test's own.
int drawn(Random& random, int end) { return static_cast<int>(random.uniform() * end); }

// A keypoint lies on the pixel that shows what it lay on; of one outside, nothing shows near it.
TEST(Instances, KeypointsLieOnWhatTheyLayOn) {
  Random random(RandomKey(1, 2), {});
  std::size_t visible = 0;
  std::size_t hidden = 0;
  for (std::uint64_t number = 0; number < 10'000; ++number) {
    const int width = 60 + drawn(random, 150);
    const int height = 60 + drawn(random, 150);
    const Crop how = crops()[static_cast<std::size_t>(drawn(random, 9))];
    const Augmentation operation = operations()[static_cast<std::size_t>(drawn(random, 8))];
    const auto x = static_cast<float>(random.uniform() * width);
    const auto y = static_cast<float>(random.uniform() * height);
    const Given given{.image = places(width, height), .keypoints = {x, y, 2}, .labels = {0}};
    const Instances points{.keypoints = "keypoints"};
    SCOPED_TRACE(fmt::format("{} and {} of {}x{} at ({}, {}), sample {}", how.to_string(),
                             operation.to_string(), width, height, x, y, number));
    const bool is_augmented = number % 2 == 1;
    std::vector<TransformPtr> transforms{crop(how, points, 0.5F)};
    if (is_augmented) transforms.push_back(augment({operation}, points));
    const Made made = run(transforms, given, number);
    ASSERT_EQ(made.fault, "");
    const ImageSize size = how.size();
    ASSERT_EQ(made.keypoints.size(), 3U);
    if (made.keypoints[2] == 0) {
      ++hidden;
      ASSERT_THAT(made.keypoints, ElementsAre(0, 0, 0));
      // Its own pixel may show in the outermost ones.
      const auto last = static_cast<std::ptrdiff_t>(size.width) - 2;
      for (std::ptrdiff_t v = 2; v < size.height - 2; ++v)
        for (std::ptrdiff_t u = 2; u < last; ++u) {
          const std::uint8_t* const pixel = made.image.data() + 3 * (v * size.width + u);
          ASSERT_FALSE(pixel[2] == 255 && pixel[0] == static_cast<int>(x) &&
                       pixel[1] == static_cast<int>(y) && !is_augmented)
              << u << " " << v;
        }
      continue;
    }
    ++visible;
    const int column = std::min(static_cast<int>(made.keypoints[0]), size.width - 1);
    const int row = std::min(static_cast<int>(made.keypoints[1]), size.height - 1);
    // Of the pixels around it, since the middle of its own may lie beyond the edge of what shows.
    double nearest = std::numeric_limits<double>::infinity();
    for (int v = std::max(row - 1, 0); v <= std::min(row + 1, size.height - 1); ++v)
      for (int u = std::max(column - 1, 0); u <= std::min(column + 1, size.width - 1); ++u) {
        const std::uint8_t* const pixel =
            made.image.data() + 3 * (std::ptrdiff_t{v} * size.width + u);
        if (pixel[2] != 255) continue;
        nearest = std::min(nearest, std::hypot(pixel[0] + 0.5 - static_cast<double>(x),
                                               pixel[1] + 0.5 - static_cast<double>(y)));
      }
    // Near its horizon a perspective has many pixels of the image in one.
    const bool has_horizon = operation == operations().back();
    ASSERT_LT(nearest, !is_augmented ? 3.5 : has_horizon ? 60.0 : 6.0);
  }
  EXPECT_GT(visible, 4'000U);
  EXPECT_GT(hidden, 1'000U);
}

// A box around a disc bounds it after any crop or operation, and is as tight as before where nothing turns.
TEST(Instances, ABoxAroundADiscStillBoundsIt) {
  Random random(RandomKey(3, 4), {});
  std::size_t removed = 0;
  for (std::uint64_t number = 0; number < 4'000; ++number) {
    const int width = 60 + drawn(random, 100);
    const int height = 60 + drawn(random, 100);
    const int across = 10 + drawn(random, width / 2);
    const int down = 10 + drawn(random, height / 2);
    const int left = drawn(random, width - across);
    const int top = drawn(random, height - down);
    Pixels image(width, height, 3);
    for (int y = top; y < top + down; ++y)
      for (int x = left; x < left + across; ++x)
        if (std::hypot((x + 0.5 - left) * 2 / across - 1, (y + 0.5 - top) * 2 / down - 1) <= 1)
          std::fill_n(image.at(x, y), 3, std::uint8_t{255});
    const Given given{.image = image,
                      .boxes = {static_cast<float>(left), static_cast<float>(top),
                                static_cast<float>(left + across), static_cast<float>(top + down)},
                      .labels = {0}};
    Instances instances = boxes_and_labels();
    instances.min_size = 0;
    const bool is_crop = number % 2 == 0;
    const Crop how =
        is_crop ? crops()[static_cast<std::size_t>(drawn(random, 12))] : resize_to({height, width});
    const Augmentation operation = operations()[static_cast<std::size_t>(drawn(random, 8))];
    SCOPED_TRACE(fmt::format("{} and {} of {}x{}, sample {}", how.to_string(),
                             operation.to_string(), width, height, number));
    std::vector<TransformPtr> transforms{crop(how, instances, is_crop ? 0.5F : 0)};
    if (!is_crop) transforms.push_back(augment({operation}, instances));
    const Made made = run(transforms, given, number);
    ASSERT_EQ(made.fault, "");
    std::array<double, 4> around{1e9, 1e9, -1e9, -1e9};  // of the middles of pixels of the disc
    const auto columns = static_cast<std::size_t>(how.size().width);
    for (std::size_t i = 0; i < made.image.size() / 3; ++i) {
      if (made.image[3 * i] != 255) continue;
      const double x = static_cast<double>(i % columns) + 0.5;
      const double y = static_cast<double>(i / columns) + 0.5;
      around = {std::min(around[0], x), std::min(around[1], y), std::max(around[2], x),
                std::max(around[3], y)};
    }
    const bool shows = around[2] >= around[0];
    if (made.boxes.empty()) {
      ++removed;
      ASSERT_FALSE(shows);
      continue;
    }
    constexpr double kNearly = 1e-2;  // a perspective's quotients have 14 bits behind the point
    if (!shows) continue;             // a corner of the box without the disc
    ASSERT_LE(made.boxes[0], around[0] + kNearly);
    ASSERT_LE(made.boxes[1], around[1] + kNearly);
    ASSERT_GE(made.boxes[2], around[2] - kNearly);
    ASSERT_GE(made.boxes[3], around[3] - kNearly);
    if (!is_crop || made.boxes[2] - made.boxes[0] < 12 || made.boxes[3] - made.boxes[1] < 12)
      continue;
    // The disc touches the box's edges in their middles, which a crop may cut off.
    const bool is_whole = static_cast<double>(made.boxes[0]) > kNearly &&
                          static_cast<double>(made.boxes[1]) > kNearly &&
                          static_cast<double>(made.boxes[2]) < how.size().width - kNearly &&
                          static_cast<double>(made.boxes[3]) < how.size().height - kNearly;
    if (!is_whole) continue;
    ASSERT_GT(static_cast<double>(made.boxes[0]), around[0] - 4);
    ASSERT_LT(static_cast<double>(made.boxes[2]), around[2] + 4);
  }
  EXPECT_GT(removed, 20U);
}

TEST(Instances, TwiceMirroredAreAsBefore) {
  Random random(RandomKey(5, 6), {});
  for (std::uint64_t number = 0; number < 200; ++number) {
    const float x = static_cast<float>(random.uniform()) * 80;
    const float y = static_cast<float>(random.uniform()) * 60;
    const Given given = one({x, y, x + 15, y + 10});
    const Made made = run(
        {crop(resize_to({80, 100}), boxes_and_labels(), 1), augment({flip(1)}, boxes_and_labels()),
         augment({vertical_flip(1), vertical_flip(1)}, boxes_and_labels())},
        given, number);
    EXPECT_THAT(made.boxes, Pointwise(FloatNear(1e-4F), given.boxes));
  }
}

// ---- decode_image, and what does not change ----

TEST(Instances, OfEncodedImagesFollowTheirCrop) {
  const Pixels image = places(100, 80);
  const Bytes png = png_of(image);
  Given given = one({10, 20, 60, 40});
  given.image = image;
  const auto decoded = [&](std::optional<Instances> instances) {
    return decode_image({.crop = random_resized_crop({40, 50}),
                         .flip = 0.5F,
                         .instances = std::move(instances),
                         .filter = ResizeFilter::nearest});
  };
  for (std::uint64_t number = 0; number < 50; ++number) {
    const Made made = run({decoded(boxes_and_labels())}, given, number, &png);
    const Made cropped = run({crop_image({.crop = random_resized_crop({40, 50}),
                                          .flip = 0.5F,
                                          .filter = ResizeFilter::nearest,
                                          .instances = boxes_and_labels()})},
                             given, number);
    ASSERT_EQ(made.fault, "");
    EXPECT_EQ(made.boxes, cropped.boxes);
    EXPECT_EQ(made.labels, cropped.labels);
    // They draw nothing, so the image is the one without them.
    EXPECT_EQ(made.image, run({decoded(std::nullopt)}, given, number, &png).image);
  }
}

TEST(Instances, AreThoseOfTheUprightImage) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Pixels stored = places(100, 80);
    const Bytes jpeg = jpeg_of(stored, {.app1 = exif_app1(orientation)});
    const bool is_turned = orientation >= 5;
    const Given given = one({0, 0, 8, 16});
    const Made made =
        run({decode_image({.crop = is_turned ? resize_to({200, 80}) : resize_to({80, 200}),
                           .instances = boxes_and_labels()})},
            given, 0, &jpeg);
    ASSERT_EQ(made.fault, "");
    EXPECT_THAT(made.boxes, is_turned ? near({0, 0, 8, 32}) : near({0, 0, 16, 16})) << orientation;
  }
}

// ---- what cannot be right ----

TEST(Instances, ThatCannotBeRightAreFaults) {
  const auto fault_of = [](Given given, Instances instances = all_fields()) {
    given.image = Pixels(100, 80, 3);
    return run({crop(resize_to(32), std::move(instances))}, given).fault;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(fault_of({.boxes = {10, 20, 5, 30}, .keypoints = {0, 0, 0}, .labels = {1}}),
              AllOf(HasSubstr("'boxes'"), HasSubstr("instance 0"), HasSubstr("(10, 20, 5, 30)"),
                    HasSubstr("format = xywh")));
  EXPECT_THAT(fault_of({.boxes = {1, 2, nan, 4}, .keypoints = {0, 0, 0}, .labels = {1}}),
              HasSubstr("(1, 2, nan, 4), is not finite"));
  EXPECT_THAT(fault_of({.boxes = {1, 2, 30, 40}, .keypoints = {nan, 0, 1}, .labels = {1}}),
              HasSubstr("'keypoints': keypoint 0 of instance 0, (nan, 0, 1), is not finite"));
  EXPECT_THAT(fault_of({.boxes = {1, 2, 3, 4, 5, 6, 7, 8}, .keypoints = {0, 0, 0}, .labels = {1}}),
              AllOf(HasSubstr("2 rows"), HasSubstr("1 of 'keypoints'")));
  EXPECT_THAT(fault_of({.boxes = {0.1F, 0.2F, 0.5F, 0.6F}, .keypoints = {0, 0, 0}, .labels = {1}}),
              HasSubstr("normalized = true"));
  Instances instances = boxes_and_labels();
  instances.normalized = true;
  EXPECT_THAT(fault_of({.boxes = {10, 20, 50, 60}, .labels = {1}}, instances),
              AllOf(HasSubstr("is in pixels"), HasSubstr("normalized")));
  instances = boxes_and_labels();
  instances.format = BoxFormat::xywh;
  EXPECT_THAT(fault_of({.boxes = {10, 20, -5, 6}, .labels = {1}}, instances),
              HasSubstr("a size below 0"));
}

// A source for plans alone.
class OfFields final : public Source {
 public:
  explicit OfFields(std::vector<FieldSpec> fields, std::vector<ImageFields> belonging = {})
      : fields_(std::move(fields)), belonging_(std::move(belonging)) {}
  std::uint64_t size() const noexcept override { return 1; }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t, Record&) const override { return Fault{.reason = "none"}; }
  std::string location(std::uint64_t) const override { return "none"; }
  std::string fingerprint() const override { return "none"; }
  std::vector<ImageFields> image_fields() const override { return belonging_; }

 private:
  std::vector<FieldSpec> fields_;
  std::vector<ImageFields> belonging_;
};

// Encoded images, with boxes as fractions, keypoints, labels, and a text of the image.
Dataset annotated(BoxFormat format = BoxFormat::cxcywh, bool normalized = true,
                  std::vector<int> flip_index = {}) {
  return Dataset(
      std::make_shared<OfFields>(std::vector<FieldSpec>{{"image", DType::u8, {kDynamic}},
                                                        {"boxes", DType::f32, {kDynamic, 4}},
                                                        {"points", DType::f32, {kDynamic, 2, 3}},
                                                        {"labels", DType::i64, {kDynamic}},
                                                        {"caption", DType::u8, {kDynamic}}},
                                 std::vector<ImageFields>{{.image = "image",
                                                           .fields = {"boxes", "points", "labels"},
                                                           .boxes = "boxes",
                                                           .keypoints = "points",
                                                           .format = format,
                                                           .normalized = normalized,
                                                           .flip_index = std::move(flip_index)}}));
}

Instances of_annotated() {
  return {.boxes = "boxes",
          .keypoints = "points",
          .fields = {"labels"},
          .format = BoxFormat::cxcywh,
          .normalized = true};
}

TransformPtr decoded(std::optional<Instances> instances = {}, const char* field = "image") {
  return decode_image({.field = field, .crop = resize_to(8), .instances = std::move(instances)});
}

void refuses_plan(const std::function<Dataset()>& make, const std::vector<std::string>& words) {
  try {
    (void)make();
    ADD_FAILURE() << "not refused, and should have been with " << words.front();
  } catch (const std::invalid_argument& error) {
    for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
  }
}

TEST(Instances, OfASourceAreNotLeftBehind) {
  const Dataset plan = annotated();
  (void)plan.map(decoded(of_annotated()));
  refuses_plan([&] { return plan.map(decoded()); },
               {"decode_image moves the pixels of 'image', and not 'boxes', 'points', 'labels', "
                "which belong to them",
                "option instances", "rename() of 'boxes' to ''"});
  Instances some = of_annotated();
  some.fields = {};
  refuses_plan([&] { return plan.map(decoded(some)); }, {"and not 'labels', which"});
  // What a plan does not have need not be named; nor what another transform made something else of.
  const Dataset bare = plan.rename({{"boxes", ""}, {"points", ""}, {"labels", ""}});
  (void)bare.map(decoded());
  const auto numbers = map_function(
      {.name = "numbers", .inputs = {"labels"}, .outputs = {{"labels", DType::i64, {}}}},
      [](auto, Outputs, Random&) {});
  (void)plan.map(numbers).map(decoded(some));
  // pad() leaves what they are.
  refuses_plan([&] { return plan.map(pad({.field = "labels", .to = 9})).map(decoded(some)); },
               {"and not 'labels', which"});
  // Behind the first transform they belong to the image that it has made.
  const Dataset moved = plan.map(decoded(of_annotated()));
  refuses_plan([&] { return moved.map(augment_image({.operations = {flip()}})); },
               {"augment_image moves the pixels of 'image', and not 'boxes'",
                "which decode_image moves with them"});
}

TEST(Instances, OfARenamedSourceBelongToItsNames) {
  const Dataset plan = annotated().rename({{"image", "picture"}, {"boxes", "places"}});
  refuses_plan([&] { return plan.map(decoded({}, "picture")); },
               {"pixels of 'picture', and not 'places', 'points', 'labels'"});
  Instances named = of_annotated();
  named.boxes = "places";
  (void)plan.map(decoded(named, "picture"));
  // An image under two names has them under both.
  const Dataset twice = annotated().rename({{"image", "one"}, {"image", "other"}});
  refuses_plan([&] { return twice.map(decoded({}, "other")); }, {"of 'other', and not 'boxes'"});
  refuses_plan([&] { return twice.map(decoded({}, "one")); }, {"of 'one', and not 'boxes'"});
  // So have they beside another data set's fields.
  const Dataset pair =
      zip({annotated(), Dataset(source::memory({source::column("other", std::vector{1})}))});
  refuses_plan([&] { return pair.map(decoded()); }, {"of 'image', and not 'boxes'"});
  (void)pair.map(decoded(of_annotated()));
}

TEST(Instances, OfASourceAreTakenAsItGivesThem) {
  Instances pixels = of_annotated();
  pixels.normalized = false;
  refuses_plan([&] { return annotated().map(decoded(pixels)); },
               {"decode_image: the source gives 'boxes' as fractions of the image's size",
                "format = cxcywh and normalized = true"});
  pixels.format = BoxFormat::xyxy;
  (void)annotated(BoxFormat::xyxy, false).map(decoded(pixels));
  refuses_plan([&] { return annotated(BoxFormat::xyxy, false).map(decoded(of_annotated())); },
               {"gives 'boxes' in pixels", "format = xyxy and normalized = false"});
  // Keypoints alone have no format.
  const Dataset points = annotated().rename({{"boxes", ""}, {"labels", ""}});
  (void)points.map(decoded(Instances{.keypoints = "points", .normalized = true}));
  refuses_plan([&] { return points.map(decoded(Instances{.keypoints = "points"})); },
               {"gives 'points' as fractions", "normalized = true"});
}

// Else a left hand would be called right, and no number would be wrong.
TEST(Instances, OfASourceWithALeftAndARightAreExchangedWhereTheImageIsMirrored) {
  const Dataset plan = annotated(BoxFormat::cxcywh, true, {1, 0});
  const auto decode = [&](float flip, std::vector<int> index) {
    Instances instances = of_annotated();
    instances.flip_index = std::move(index);
    return plan.map(decode_image({.crop = resize_to(8), .flip = flip, .instances = instances}));
  };
  refuses_plan([&] { return decode(0.5F, {}); },
               {"decode_image mirrors 'image', and the source says that its 'points' have a left "
                "and a right: instances needs flip_index = [1, 0], or each number in its place"});
  (void)decode(0.5F, {1, 0});
  (void)decode(0.5F, {0, 1});
  // Behind a transform that mirrors nothing they are still those of the source.
  Instances next = of_annotated();
  next.format = BoxFormat::xyxy;
  next.normalized = false;
  for (const Augmentation& mirroring : {flip(), vertical_flip(), random_apply(0.5, {flip()}),
                                        random_choice({invert(), vertical_flip()})}) {
    refuses_plan([&] { return decode(0, {}).map(augment({mirroring}, next)); },
                 {"augment_image mirrors 'image'", "[1, 0]"});
    next.flip_index = {1, 0};
    (void)decode(0, {}).map(augment({mirroring}, next));
    next.flip_index = {};
  }
  (void)decode(0, {}).map(augment({rotate({180, 180}), invert()}, next));
  (void)annotated().map(
      decode_image({.crop = resize_to(8), .flip = 0.5F, .instances = of_annotated()}));
  // Without the keypoints there is nothing to exchange.
  Instances boxes = of_annotated();
  boxes.keypoints = "";
  (void)plan.rename({{"points", ""}})
      .map(decode_image({.crop = resize_to(8), .flip = 0.5F, .instances = boxes}));
}

// The rows would be the right ones, and the places in them those of another image.
TEST(Instances, OfASourceAreNamedAsWhatTheyAre) {
  Instances wrong = of_annotated();
  wrong.keypoints = "";
  wrong.fields = {"labels", "points"};
  refuses_plan([&] { return annotated().map(decoded(wrong)); },
               {"'points' are the keypoints of 'image'", "name them as keypoints of Instances"});
}

TEST(Instances, InAnotherFormatComeOnce) {
  // One struct for both transforms is what a reader writes first.
  Instances instances = boxes_and_labels();
  const std::vector<FieldSpec> fields{{"image", DType::u8, {80, 100, 3}},
                                      {"boxes", DType::f32, {kDynamic, 4}},
                                      {"labels", DType::i64, {kDynamic}}};
  const Dataset plan(std::make_shared<OfFields>(fields));
  const auto twice = [&] {
    return plan.map(crop(resize_to(8), instances)).map(augment({flip()}, instances));
  };
  (void)twice();
  instances.format = BoxFormat::xywh;
  EXPECT_THAT(twice, ThrowsMessage<std::invalid_argument>(
                         AllOf(HasSubstr("augment_image: crop_image has moved 'boxes' already"),
                               HasSubstr("leave format and normalized out here"))));
  instances.format = BoxFormat::xyxy;
  instances.normalized = true;
  EXPECT_THROW(twice(), std::invalid_argument);
}

TEST(Instances, MayBeRemovedByTheMiddleOfTheirBoxes) {
  // The middle 40x40 of 100x80, from (30, 20) to (70, 60).
  const auto left = [](Numbers box, bool middle) {
    Instances instances = boxes_and_labels();
    instances.middle = middle;
    return run({crop(center_crop(40, {.resize = 80}), std::move(instances))}, one(std::move(box)))
        .labels.size();
  };
  for (const auto& [box, is_in] : {std::pair<Numbers, bool>{{20, 30, 38, 50}, false},
                                   {{20, 30, 44, 50}, true},
                                   {{40, 56, 60, 72}, false},
                                   {{40, 46, 60, 72}, true}}) {
    EXPECT_EQ(left(box, false), 1U);
    EXPECT_EQ(left(box, true), is_in ? 1U : 0U) << testing::PrintToString(box);
  }
}

TEST(Instances, AreNeededByACropThatIsChosenByThem) {
  const auto refuses = [](const auto& make, const char* words) {
    EXPECT_THAT(make, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  const Crop by_boxes = random_iou_crop(8);
  for (const auto& instances :
       {std::optional<Instances>(), std::optional(Instances{.keypoints = "points"})}) {
    refuses([&] { (void)decode_image({.crop = by_boxes, .instances = instances}); },
            "decode_image: random_iou_crop(size=8) is chosen by the boxes of an image: name");
    refuses([&] { (void)crop_image({.crop = by_boxes, .instances = instances}); },
            "crop_image: random_iou_crop(size=8) is chosen by the boxes");
  }
  refuses([&] { (void)decode_views({.views = {{.field = "a", .crop = by_boxes}}}); },
          "decode_views: random_iou_crop(size=8) is chosen by boxes, which decode_image takes");
  // A box that cannot be right is a fault before anything is drawn.
  EXPECT_THAT(run({crop(by_boxes, boxes_and_labels())}, one({10, 20, 5, 30})).fault,
              HasSubstr("ends before it begins"));
}

TEST(Instances, RefuseOptionsThatCannotWork) {
  const auto refuses = [](Instances instances, const char* words) {
    EXPECT_THAT(
        [&] { (void)crop(resize_to(8), instances); },
        ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("crop_image"), HasSubstr(words))));
    EXPECT_THAT(
        [&] { (void)augment({flip()}, instances); },
        ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("augment_image"), HasSubstr(words))));
  };
  refuses({}, "name the field of the boxes");
  refuses({.keypoints = "k", .fields = {"labels"}}, "'labels'");
  refuses({.boxes = "image"}, "'image' has the name of another field");
  refuses({.boxes = "boxes", .fields = {"boxes"}}, "'boxes' has the name of another field");
  refuses({.boxes = "boxes", .fields = {""}}, "a field of instances has no name");
  refuses({.boxes = "boxes", .min_size = -1}, "min_size is 0 pixels or more, found -1");
  refuses({.boxes = "boxes", .min_visible = 1.5}, "min_visible is a fraction");
  refuses({.boxes = "boxes", .flip_index = {0}}, "flip_index is for keypoints");
  refuses({.keypoints = "k", .middle = true}, "middle is that of a box");
  refuses({.boxes = "boxes", .keypoints = "k", .flip_index = {0, 2, 2}}, "1 is missing");
  EXPECT_THAT([] { (void)crop_image({.crop = five_crops(8), .instances = boxes_and_labels()}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("instances follow one crop")));
  EXPECT_THAT([] { (void)augment({aug_mix()}, boxes_and_labels()); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("instances cannot be mixed")));
}

TEST(Instances, RefuseFieldsThatAreOthers) {
  const auto refuses = [](const FieldSpec& boxes, const FieldSpec& keypoints,
                          const FieldSpec& labels, const std::string& words) {
    const std::vector<FieldSpec> fields{
        {"image", DType::u8, {80, 100, 3}}, boxes, keypoints, labels};
    for (const TransformPtr& transform :
         {crop(resize_to(8), all_fields()), augment({flip()}, all_fields())})
      EXPECT_THAT([&] { (void)transform->bind(fields); },
                  ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  const FieldSpec boxes{"boxes", DType::f64, {kDynamic, 4}};
  const FieldSpec keypoints{"keypoints", DType::f32, {kDynamic, 17, 3}};
  const FieldSpec labels{"labels", DType::i64, {kDynamic}};
  refuses({"boxes", DType::i32, {kDynamic, 4}}, keypoints, labels,
          "boxes are f32 or f64 [?,4], which a map can make of others; found boxes i32 [?,4]");
  refuses({"boxes", DType::f32, {kDynamic, 5}}, keypoints, labels, "found boxes f32 [?,5]");
  refuses({"boxes", DType::f32, {9, 4}}, keypoints, labels, "put pad behind");
  refuses(boxes, {"keypoints", DType::f32, {kDynamic, 2}}, labels, "of x, y and visibility");
  refuses(boxes, keypoints, {"labels", DType::i64, {}}, "one row for each");
  refuses(boxes, keypoints, {"names", DType::u8, {kDynamic}}, "'labels'");
  Instances instances = all_fields();
  instances.flip_index = {1, 0};
  EXPECT_THAT(
      [&] {
        (void)crop(resize_to(8), instances)
            ->bind(std::vector<FieldSpec>{
                {"image", DType::u8, {80, 100, 3}}, boxes, keypoints, labels});
      },
      ThrowsMessage<std::invalid_argument>(
          HasSubstr("flip_index has 2 numbers, and an instance 17 keypoints")));
}

// A transform that moves an image without what an earlier one has moved with it would leave that where it was.
TEST(Instances, AndMasksAreNotLeftBehind) {
  const Dataset plan(
      source::memory({source::column("image", std::vector<std::uint8_t>(4 * 6 * 3), {4, 6, 3}),
                      source::column("mask", std::vector<std::uint8_t>(4 * 6), {4, 6})}));
  const Dataset cropped = plan.map(crop_image({.crop = resize_to(4), .masks = {"mask"}}));
  const auto refuses = [](const auto& make, const std::string& caller) {
    EXPECT_THAT([&] { (void)make().loader(); },
                ThrowsMessage<std::invalid_argument>(
                    AllOf(HasSubstr(caller + " moves the pixels of 'image', and not 'mask'"),
                          HasSubstr("which crop_image moves with them"))));
  };
  refuses([&] { return cropped.map(augment_image({.operations = {flip()}})).batch(1); },
          "augment_image");
  refuses([&] { return cropped.map(crop_image({.crop = resize_to(2)})).batch(1); }, "crop_image");
  refuses([&] { return cropped.batch(1).transform_on_device({.flip = 0.5}); },
          "transform_on_device");
  refuses(
      [&] { return cropped.batch(1).transform_on_device({.augment = {trivial_augment_wide()}}); },
      "transform_on_device");
  refuses([&] { return cropped.batch(1).transform_on_device({.cutmix = 0.2}); },
          "transform_on_device");
  // Levels may be changed between.
  refuses(
      [&] {
        return cropped.map(augment_image({.operations = {invert()}, .masks = {"mask"}}))
            .batch(1)
            .transform_on_device({.flip = 0.5});
      },
      "transform_on_device");
  // So may instances be named again.
  const Dataset all(
      std::make_shared<OfFields>(std::vector<FieldSpec>{{"image", DType::u8, {80, 100, 3}},
                                                        {"mask", DType::u8, {80, 100}},
                                                        {"boxes", DType::f32, {kDynamic, 4}},
                                                        {"labels", DType::i64, {kDynamic}}}));
  const Dataset both = all.map(
      crop_image({.crop = resize_to(8), .masks = {"mask"}, .instances = boxes_and_labels()}));
  (void)both.map(augment({invert()}, boxes_and_labels()));
  refuses_plan([&] { return both.map(augment({flip()}, boxes_and_labels())); },
               {"and not 'mask', which crop_image moves with them"});
  // Of every part of a concatenation.
  const Dataset second = plan.map(crop_image({.crop = resize_to({4, 6}), .masks = {"mask"}}));
  refuses(
      [&] {
        return concatenate({plan, second}).batch(1).transform_on_device({.flip = 0.5});
      },
      "transform_on_device");
  // What moves no pixels, and what moves the mask as well, is taken; so is an image that has none.
  (void)cropped.map(augment_image({.operations = {invert()}})).batch(1).loader();
  (void)cropped.map(augment_image({.operations = {flip()}, .masks = {"mask"}})).batch(1).loader();
  (void)cropped.batch(1).transform_on_device({.augment = {invert()}, .mixup = 0.2}).loader();
  const auto number_of_classes =
      map_function({.name = "count", .inputs = {"mask"}, .outputs = {{"mask", DType::u8, {}}}},
                   [](auto in, Outputs out, Random&) {
                     *out[0].data<std::uint8_t>() = *in[0].template data<std::uint8_t>();
                   });
  (void)cropped.map(number_of_classes).batch(1).transform_on_device({.flip = 0.5}).loader();
  (void)plan.map(crop_image({.crop = resize_to(4)}))
      .batch(1)
      .transform_on_device({.flip = 0.5})
      .loader();
}

TEST(Instances, ArePartOfAPlan) {
  const Registry registry;
  Instances instances{.boxes = "boxes",
                      .keypoints = "points",
                      .fields = {"labels", "areas"},
                      .format = BoxFormat::cxcywh,
                      .normalized = true,
                      .min_size = 2,
                      .min_visible = 0.25,
                      .flip_index = {1, 0}};
  for (const TransformPtr& made : {crop(resize_to(8), instances), augment({flip()}, instances),
                                   decode_image({.crop = resize_to(8), .instances = instances})}) {
    const Description written = made->description();
    EXPECT_THAT(written.text,
                HasSubstr("instances=Instances(boxes='boxes', keypoints='points', "
                          "fields=['labels', 'areas'], format='cxcywh', normalized=True, "
                          "min_size=2.0, min_visible=0.25, flip_index=[1, 0])"));
    EXPECT_EQ(registry.make_transform(written)->description().options, written.options);
  }
  // A plan without them is the text that it was.
  EXPECT_THAT(decode_image({.crop = resize_to(8)})->description().options,
              testing::Not(HasSubstr("instances")));
}

}  // namespace
}  // namespace penstock::of_instances
