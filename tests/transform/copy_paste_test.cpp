// Copy-Paste: instances of one image on another, and what is left of those below.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/plan/dataset.hpp>
#include <penstock/transform/decode_image.hpp>

#include "tests/jpeg/images.hpp"
#include "tests/transform/chain_run.hpp"

namespace penstock::of_copy_paste {
namespace {

using namespace testing_images;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

constexpr int kHeight = 40;
constexpr int kWidth = 50;
constexpr std::int64_t kMost = 8;
constexpr std::uint8_t kOwn = 60;
constexpr std::uint8_t kOther = 200;

using Corners = std::array<int, 4>;  // left, top, right, bottom

// An image of one level whose instances are boxes.
struct Given {
  Bytes bytes{};
  std::vector<float> boxes{};
  std::vector<float> keypoints{};  // the upper left corner of each, and its middle
  std::vector<std::int64_t> labels{};
  std::string masks{};

  static Given of(std::uint8_t level, const std::vector<Corners>& all, std::int64_t first) {
    Given given{.masks = "["};
    Pixels pixels(kWidth, kHeight, 3);
    std::ranges::fill(pixels.data, level);
    given.bytes = png_of(pixels);
    for (const auto& [left, top, right, bottom] : all) {
      for (const int edge : {left, top, right, bottom})
        given.boxes.push_back(static_cast<float>(edge));
      for (const int number : {left, top, 2, (left + right) / 2, (top + bottom) / 2, 2})
        given.keypoints.push_back(static_cast<float>(number));
      given.masks += fmt::format("{0}[[{1},{2},{3},{2},{3},{4},{1},{4}]]",
                                 given.labels.empty() ? "" : ",", left, top, right, bottom);
      given.labels.push_back(first + std::ssize(given.labels));
    }
    given.masks += "]";
    return given;
  }
};

struct Made {
  std::vector<std::uint8_t> image;
  std::vector<std::vector<std::uint8_t>> masks;
  std::vector<float> boxes, keypoints;
  std::vector<std::int64_t> labels;
  std::string fault;
};

std::vector<FieldSpec> specs(std::size_t partners = 1) {
  std::vector<FieldSpec> all;
  for (std::size_t k = 0; k <= partners; ++k) {
    const std::string end = k == 0 ? "" : "_" + std::to_string(k);
    all.push_back({"image" + end, DType::u8, {kDynamic}});
    all.push_back({"boxes" + end, DType::f32, {kDynamic, 4}});
    all.push_back({"keypoints" + end, DType::f32, {kDynamic, 2, 3}});
    all.push_back({"labels" + end, DType::i64, {kDynamic}});
    all.push_back({"masks" + end, DType::u8, {kDynamic}});
  }
  if (partners > 0) all.push_back({"partners", DType::i64, {static_cast<std::int64_t>(partners)}});
  return all;
}

Instances all_fields() {
  return {.boxes = "boxes", .keypoints = "keypoints", .fields = {"labels"}, .masks = "masks"};
}

// Of a sample and its partner or, where there is none, of a sample alone.
Made run(const DecodeImageOptions& options, const Given& own, const Given* other,
         std::uint64_t number = 0, std::int64_t partner = 5) {
  std::vector<ConstTensorView> record;
  for (const Given* one : {&own, other}) {
    if (one == nullptr) continue;
    const std::int64_t rows = std::ssize(one->labels);
    record.emplace_back(one->bytes.data(), DType::u8, Shape{std::ssize(one->bytes)});
    record.push_back(source::values(one->boxes, {rows, 4}));
    record.push_back(source::values(one->keypoints, {rows, 2, 3}));
    record.push_back(source::values(one->labels, {rows}));
    record.emplace_back(reinterpret_cast<const std::byte*>(one->masks.data()), DType::u8,
                        Shape{std::ssize(one->masks)});
  }
  const std::vector<std::int64_t> partners{partner};
  if (other != nullptr) record.push_back(source::values(partners));
  const test::ChainRun chain(
      specs(other == nullptr ? 0 : 1),
      {decode_image(options), pad({.field = "boxes",
                                   .to = kMost,
                                   .lengths = "count",
                                   .also = {"keypoints", "labels", "masks"}})},
      record, number);
  Made made;
  made.fault = chain.fault();
  if (!made.fault.empty()) return made;
  const std::size_t count = chain.count("count");
  made.image = chain.all<std::uint8_t>("image");
  made.boxes = chain.values<float>("boxes", 4 * count);
  made.keypoints = chain.values<float>("keypoints", 6 * count);
  made.labels = chain.values<std::int64_t>("labels", count);
  const std::size_t pixels = chain.view("masks").byte_size() / kMost;
  for (std::size_t row = 0; row < count; ++row) {
    const auto* const mask = chain.view("masks").data<std::uint8_t>() + row * pixels;
    made.masks.emplace_back(mask, mask + pixels);
  }
  return made;
}

Made run(const DecodeImageOptions& options, const Given& own, const Given& other,
         std::uint64_t number = 0, std::int64_t partner = 5) {
  return run(options, own, &other, number, partner);
}

// At its own size, all of what can be pasted.
DecodeImageOptions whole(double share = 1, Instances instances = all_fields()) {
  return {.crop = copy_paste({kHeight, kWidth}, {.scale = {1, 1}, .share = share}),
          .instances = std::move(instances)};
}

// The pixels that lie in one of the first boxes and in none of the others.
std::vector<std::uint8_t> mask_of(const Corners& box, const std::vector<Corners>& above = {}) {
  const auto is_in = [](const Corners& at, int x, int y) {
    return x >= at[0] && x < at[2] && y >= at[1] && y < at[3];
  };
  std::vector<std::uint8_t> mask(std::size_t{kHeight} * kWidth);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      mask[static_cast<std::size_t>(y * kWidth + x)] =
          is_in(box, x, y) &&
                  std::ranges::none_of(above, [&](const Corners& at) { return is_in(at, x, y); })
              ? 1
              : 0;
  return mask;
}

TEST(CopyPaste, PutsTheOtherInstancesAboveItsOwn) {
  const Corners cut{5, 5, 25, 15}, covered{30, 30, 35, 38}, free{40, 2, 48, 9};
  const Corners across{15, 0, 30, 20}, above{28, 28, 44, 40};
  const Made made = run(whole(), Given::of(kOwn, {cut, covered, free}, 10),
                        Given::of(kOther, {across, above}, 20));
  ASSERT_EQ(made.fault, "");
  EXPECT_THAT(made.labels, ElementsAre(10, 12, 20, 21)) << "11 is covered";
  EXPECT_THAT(made.boxes, ElementsAre(5, 5, 15, 15,   // what is left of it
                                      40, 2, 48, 9,   //
                                      15, 0, 30, 20,  //
                                      28, 28, 44, 40));
  ASSERT_EQ(made.masks.size(), 4U);
  EXPECT_EQ(made.masks[0], mask_of(cut, {across}));
  EXPECT_EQ(made.masks[1], mask_of(free));
  EXPECT_EQ(made.masks[2], mask_of(across));
  EXPECT_EQ(made.masks[3], mask_of(above));
  // The middle of the first is at 15, 10, below what is pasted.
  EXPECT_THAT(std::vector(made.keypoints.begin(), made.keypoints.begin() + 6),
              ElementsAre(5, 5, 2, 15, 10, 1));
  EXPECT_EQ(made.keypoints[6 * 2 + 2], 2) << "of one that is pasted";
  for (std::size_t i = 0; i < made.image.size(); ++i) {
    const bool is_pasted = made.masks[2][i / 3] != 0 || made.masks[3][i / 3] != 0;
    ASSERT_EQ(made.image[i], is_pasted ? kOther : kOwn) << i;
  }
}

TEST(CopyPaste, LimitsAreThoseOfWhatIsLeft) {
  const Corners cut{0, 0, 20, 10};
  const Given own = Given::of(kOwn, {cut}, 10);
  const auto labels = [&](int to, const Instances& instances) {
    return run(whole(1, instances), own, Given::of(kOther, {{0, 0, to, 10}}, 20)).labels;
  };
  Instances narrow = all_fields();
  narrow.min_size = 5;
  EXPECT_THAT(labels(15, narrow), ElementsAre(10, 20));
  EXPECT_THAT(labels(16, narrow), ElementsAre(20));
  Instances visible = all_fields();
  visible.min_visible = 0.5;
  EXPECT_THAT(labels(10, visible), ElementsAre(10, 20));
  EXPECT_THAT(labels(11, visible), ElementsAre(20));
}

TEST(CopyPaste, WithoutAPartnerIsScaleJitter) {
  const Given own = Given::of(kOwn, {{5, 5, 25, 15}, {30, 3, 38, 30}}, 10);
  const Given other = Given::of(kOther, {{15, 0, 30, 20}}, 20);
  for (std::uint64_t number = 0; number < 30; ++number) {
    DecodeImageOptions options{
        .crop = copy_paste({33, 44}, {.scale = {0.4, 1.5}, .fill = Color(9)}),
        .flip = 0.5,
        .instances = all_fields()};
    const Made made = run(options, own, other, number, -1);
    options.crop = scale_jitter({33, 44}, {.scale = {0.4, 1.5}, .fill = Color(9)});
    const Made expected = run(options, own, nullptr, number);
    ASSERT_EQ(made.fault + expected.fault, "");
    ASSERT_EQ(made.image, expected.image);
    ASSERT_EQ(made.boxes, expected.boxes);
    ASSERT_EQ(made.masks, expected.masks);
  }
}

TEST(CopyPaste, EachInstanceIsPastedWithTheShare) {
  const Given own = Given::of(kOwn, {}, 10);
  const Given other = Given::of(kOther, {{0, 0, 9, 9}, {10, 0, 19, 9}, {20, 0, 29, 9}}, 20);
  std::array<int, 3> pasted{};
  constexpr int kSamples = 1000;
  for (std::uint64_t number = 0; number < kSamples; ++number) {
    const Made made = run(whole(0.25), own, other, number);
    for (const std::int64_t label : made.labels) ++pasted[static_cast<std::size_t>(label - 20)];
    ASSERT_EQ(run(whole(0.25), own, other, number).labels, made.labels);
  }
  for (const int count : pasted) EXPECT_NEAR(count, 250, 60);
  EXPECT_THAT(run(whole(0), own, other).labels, IsEmpty());
}

TEST(CopyPaste, BothImagesAreDrawnByThemselves) {
  const Given own = Given::of(kOwn, {{0, 0, kWidth, kHeight}}, 10);
  const Given other = Given::of(kOther, {{0, 0, kWidth, kHeight}}, 20);
  int unlike = 0;
  for (std::uint64_t number = 0; number < 40; ++number) {
    const Made made = run({.crop = copy_paste({kHeight, kWidth}, {.scale = {0.2, 0.9}, .share = 1}),
                           .instances = all_fields()},
                          own, other, number);
    ASSERT_EQ(made.fault, "");
    ASSERT_THAT(made.labels, testing::AnyOf(ElementsAre(10, 20), ElementsAre(20)));
    unlike += made.labels.size() == 2 ? 1 : 0;
  }
  EXPECT_GT(unlike, 8) << "its own is larger in some";
  EXPECT_LT(unlike, 32) << "and is covered in others";
}

TEST(CopyPaste, AFaultOfThePartnerIsItsOwn) {
  Given other = Given::of(kOther, {{0, 0, 5, 5}}, 20);
  other.masks = "[[[0,0,5]]]";
  EXPECT_THAT(run(whole(), Given::of(kOwn, {{0, 0, 5, 5}}, 10), other).fault,
              HasSubstr("partner 1 of it, record 5: 'masks': the segmentation of instance 0 has a "
                        "polygon of 3 numbers"));
}

TEST(CopyPaste, WhatItNeedsIsSaid) {
  const auto refuses = [](const auto& function, const std::string& what) {
    EXPECT_THAT(function, ThrowsMessage<std::invalid_argument>(HasSubstr(what)));
  };
  refuses([] { (void)copy_paste(8, {.share = 1.5}); },
          "copy_paste: share is a probability from 0 to 1, found 1.5");
  refuses([] { (void)copy_paste(8, {.scale = {2, 1}}); }, "copy_paste: scale");
  refuses([] { (void)decode_image({.crop = copy_paste(8)}); },
          "copy_paste(size=8) pastes instances by their masks: name these in the option instances");
  refuses(
      [] {
        (void)decode_image({.crop = copy_paste(8),
                            .instances = Instances{.boxes = "boxes", .fields = {"labels"}}});
      },
      "pastes instances by their masks");
  refuses([] { (void)crop_image({.crop = copy_paste(8), .instances = all_fields()}); },
          "decode_image takes it");
  refuses(
      [] {
        const std::vector<FieldSpec> alone = specs(0);
        (void)decode_image(whole())->bind(alone);
      },
      "is made of a sample and 1 more: put partners(1) behind the source");
}

}  // namespace
}  // namespace penstock::of_copy_paste
