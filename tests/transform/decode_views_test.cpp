// Several views of one image: each is what decode_image makes of it.
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/transform/decode_image.hpp>

#include "src/transform/catalog.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock::views_test {
namespace {

using namespace testing_images;
using testing::HasSubstr;
using testing::ThrowsMessage;

Random random_for(std::uint64_t number, std::uint16_t stream = 0) {
  return Random(RandomKey(7, 1), SampleId{.number = number}, stream);
}

struct Made {
  std::vector<std::vector<std::byte>> fields;
  std::string fault;  // empty on success

  friend bool operator==(const Made&, const Made&) = default;
};

Made run(const TransformPtr& transform, const Bytes& bytes, Random random,
         std::byte unwritten = std::byte{0xA5}) {
  const std::vector<FieldSpec> fields{{"image", DType::u8, {kDynamic}}};
  const Binding binding = transform->bind(fields);
  Made made;
  for (const FieldSpec& output : binding.outputs)
    made.fields.emplace_back(output.bytes(), unwritten);
  std::vector<TensorView> out;
  for (std::size_t i = 0; i < made.fields.size(); ++i)
    out.emplace_back(made.fields[i].data(), binding.outputs[i].dtype, binding.outputs[i].shape);
  const ConstTensorView in(bytes.data(), DType::u8, {std::ssize(bytes)});
  if (auto done = transform->apply(std::span(&in, 1), out, random); !done)
    made.fault = done.fault().reason;
  return made;
}

// SimCLR's and DINO's crops in little, a whole image, and crops with fill.
std::vector<ImageView> views() {
  return {{.field = "global",
           .crop = random_resized_crop({40, 48}, {.scale = {0.4, 1}}),
           .count = 2,
           .flip = 0.5F,
           .filter = ResizeFilter::bicubic,
           .geometry = "global_geometry"},
          {.field = "local",
           .crop = random_resized_crop(16, {.scale = {0.05, 0.4}}),
           .count = 8,
           .flip = 0.5F},
          {.field = "eval", .crop = center_crop(24, {.resize = 30}), .geometry = "eval_geometry"},
          {.field = "boxed", .crop = letterbox({31, 17}, {.fill = {1, 2, 3}}), .count = 1},
          {.field = "padded",
           .crop = random_crop({20, 28}, {.padding = 7, .fill = 9, .pad_if_needed = true}),
           .count = 3,
           .flip = 0.5F},
          {.field = "corners", .crop = ten_crops(16, {.resize = 20})},
          {.field = "jittered", .crop = scale_jitter(24), .count = 3, .flip = 0.5F}};
}

// The same by decode_image, with the sequences of random numbers that the header promises.
Made one_by_one(const Bytes& bytes, const std::vector<ImageView>& views, std::uint64_t number,
                DecodeImageOptions options = {}) {
  Made all;
  for (std::size_t k = 0; k < views.size(); ++k) {
    const ImageView& view = views[k];
    options.crop = view.crop;
    options.flip = view.flip;
    options.filter = view.filter;
    options.geometry = view.geometry;
    const TransformPtr transform = decode_image(options);
    if (view.crop.parts() != 0) {  // one field of several crops there, too
      const Made made =
          run(transform, bytes, random_for(number, static_cast<std::uint16_t>(256 * k)));
      for (const auto& field : made.fields) all.fields.push_back(field);
      continue;
    }
    std::vector<std::vector<std::byte>> fields(view.geometry.empty() ? 1 : 2);
    for (int i = 0; i < std::max(view.count, 1); ++i) {
      const auto stream = static_cast<std::uint16_t>(256 * k + static_cast<std::size_t>(i));
      const Made made = run(transform, bytes, random_for(number, stream));
      if (!made.fault.empty()) return {{}, made.fault};
      for (std::size_t field = 0; field < fields.size(); ++field)
        fields[field].insert(fields[field].end(), made.fields[field].begin(),
                             made.fields[field].end());
    }
    for (auto& field : fields) all.fields.push_back(std::move(field));
  }
  return all;
}

std::vector<std::pair<std::string, Bytes>> files() {
  std::vector<std::pair<std::string, Bytes>> all;
  const JpegKind photo{.sampling = {{2, 2}, {1, 1}, {1, 1}}};
  for (const auto& [width, height] :
       {std::pair(211, 157), std::pair(1, 1), std::pair(3, 500), std::pair(700, 2)}) {
    const std::string size = " " + std::to_string(width) + "x" + std::to_string(height);
    all.emplace_back("jpeg" + size, jpeg_of(picture(width, height), photo));
    all.emplace_back("png" + size, png_of(picture(width, height)));
  }
  for (int orientation = 1; orientation <= 8; ++orientation) {
    JpegKind turned = photo;
    turned.app1 = exif_app1(orientation);
    all.emplace_back("jpeg with orientation " + std::to_string(orientation),
                     jpeg_of(picture(131, 97), turned));
  }
  JpegKind progressive = photo;
  progressive.progressive = true;
  all.emplace_back("progressive", jpeg_of(picture(131, 97), progressive));
  all.emplace_back(
      "grey", jpeg_of(picture(131, 97, 1),
                      {.input = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .sampling = {{1, 1}}}));
  all.emplace_back("cmyk", jpeg_of(picture(131, 97, 4), {.input = JCS_CMYK, .stored = JCS_CMYK}));
  all.emplace_back("restarts", jpeg_of(picture(131, 97), {.restart = 2}));
  all.emplace_back("rgba png", png_of(picture(131, 97, 4)));
  all.emplace_back("webp", webp_of(picture(131, 97), true));
  return all;
}

TEST(DecodeViews, MakesThePixelsOfDecodeImageBitByBit) {
  const auto index = std::make_shared<MemoryJpegIndex>();
  for (const auto& [name, bytes] : files()) {
    SCOPED_TRACE(name);
    for (std::uint64_t number = 0; number < 6; ++number) {
      const Made expected = one_by_one(bytes, views(), number);
      ASSERT_EQ(expected.fault, "");
      ASSERT_EQ(run(decode_views({.views = views()}), bytes, random_for(number)), expected);
      // With an index that is built, and then used.
      for (int pass = 0; pass < 2; ++pass)
        ASSERT_EQ(run(decode_views({.views = views(), .index = index}), bytes, random_for(number)),
                  expected);
    }
    for (const JpegDecoder decoder : {JpegDecoder::fast, JpegDecoder::libjpeg})
      EXPECT_EQ(run(decode_views({.views = views(), .decoder = decoder}), bytes, random_for(9)),
                one_by_one(bytes, views(), 9, {.decoder = decoder}));
    EXPECT_EQ(run(decode_views({.views = views(), .exif = false, .background = Color(1, 2, 3)}),
                  bytes, random_for(9)),
              one_by_one(bytes, views(), 9, {.exif = false, .background = Color(1, 2, 3)}));
  }
}

TEST(DecodeViews, FiveCropsAreAViewAndAnImageOfTheirOwn) {
  const Bytes bytes = jpeg_of(picture(150, 120), {.app1 = exif_app1(6)});
  for (const auto& [crop, resize] : {std::pair(five_crops({20, 24}, {.resize = 31}), 31),
                                     std::pair(ten_crops(16, {.resize = 33}), 33)}) {
    const Made alone = run(decode_image({.crop = crop, .geometry = "g"}), bytes, random_for(3));
    const Made views =
        run(decode_views({.views = {{.field = "eval", .crop = center_crop(24, {.resize = 30})},
                                    {.field = "image", .crop = crop, .geometry = "g"}}}),
            bytes, random_for(3));
    EXPECT_EQ(views.fields[1], alone.fields[0]);
    EXPECT_EQ(views.fields[2], alone.fields[1]);
    // The middle is center_crop's.
    const std::size_t size = alone.fields[0].size() / static_cast<std::size_t>(crop.parts());
    const Made middle = run(decode_image({.crop = center_crop(crop.size(), {.resize = resize})}),
                            bytes, random_for(3));
    EXPECT_TRUE(std::equal(middle.fields[0].begin(), middle.fields[0].end(),
                           alone.fields[0].begin() + static_cast<std::ptrdiff_t>(4 * size)));
  }
  const std::vector<FieldSpec> fields{{"image", DType::u8, {kDynamic}}};
  EXPECT_EQ(decode_image({.crop = five_crops({20, 24}), .channels = 1})->bind(fields).outputs,
            (std::vector<FieldSpec>{{"image", DType::u8, {5, 20, 24, 1}}}));
  EXPECT_THAT(
      [] { (void)decode_views({.views = {{.field = "a", .crop = five_crops(8), .count = 2}}}); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("makes 5 crops: leave out the count")));
  EXPECT_THAT([] { (void)decode_image({.crop = ten_crops(8), .masks = {"mask"}}); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("masks follow one crop, and ten_crops(size=8) makes 10")));
  EXPECT_THAT([] { (void)five_crops(257); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("five_crops: the shorter side")));
  Random random(RandomKey(7, 0), {});
  EXPECT_THAT([&] { (void)choose_placement(five_crops(8), 9, 9, random, 5); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("has no part 5")));
}

TEST(DecodeViews, WritesEveryByteWhatLayThereBefore) {
  const Bytes bytes = jpeg_of(picture(60, 90), {});
  const TransformPtr transform = decode_views({.views = views()});
  for (std::uint64_t number = 0; number < 20; ++number)
    ASSERT_EQ(run(transform, bytes, random_for(number), std::byte{0}),
              run(transform, bytes, random_for(number), std::byte{255}));
}

TEST(DecodeViews, DecodesAnImageOnce) {
  const auto stats = std::make_shared<JpegStats>();
  const TransformPtr transform = decode_views({.views = views(), .stats = stats});
  (void)run(transform, jpeg_of(picture(60, 90), {}), random_for(1));
  EXPECT_EQ(stats->counts().own, 1U);
}

TEST(DecodeViews, AViewOrACropMoreChangesNoOther) {
  const Bytes bytes = jpeg_of(picture(150, 120), {});
  std::vector<ImageView> more = views();
  const std::vector<ImageView> few(more.begin(), more.begin() + 2);
  more[0].count = 5;
  const Made before = run(decode_views({.views = few}), bytes, random_for(3));
  const Made after = run(decode_views({.views = more}), bytes, random_for(3));
  EXPECT_TRUE(
      std::equal(before.fields[0].begin(), before.fields[0].end(), after.fields[0].begin()));
  EXPECT_EQ(before.fields[2], after.fields[2]);
  // Crops of one view differ.
  const std::size_t half = before.fields[0].size() / 2;
  EXPECT_FALSE(std::equal(before.fields[0].begin(),
                          before.fields[0].begin() + static_cast<std::ptrdiff_t>(half),
                          before.fields[0].begin() + static_cast<std::ptrdiff_t>(half)));
}

TEST(DecodeViews, IsDecodeImageWhereThereIsOneView) {
  const Bytes bytes = jpeg_of(picture(150, 120), {.app1 = exif_app1(6)});
  const ImageView view{.field = "image", .crop = random_resized_crop(32), .flip = 0.5F};
  for (std::uint64_t number = 0; number < 20; ++number)
    ASSERT_EQ(run(decode_views({.views = {view}}), bytes, random_for(number)),
              run(decode_image({.crop = view.crop, .flip = 0.5F}), bytes, random_for(number)));
}

TEST(DecodeViews, ScalesAsFarAsEveryCropAllows) {
  const Bytes bytes = jpeg_of(picture(400, 300), {});
  const auto view = [](std::string name, int side) {
    return ImageView{.field = std::move(name), .crop = resize_to(side)};
  };
  const auto by_one = [&](int side) {
    const DecodeImageOptions options{.crop = resize_to(side), .scaled = true};
    return run(decode_image(options), bytes, random_for(0)).fields[0];
  };
  // Alone, 30 pixels are made at 1/8 and 70 at 1/4.
  const Made both = run(decode_views({.views = {view("a", 30), view("b", 70)}, .scaled = true}),
                        bytes, random_for(0));
  EXPECT_EQ(both.fields[1], by_one(70));
  EXPECT_NE(both.fields[0], by_one(30));
  const Made equal = run(decode_views({.views = {view("a", 70), view("b", 75)}, .scaled = true}),
                         bytes, random_for(0));
  EXPECT_EQ(equal.fields[0], by_one(70));
}

TEST(DecodeViews, GivesEqualBytesOnManyThreads) {
  const Bytes bytes = jpeg_of(picture(300, 200), {.sampling = {{2, 2}, {1, 1}, {1, 1}}});
  const TransformPtr transform = decode_views({.views = views()});
  std::vector<Made> once;
  for (std::uint64_t i = 0; i < 20; ++i) once.push_back(run(transform, bytes, random_for(i)));
  std::array<bool, 4> equal{};
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < equal.size(); ++t)
    threads.emplace_back([&, t] {
      equal[t] = true;
      for (std::uint64_t i = 20; i-- > 0;)
        equal[t] = equal[t] && run(transform, bytes, random_for(i)) == once[i];
    });
  threads.clear();
  EXPECT_THAT(equal, testing::Each(true));
}

TEST(DecodeViews, FindsTheFaultsOfDecodeImage) {
  const std::vector<ImageView> whole{{.field = "a", .crop = resize_to(9)},
                                     {.field = "b", .crop = random_resized_crop(5), .count = 2}};
  for (const auto& [name, bytes] : files()) {
    SCOPED_TRACE(name);
    for (const std::size_t parts : {2, 3, 5, 9}) {
      const Bytes cut(bytes.begin(),
                      bytes.end() - static_cast<std::ptrdiff_t>(bytes.size() / parts));
      const std::string expected =
          run(decode_image({.crop = resize_to(9)}), cut, random_for(1)).fault;
      EXPECT_NE(expected, "");
      EXPECT_EQ(run(decode_views({.views = whole}), cut, random_for(1)).fault, expected);
    }
  }
  const Bytes small = jpeg_of(picture(20, 20), {});
  EXPECT_THAT(
      run(decode_views({.views = whole, .max_megapixels = 1e-6}), small, random_for(1)).fault,
      HasSubstr("raise max_megapixels"));
  EXPECT_THAT(run(decode_views({.views = {whole[0], {.field = "c", .crop = random_crop(21)}}}),
                  small, random_for(1))
                  .fault,
              HasSubstr("smaller than the crop"));
}

TEST(DecodeViews, PutsOutAFieldForEachView) {
  const std::vector<FieldSpec> fields{{"label", DType::i64, {}}, {"image", DType::u8, {kDynamic}}};
  const std::vector<ImageView> all = views();
  const std::vector<ImageView> two(all.begin() + 1, all.begin() + 3);
  const Binding binding = decode_views({.views = two})->bind(fields);
  EXPECT_EQ(binding.inputs, std::vector<std::size_t>{1});
  EXPECT_EQ(binding.outputs, (std::vector<FieldSpec>{{"local", DType::u8, {8, 16, 16, 3}},
                                                     {"eval", DType::u8, {24, 24, 3}},
                                                     {"eval_geometry", DType::i32, {8}}}));
  EXPECT_THAT(
      [&] { (void)decode_views({.field = "photo", .views = two})->bind(fields); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("decode_views needs a field 'photo'")));
}

TEST(DecodeViews, RefusesOptionsThatCannotWork) {
  const Crop crop = resize_to(8);
  const auto refused = [](std::vector<ImageView> some, const std::string& message) {
    EXPECT_THAT([&] { (void)decode_views({.views = some}); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  refused({}, "decode_views: give 1 to 256 views, found 0");
  refused(std::vector<ImageView>(257, {.field = "a", .crop = crop}), "found 257");
  refused({{.crop = crop}}, "name the field of each view");
  refused({{.field = "a"}}, "decode_views: 'a': there is no crop");
  refused({{.field = "a", .crop = crop, .count = -1}}, "count is 0, or up to 256 crops, found -1");
  refused({{.field = "a", .crop = crop, .count = 257}}, "found 257");
  refused({{.field = "a", .crop = crop, .count = 256},
           {.field = "b", .crop = crop, .count = 256},
           {.field = "c", .crop = crop, .count = 256},
           {.field = "d", .crop = crop, .count = 256},
           {.field = "e", .crop = crop}},
          "at most 1024 crops of one image");
  refused({{.field = "a", .crop = crop, .flip = 2}}, "'a': flip is a probability");
  refused({{.field = "a", .crop = crop, .geometry = "a"}}, "geometry cannot be named 'a'");
  refused({{.field = "a", .crop = crop}, {.field = "a", .crop = crop}}, "two fields are named 'a'");
  refused({{.field = "a", .crop = crop, .geometry = "g"}, {.field = "g", .crop = crop}},
          "two fields are named 'g'");
  EXPECT_THAT([&] { (void)decode_views({.field = "", .views = {{.field = "a", .crop = crop}}}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("decode_views: name the field")));
  EXPECT_THAT(
      [&] {
        (void)decode_views(
            {.views = {{.field = "a", .crop = crop}}, .background = Color(0, 256, 0)});
      },
      ThrowsMessage<std::invalid_argument>(
          "decode_views: background: a level is 0 to 255, found 256"));
}

TEST(DecodeViews, IsMadeAgainFromItsDescription) {
  const DecodeViewsOptions options{.field = "photo",
                                   .views = views(),
                                   .max_megapixels = 3,
                                   .exif = false,
                                   .background = Color(1, 2, 3),
                                   .decoder = JpegDecoder::libjpeg,
                                   .scaled = true};
  const Description description = decode_views(options)->description();
  EXPECT_EQ(description.name, "decode_views");
  const TransformPtr again = transform::make("decode_views", description.options);
  EXPECT_EQ(again->description().options, description.options);
  EXPECT_EQ(again->description().text, description.text);
  EXPECT_EQ(decode_views({.views = {{.field = "a", .crop = letterbox(8), .count = 2}}})
                ->description()
                .text,
            "decode_views(views={'a': ImageView(crop=letterbox(size=8), count=2)})");
}

}  // namespace
}  // namespace penstock::views_test
