// Instances with the corners of boxes that are turned.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/augment/augmentation.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/arrays.hpp>
#include <penstock/transform/augment_image.hpp>
#include <penstock/transform/decode_image.hpp>
#include <penstock/transform/transform.hpp>

#include "tests/transform/chain_run.hpp"

namespace penstock::of_corners {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;
using testing::ThrowsMessage;

constexpr std::int64_t kMost = 8;  // rows of a padded field
constexpr int kWidth = 100;
constexpr int kHeight = 80;

struct Given {
  std::vector<float> boxes{};
  std::vector<double> corners{};
};

struct Made {
  std::vector<float> boxes;
  std::vector<float> corners;
  std::vector<float> keypoints;  // where the corners lay
  std::string fault;
};

// The corners are keypoints, too, so that what becomes of both can be compared.
Made run(std::vector<TransformPtr> transforms, const Given& given, std::uint64_t number = 0) {
  const std::vector<FieldSpec> fields{{"image", DType::u8, {kHeight, kWidth, 3}},
                                      {"boxes", DType::f32, {kDynamic, 4}},
                                      {"corners", DType::f64, {kDynamic, 4, 2}},
                                      {"keypoints", DType::f32, {kDynamic, 4, 3}}};
  transforms.push_back(
      pad({.field = "boxes", .to = kMost, .lengths = "count", .also = {"corners", "keypoints"}}));
  const std::vector<std::uint8_t> image(std::size_t{kHeight} * kWidth * 3);
  std::vector<float> keypoints;
  for (std::size_t i = 0; i < given.corners.size(); i += 2) {
    keypoints.push_back(static_cast<float>(given.corners[i]));
    keypoints.push_back(static_cast<float>(given.corners[i + 1]));
    keypoints.push_back(2);
  }
  const std::int64_t rows = std::ssize(given.boxes) / 4;
  const std::array<ConstTensorView, 4> record{
      source::values(image, {kHeight, kWidth, 3}), source::values(given.boxes, {rows, 4}),
      source::values(given.corners, {rows, 4, 2}), source::values(keypoints, {rows, 4, 3})};
  const test::ChainRun chain(fields, std::move(transforms), record, number);
  Made made;
  made.fault = chain.fault();
  if (!made.fault.empty()) return made;
  const std::size_t count = chain.count("count");
  made.boxes = chain.values<float>("boxes", 4 * count);
  made.corners = chain.values<float>("corners", 8 * count);
  made.keypoints = chain.values<float>("keypoints", 12 * count);
  return made;
}

Instances all_fields() {
  return {.boxes = "boxes", .keypoints = "keypoints", .corners = "corners"};
}

TransformPtr crop(Crop crop, float flip = 0, Instances instances = all_fields()) {
  return crop_image({.crop = std::move(crop), .flip = flip, .instances = std::move(instances)});
}
TransformPtr augment(std::vector<Augmentation> operations) {
  return augment_image({.operations = std::move(operations), .instances = all_fields()});
}

testing::Matcher<std::vector<float>> near(const std::vector<float>& expected) {
  return Pointwise(FloatNear(1e-3F), expected);
}

// A square on its corner, and the upright box around it.
Given diamond() { return {.boxes = {10, 20, 50, 60}, .corners = {30, 20, 50, 40, 30, 60, 10, 40}}; }

TEST(Corners, FollowTheirBox) {
  const auto after = [](std::vector<TransformPtr> transforms) {
    return run(std::move(transforms), diamond()).corners;
  };
  EXPECT_THAT(after({crop(resize_to({160, 100}))}), near({30, 40, 50, 80, 30, 120, 10, 80}));
  EXPECT_THAT(after({crop(resize_to({160, 100}), 1)}), near({70, 40, 50, 80, 70, 120, 90, 80}));
  EXPECT_THAT(after({crop(resize_to({80, 100})), augment({rotate({180, 180})})}),
              near({70, 60, 50, 40, 70, 20, 90, 40}));
  // Where the box is cut at the image's edge, they are not: what they bound keeps its angle.
  const Made made =
      run({crop(resize_to({80, 100})), augment({translate({-0.3, -0.3}, {0, 0})})}, diamond());
  EXPECT_THAT(made.boxes, near({0, 20, 20, 60}));
  EXPECT_THAT(made.corners, near({0, 20, 20, 40, 0, 60, -20, 40}));
}

TEST(Corners, GoWithTheirInstance) {
  Given two = diamond();
  two.boxes.insert(two.boxes.begin(), {80, 10, 90, 20});
  two.corners.insert(two.corners.begin(), {80, 10, 90, 10, 90, 20, 80, 20});
  const Made made =
      run({crop(resize_to({80, 100})), augment({translate({0.25, 0.25}, {0, 0})})}, two);
  EXPECT_THAT(made.boxes, near({35, 20, 75, 60}));
  EXPECT_THAT(made.corners, near({55, 20, 75, 40, 55, 60, 35, 40}));
  EXPECT_THAT(run({crop(resize_to(8))}, {}).corners, IsEmpty());
}

TEST(Corners, MayBeFractions) {
  Instances fractions = all_fields();
  fractions.keypoints = "";
  fractions.normalized = true;
  const auto made = [&](const Given& given) {
    return run({crop(resize_to({160, 50}), 0, fractions)}, given);
  };
  EXPECT_THAT(made({.boxes = {0.1F, 0.25F, 0.5F, 0.75F},
                    .corners = {0.3, 0.25, 0.5, 0.5, 0.3, 0.75, 0.1, 0.5}})
                  .corners,
              near({15, 40, 25, 80, 15, 120, 5, 80}));
  EXPECT_THAT(
      made({.boxes = {0.1F, 0.25F, 0.5F, 0.75F}, .corners = {0, 0, 1, 0, 1, 1, 0, 30}}).fault,
      HasSubstr("'corners': corner 3 of instance 0, (0, 30), is in pixels"));
}

// A keypoint that is seen, and a corner at its place, become the same; a corner that no image can show takes its instance with it.
TEST(Corners, LieWhereKeypointsDo) {
  Random random(RandomKey(5, 6), {});
  std::size_t seen = 0;
  std::size_t hidden = 0;
  for (std::uint64_t number = 0; number < 3'000; ++number) {
    Given given{.boxes = {0, 0, kWidth, kHeight}};
    for (int k = 0; k < 4; ++k) {
      given.corners.push_back(static_cast<float>(random.uniform(-kWidth, 2 * kWidth)));
      given.corners.push_back(static_cast<float>(random.uniform(-kHeight, 2 * kHeight)));
    }
    const Made made = run({crop(random_resized_crop({60, 70}), 0.5F),
                           augment({flip(0.5), rotate({-180, 180}), perspective(1)})},
                          given, number);
    ASSERT_EQ(made.fault, "");
    if (made.corners.empty()) {
      ++hidden;
      continue;
    }
    for (std::size_t k = 0; k < 4; ++k) {
      if (made.keypoints[3 * k + 2] == 0) continue;
      ++seen;
      ASSERT_EQ(made.corners[2 * k], made.keypoints[3 * k]) << number;
      ASSERT_EQ(made.corners[2 * k + 1], made.keypoints[3 * k + 1]) << number;
    }
  }
  EXPECT_GT(seen, 200U);
  EXPECT_GT(hidden, 1'000U) << "about 500 are removed by their boxes alone";
}

TEST(Corners, ThatCannotBeRightAreFaults) {
  const auto fault_of = [](std::vector<double> corners) {
    return run({crop(resize_to(8))}, {.boxes = {10, 20, 50, 60}, .corners = std::move(corners)})
        .fault;
  };
  EXPECT_THAT(fault_of({1, 2, 3, 4, std::numeric_limits<double>::infinity(), 6, 7, 8}),
              HasSubstr("'corners': corner 2 of instance 0, (inf, 6), is not finite"));
  EXPECT_THAT(fault_of({0.1, 0.1, 0.5, 0.1, 0.5, 0.5, 0.1, 0.5}), HasSubstr("normalized = true"));
}

TEST(Corners, RefuseWhatIsNoFieldOfThem) {
  const auto refuses = [](const std::function<void()>& make, const char* words) {
    EXPECT_THAT(make, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refuses([] { (void)crop(resize_to(8), 0, {.keypoints = "k", .corners = "corners"}); },
          "they are removed by their boxes: name these, or leave out the corners 'corners'");
  const auto bind = [](const Shape& shape, DType dtype, const char* name) {
    return [=] {
      (void)crop(resize_to(8), 0, {.boxes = "boxes", .corners = "corners"})
          ->bind(std::vector<FieldSpec>{{"image", DType::u8, {kHeight, kWidth, 3}},
                                        {"boxes", DType::f32, {kDynamic, 4}},
                                        {name, dtype, shape}});
    };
  };
  bind({kDynamic, 4, 2}, DType::f32, "corners")();
  refuses(bind({kDynamic, 5}, DType::f32, "corners"), "corners are f32 or f64 [?,4,2], of x and y");
  refuses(bind({kDynamic, 4, 2}, DType::i64, "corners"), "found corners i64 [?,4,2]");
  refuses(bind({kDynamic, 4, 2}, DType::f32, "others"),
          "there is no field 'corners' for the corners: yolo has one with corners = true");
}

}  // namespace
}  // namespace penstock::of_corners
