// Masks of instances: drawn from polygons and runs as pycocotools draws them, and moved with their image. python/tests/test_segmentations.py
// compares with pycocotools itself.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
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
#include <penstock/source/arrays.hpp>
#include <penstock/transform/augment_image.hpp>
#include <penstock/transform/decode_image.hpp>

#include "tests/jpeg/images.hpp"
#include "tests/transform/chain_run.hpp"

namespace penstock::of_segmentations {
namespace {

using namespace testing_images;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Mask = std::vector<std::uint8_t>;

constexpr int kHeight = 23;
constexpr int kWidth = 31;
constexpr std::int64_t kMost = 6;

// What transforms make of an image of kHeight x kWidth pixels with `boxes` instances, each with the box of the image.
struct Made {
  std::vector<Mask> masks;
  std::vector<std::int64_t> labels;
  std::string fault;
};

Instances all_fields(bool normalized = false) {
  return {.boxes = "boxes", .fields = {"labels"}, .normalized = normalized, .masks = "masks"};
}

// `masks` are segmentations, u8 [?], or u8 [n,H,W].
Made run(std::vector<TransformPtr> transforms, const ConstTensorView& masks, std::int64_t count,
         std::uint64_t number = 0, const std::vector<float>* boxes = nullptr) {
  const bool are_drawn = masks.shape().rank() == 1;
  const std::vector<FieldSpec> fields{
      {"image", DType::u8, {kDynamic, kDynamic, 3}},
      {"boxes", DType::f32, {kDynamic, 4}},
      {"labels", DType::i64, {kDynamic}},
      {"masks", DType::u8, are_drawn ? Shape{kDynamic} : Shape{kDynamic, kHeight, kWidth}}};
  transforms.push_back(
      pad({.field = "boxes", .to = kMost, .lengths = "count", .also = {"labels", "masks"}}));
  const Pixels image(kWidth, kHeight, 3);
  std::vector<float> whole;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    whole.insert(whole.end(), {0, 0, float{kWidth}, float{kHeight}});
    labels.push_back(10 + i);
  }
  const std::array<ConstTensorView, 4> record{
      source::values(image.data, {kHeight, kWidth, 3}),
      source::values(boxes == nullptr ? whole : *boxes, {count, 4}),
      source::values(labels, {count}), masks};
  const test::ChainRun chain(fields, std::move(transforms), record, number);
  Made made;
  made.fault = chain.fault();
  if (!made.fault.empty()) return made;
  const std::size_t rows = chain.count("count");
  made.labels = chain.values<std::int64_t>("labels", rows);
  const std::size_t pixels = chain.view("masks").byte_size() / kMost;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto* const mask = chain.view("masks").data<std::uint8_t>() + row * pixels;
    made.masks.emplace_back(mask, mask + pixels);
  }
  return made;
}

ConstTensorView text_view(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), DType::u8, {std::ssize(text)}};
}

Made draw(const std::string& text, std::int64_t count,
          const Crop& crop = resize_to({kHeight, kWidth}), float flip = 0,
          std::uint64_t number = 0) {
  return run({crop_image({.crop = crop, .flip = flip, .instances = all_fields()})}, text_view(text),
             count, number);
}

std::string shown(const Mask& mask, int width = kWidth) {
  std::string text;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    text += mask[i] == 0 ? '.' : mask[i] == 1 ? '#' : '?';
    if ((i + 1) % static_cast<std::size_t>(width) == 0) text += '\n';
  }
  return text;
}

// ---- the same by another way: each step along the outline on a grid five times as fine, as cocoapi's rleFrPoly describes it ----

Mask of_polygon(const std::vector<double>& points) {
  std::vector<std::array<int, 2>> outline;
  const std::size_t corners = points.size() / 2;
  const auto fine = [](double number) { return static_cast<int>(5 * number + 0.5); };
  for (std::size_t i = 0; i < corners; ++i) {
    const std::size_t next = (i + 1) % corners;
    std::array<int, 2> a{fine(points[2 * i]), fine(points[2 * i + 1])};
    std::array<int, 2> b{fine(points[2 * next]), fine(points[2 * next + 1])};
    const std::size_t longer = std::abs(b[0] - a[0]) >= std::abs(b[1] - a[1]) ? 0 : 1;
    const bool turned = a[longer] > b[longer];
    if (turned) std::swap(a, b);
    const int steps = b[longer] - a[longer];
    const double slope =
        steps == 0 ? 0 : static_cast<double>(b[1 - longer] - a[1 - longer]) / steps;
    std::vector<std::array<int, 2>> edge;
    for (int step = 0; step <= steps; ++step) {
      std::array<int, 2> at{};
      at[longer] = a[longer] + step;
      at[1 - longer] = static_cast<int>(a[1 - longer] + slope * step + 0.5);
      edge.push_back(at);
    }
    if (turned) std::ranges::reverse(edge);
    outline.insert(outline.end(), edge.begin(), edge.end());
  }
  std::vector<bool> changes(std::size_t{kHeight} * kWidth + 1);  // column by column
  for (std::size_t i = 1; i < outline.size(); ++i) {
    if (outline[i][0] == outline[i - 1][0]) continue;
    const int x = std::min(outline[i][0], outline[i - 1][0]);
    if (x < 0 || x % 5 != 2 || x / 5 >= kWidth) continue;
    const double y = (std::min(outline[i][1], outline[i - 1][1]) + 0.5) / 5 - 0.5;
    const int row = static_cast<int>(std::ceil(std::clamp(y, 0.0, double{kHeight})));
    changes[static_cast<std::size_t>(x / 5 * kHeight + row)].flip();
  }
  Mask mask(std::size_t{kHeight} * kWidth);
  bool inside = false;
  for (int x = 0; x < kWidth; ++x)
    for (int y = 0; y < kHeight; ++y) {
      inside ^= changes[static_cast<std::size_t>(x * kHeight + y)];
      mask[static_cast<std::size_t>(y * kWidth + x)] = inside ? 1 : 0;
    }
  return mask;
}

std::string text_of(const std::vector<double>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

std::vector<double> random_polygon(std::mt19937_64& random, double beyond) {
  std::uniform_real_distribution<double> x(-beyond, kWidth + beyond), y(-beyond, kHeight + beyond);
  std::vector<double> points;
  for (auto corners = std::uniform_int_distribution(3, 12)(random); corners > 0; --corners) {
    points.push_back(x(random));
    points.push_back(y(random));
    // Annotators' programs write whole numbers and tenths.
    if (random() % 3 == 0)
      for (std::size_t i = points.size() - 2; i < points.size(); ++i)
        points[i] = std::round(points[i] * 10) / 10;
    if (random() % 3 == 0)
      for (std::size_t i = points.size() - 2; i < points.size(); ++i)
        points[i] = std::round(points[i]);
  }
  return points;
}

// The runs of a mask, and the same compressed.
std::string runs_of(const Mask& mask, bool compressed) {
  std::vector<std::int64_t> runs;
  std::uint8_t of = 0;
  std::int64_t length = 0;
  for (int x = 0; x < kWidth; ++x)
    for (int y = 0; y < kHeight; ++y) {
      const std::uint8_t value = mask[static_cast<std::size_t>(y * kWidth + x)];
      if (value != of) {
        runs.push_back(std::exchange(length, 0));
        of = value;
      }
      ++length;
    }
  runs.push_back(length);
  if (!compressed)
    return fmt::format(R"({{"counts": [{}], "size": [{}, {}]}})", fmt::join(runs, ", "), kHeight,
                       kWidth);
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::int64_t rest = i > 2 ? runs[i] - runs[i - 2] : runs[i];
    for (bool more = true; more;) {
      std::int64_t bits = rest & 31;
      rest >>= 5;
      more = (bits & 16) != 0 ? rest != -1 : rest != 0;
      if (more) bits |= 32;
      const auto character = static_cast<char>(bits + '0');
      if (character == '\\') text += '\\';
      text += character;
    }
  }
  return fmt::format(R"({{"size":[{},{}],"counts":"{}"}})", kHeight, kWidth, text);
}

TEST(Segmentations, PolygonsHaveThePixelsOfCoco) {
  // A square from 2 to 5 across and 1 to 3 down: the middles of 3 x 2 pixels lie in it.
  const Made square = draw("[[[2,1,5,1,5,3,2,3]]]", 1);
  EXPECT_EQ(square.fault, "");
  ASSERT_EQ(square.masks.size(), 1U);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      EXPECT_EQ(square.masks[0][static_cast<std::size_t>(y * kWidth + x)],
                x >= 2 && x < 5 && y >= 1 && y < 3 ? 1 : 0)
          << x << ' ' << y;
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    const std::vector<double> points = random_polygon(random, i % 4 == 0 ? 200 : i % 4);
    const Made made = draw('[' + ('[' + text_of(points) + ']') + ']', 1);
    ASSERT_EQ(made.fault, "") << text_of(points);
    ASSERT_EQ(shown(made.masks.at(0)), shown(of_polygon(points))) << text_of(points);
  }
}

TEST(Segmentations, SeveralPolygonsAreOneMask) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    Mask all(std::size_t{kHeight} * kWidth);
    for (int k = 0; k < 1 + i % 4; ++k) {
      const std::vector<double> points = random_polygon(random, 3);
      text += (k == 0 ? "" : ", ") + text_of(points);
      const Mask one = of_polygon(points);
      for (std::size_t pixel = 0; pixel < all.size(); ++pixel) all[pixel] |= one[pixel];
    }
    const Made made = draw(fmt::format(" [ [ {0} ] ,[],[{0}]\n]", text), 3);
    ASSERT_EQ(made.fault, "");
    ASSERT_EQ(shown(made.masks.at(0)), shown(all));
    ASSERT_EQ(shown(made.masks.at(1)), shown(Mask(all.size())));
    ASSERT_EQ(made.masks.at(2), all);
  }
}

TEST(Segmentations, RunsAreWhatTheyCount) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    Mask mask(std::size_t{kHeight} * kWidth);
    // From almost empty to almost full, in runs of a pixel and of several columns.
    const int share = 1 + i % 9;
    bool inside = i % 2 == 0;
    for (int x = 0; x < kWidth; ++x)
      for (int y = 0; y < kHeight; ++y) {
        if (std::cmp_less(random() % 300, i)) inside = std::cmp_less(random() % 10, share);
        mask[static_cast<std::size_t>(y * kWidth + x)] = inside ? 1 : 0;
      }
    const Made made = draw(fmt::format("[{},{}]", runs_of(mask, false), runs_of(mask, true)), 2);
    ASSERT_EQ(made.fault, "") << runs_of(mask, true);
    ASSERT_EQ(shown(made.masks.at(0)), shown(mask)) << i;
    ASSERT_EQ(shown(made.masks.at(1)), shown(mask)) << i;
  }
}

// A mask that is drawn where it is seen is one that was drawn as a whole and then cropped.
TEST(Segmentations, ACropOfADrawingIsADrawingOfACrop) {
  const std::array crops{resize_to({50, 20}),
                         resize_to({9, 70}),
                         letterbox({40, 40}),
                         letterbox({17, 64}),
                         center_crop({12, 9}, {.resize = 15}),
                         random_resized_crop({16, 24}, {.scale = {0.05, 1}}),
                         random_crop(16, {.padding = 7}),
                         scale_jitter({30, 44}, {.scale = {0.2, 2}})};
  std::mt19937_64 random(8);
  int with_pixels = 0;
  for (std::uint64_t number = 0; number < 400; ++number) {
    const std::vector<double> one = random_polygon(random, 2);
    const std::vector<double> other = random_polygon(random, 2);
    const std::string text = fmt::format("[[{0},{1}],[{1}],{2}]", text_of(one), text_of(other),
                                         runs_of(of_polygon(one), number % 2 == 0));
    const Made whole = draw(text, 3);
    ASSERT_EQ(whole.masks.size(), 3U);
    std::vector<std::uint8_t> all;
    for (const Mask& mask : whole.masks) all.insert(all.end(), mask.begin(), mask.end());
    const Crop& crop = crops[number % crops.size()];
    const float flip = number % 3 == 0 ? 1 : 0;
    const Made drawn = draw(text, 3, crop, flip, number);
    const Made cropped = run({crop_image({.crop = crop, .flip = flip, .instances = all_fields()})},
                             source::values(all, {3, kHeight, kWidth}), 3, number);
    ASSERT_EQ(drawn.fault + cropped.fault, "");
    ASSERT_EQ(drawn.labels, cropped.labels);
    for (std::size_t i = 0; i < drawn.masks.size(); ++i) {
      ASSERT_EQ(shown(drawn.masks[i], crop.size().width),
                shown(cropped.masks[i], crop.size().width))
          << crop.to_string() << ' ' << number;
      with_pixels += std::ranges::count(drawn.masks[i], 1) > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(with_pixels, 600);
}

TEST(Segmentations, AreNormalizedAsTheirBoxesAre) {
  const std::vector<double> points{0.25, 0.125, 0.75, 0.25, 0.5, 0.875};
  std::vector<double> in_pixels = points;
  for (std::size_t i = 0; i < points.size(); ++i) in_pixels[i] *= i % 2 == 0 ? kWidth : kHeight;
  const std::vector<float> box{0, 0, 1, 1};
  const std::string text = "[[" + text_of(points) + "]]";
  const Made made =
      run({crop_image({.crop = resize_to({kHeight, kWidth}), .instances = all_fields(true)})},
          text_view(text), 1, 0, &box);
  ASSERT_EQ(made.fault, "");
  EXPECT_EQ(shown(made.masks.at(0)), shown(of_polygon(in_pixels)));
  const std::string far = "[[" + text_of(in_pixels) + "]]";
  EXPECT_THAT(
      run({crop_image({.crop = resize_to({kHeight, kWidth}), .instances = all_fields(true)})},
          text_view(far), 1, 0, &box)
          .fault,
      HasSubstr("is in pixels, and normalized = true means fractions"));
}

TEST(Segmentations, GoWithTheRowsOfTheirInstances) {
  // Of three instances the second alone is in the middle, of 8 columns.
  const std::vector<float> boxes{0, 0, 8, 10, 13, 0, 17, 6, 22, 2, 29, 9};
  const std::string text = "[[[0,0,8,0,8,9]],[[13,0,17,0,17,6,13,6]],[[22,2,29,2,29,9]]]";
  const Made made =
      run({crop_image(
               {.crop = center_crop({kHeight, 8}, {.resize = kHeight}), .instances = all_fields()}),
           augment_image({.operations = {vertical_flip(1)}, .instances = all_fields()})},
          text_view(text), 3, 0, &boxes);
  EXPECT_EQ(made.fault, "");
  EXPECT_THAT(made.labels, ElementsAre(11));
  ASSERT_EQ(made.masks.size(), 1U);
  const Mask& mask = made.masks.front();
  EXPECT_EQ(std::ranges::count(mask, 1), 4 * 6);
  EXPECT_EQ(std::count(mask.end() - 6 * 8, mask.end(), 1), 4 * 6) << "below";
}

// The numbers of a mask that belongs to the whole image are moved by the same steps.
TEST(Segmentations, MoveWithTheAugmentationsOfTheirImage) {
  std::mt19937_64 random(9);
  const std::vector<Augmentation> operations{
      rotate({-40, 40}), flip(0.5), affine({.degrees = {-20, 20}, .scale = {0.7, 1.5}}),
      perspective(0.5), color_jitter({.brightness = {0.5, 1}})};
  int with_pixels = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Mask first = of_polygon(random_polygon(random, 2));
    Mask both = first;
    const Mask second = of_polygon(random_polygon(random, 2));
    both.insert(both.end(), second.begin(), second.end());
    const auto of_instances =
        run({crop_image({.crop = resize_to({kHeight, kWidth}), .instances = all_fields()}),
             augment_image({.operations = operations, .instances = all_fields()})},
            source::values(both, {2, kHeight, kWidth}), 2, number);
    ASSERT_EQ(of_instances.fault, "");

    const std::vector<FieldSpec> fields{{"image", DType::u8, {kHeight, kWidth, 3}},
                                        {"one", DType::u8, {kHeight, kWidth}},
                                        {"other", DType::u8, {kHeight, kWidth}}};
    const Pixels image(kWidth, kHeight, 3);
    const std::array<ConstTensorView, 3> record{source::values(image.data, {kHeight, kWidth, 3}),
                                                source::values(first, {kHeight, kWidth}),
                                                source::values(second, {kHeight, kWidth})};
    const test::ChainRun chain(
        fields,
        {crop_image({.crop = resize_to({kHeight, kWidth}), .masks = {"one", "other"}}),
         augment_image({.operations = operations, .masks = {"one", "other"}, .mask_fill = 0})},
        record, number);
    ASSERT_EQ(chain.fault(), "");
    const std::array expected{chain.all<std::uint8_t>("one"), chain.all<std::uint8_t>("other")};
    for (std::size_t i = 0; i < of_instances.masks.size(); ++i) {
      ASSERT_EQ(shown(of_instances.masks[i]),
                shown(expected[static_cast<std::size_t>(of_instances.labels[i]) - 10]))
          << number;
      with_pixels += std::ranges::count(of_instances.masks[i], 1) > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(with_pixels, 300);
}

TEST(Segmentations, AFaultSaysWhichAndWhy) {
  const auto fault_of = [](const std::string& text, std::int64_t count = 1) {
    return draw(text, count).fault;
  };
  EXPECT_THAT(fault_of("[[[1,2,3,4]]]"),
              HasSubstr("the segmentation of instance 0 has no polygon of three points or more"));
  EXPECT_EQ(fault_of("[[[1,2,3,4],[1,2,9,4,3,11],[5,6],[]]]"), "") << "as pycocotools does";
  EXPECT_THAT(fault_of("[[],[[1,2,3,4,5,6,7]]]", 2),
              HasSubstr("instance 1 has a polygon of 7 numbers, and a point has two"));
  for (const char* wrong :
       {"", "[", "[]x", "[[[1,2,3,4,5,6]]", "[[[1,2,3,4,5,6,]]]", "[[[1,2,3,4,5,\"6\"]]]", "[5]",
        "[null]", "[[1,2,3,4,5,6]]", R"([{"size":[23,31],"counts":"\q"}])",
        R"([{"size":[23,31],"counts":[713])", R"([{"size":[23,31],"counts":"})"})
    EXPECT_THAT(fault_of(wrong), HasSubstr("is not as COCO writes it")) << wrong;
  for (const auto& [wrong, why] : std::vector<std::pair<std::string, std::string>>{
           {R"([[[1,2,3,4,5,NaN]]])", "has the coordinate nan"},
           {R"([[[1,2,3,4,5,1e300]]])", "has the coordinate 1e+300"},
           {R"([{"size":[23,31],"counts":[712]}])",
            "has runs of 712 pixels, and an image of 23x31"},
           {R"([{"size":[23,31],"counts":[714]}])", "has runs of 714 pixels"},
           {R"([{"size":[23,31],"counts":[-1,714]}])", "has a run of -1 pixels"},
           {R"([{"size":[23,31],"counts":[5000000000]}])", "has a run of 5000000000 pixels"},
           {R"([{"size":[23,-31],"counts":[713]}])", "has -31 in the size"},
           {R"([[[1,2,3,4,5,1e400]]])", "has the coordinate inf"},
           {R"([[[0.1,0.2,0.3,0.4,0.5,1e-400]]])", "all of them lie in the first pixel"},
           {R"([{"size":[23,31],"counts":[712.5]}])", "has 712.5 for a number of pixels"},
           {R"([{"size":23,"counts":[713]}])", "has a size that is not height and width"},
           {R"([{"size":[23],"counts":[713]}])", "has a size that is not height and width"},
           {R"([{"size":[23,31,3],"counts":[713]}])", "has a size that is not height and width"},
           {R"([{"size":[23,31]}])", "has no size, or no counts"},
           {R"([{"size":[23,31],"size":[23,31],"counts":[713]}])", "has \"size\", and runs have"},
           {R"([{"size":[23,31],"counts":[713],"x":1}])", "has \"x\", and runs have"},
           {R"([{"size":[23,31],"counts":"~"}])", "no compressed runs"},
           {R"([{"size":[23,31],"counts":"oooooooooo"}])", "no compressed runs"},
           {R"([{"size":[23,31],"counts":"o"}])", "end too early"}})
    EXPECT_THAT(fault_of(wrong), HasSubstr(why)) << wrong;
  EXPECT_EQ(fault_of(R"([{"size":[23.0,31.0],"counts":[713.0]}])"), "");
  EXPECT_THAT(fault_of(R"([{"size":[23,31],"counts":"\u0031\u0031"}])"),
              HasSubstr("has runs of 2 pixels"));
  EXPECT_THAT(fault_of(R"([{"size":[23,31],"counts":"\u0060"}])"), HasSubstr("end too early"));
  EXPECT_THAT(fault_of(R"([{"size":[23,31],"counts":"\u00e4"}])"), HasSubstr("is not as COCO"));
  EXPECT_THAT(fault_of(R"([{"size":[31,23],"counts":[713]}])"),
              HasSubstr("it has 31x23 pixels (height x width), and its image 23x31"));
  EXPECT_THAT(fault_of("[[],[]]", 1), HasSubstr("there are 1 rows, and 2 of 'masks'"));
}

TEST(Segmentations, WhatCannotBeBoundSaysSo) {
  const auto bind = [](const TransformPtr& transform, const FieldSpec& masks) {
    const std::vector<FieldSpec> fields{{"image", DType::u8, {kHeight, kWidth, 3}},
                                        {"boxes", DType::f32, {kDynamic, 4}},
                                        {"labels", DType::i64, {kDynamic}},
                                        masks};
    (void)transform->bind(fields);
  };
  const TransformPtr crop = crop_image({.crop = resize_to(20), .instances = all_fields()});
  const TransformPtr turn =
      augment_image({.operations = {rotate({5, 5})}, .instances = all_fields()});
  for (const FieldSpec& wrong :
       {FieldSpec{"masks", DType::i32, {kDynamic, 5, 5}}, FieldSpec{"masks", DType::u8, {3, 5, 5}},
        FieldSpec{"masks", DType::u8, {kDynamic, 5}}})
    EXPECT_THAT([&] { bind(crop, wrong); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(
                    "masks are segmentations, u8 [?], or u8 or bool [?,H,W]; found masks")))
        << wrong.to_string();
  bind(turn, {"masks", DType::boolean, {kDynamic, kHeight, kWidth}});
  for (const FieldSpec& wrong :
       {FieldSpec{"masks", DType::u8, {kDynamic}}, FieldSpec{"masks", DType::u8, {kDynamic, 5, 5}}})
    EXPECT_THAT([&] { bind(turn, wrong); },
                ThrowsMessage<std::invalid_argument>(
                    HasSubstr("of the image's height and width, which decode_image makes of "
                              "segmentations")))
        << wrong.to_string();
  EXPECT_THAT(
      [] {
        (void)crop_image({.crop = resize_to(20),
                          .instances = Instances{.keypoints = "keypoints", .masks = "masks"}});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("leave out the masks 'masks'")));
}

}  // namespace
}  // namespace penstock::of_segmentations
