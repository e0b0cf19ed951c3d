// Masks: the window of their image, and numbers that are never mixed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/augment/augmentation.hpp>
#include <penstock/transform/augment_image.hpp>
#include <penstock/transform/decode_image.hpp>

#include "src/transform/catalog.hpp"
#include "src/transform/nearest.hpp"
#include "tests/jpeg/images.hpp"
#include "tests/project_path.hpp"

namespace penstock {
namespace {

using namespace testing_images;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Field {
  FieldSpec spec;
  std::vector<std::byte> bytes;

  [[nodiscard]] ConstTensorView view() const { return {bytes.data(), spec.dtype, spec.shape}; }
  template <class T = std::uint8_t>
  [[nodiscard]] std::vector<T> numbers() const {
    std::vector<T> all(bytes.size() / sizeof(T));
    if (!all.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  }
};

template <class T>
Field field_of(std::string name, const Shape& shape, const std::vector<T>& numbers) {
  Field field{{std::move(name), dtype_of<T>(), shape}, {}};
  field.bytes.resize(numbers.size() * sizeof(T));
  std::memcpy(field.bytes.data(), numbers.data(), field.bytes.size());
  return field;
}

Field encoded(std::string name, const Bytes& bytes) {
  return {{std::move(name), DType::u8, {std::ssize(bytes)}}, bytes};
}

struct Made {
  std::vector<Field> fields;
  std::string fault;
};

Made run(const TransformPtr& transform, const std::vector<Field>& given, std::uint64_t number = 0,
         std::byte unwritten = std::byte{0xA5}) {
  std::vector<FieldSpec> specs;
  for (const Field& field : given) {
    specs.push_back(field.spec);
    if (field.spec.shape.rank() == 1) specs.back().shape = {kDynamic};
  }
  const Binding binding = transform->bind(specs);
  std::vector<ConstTensorView> in;
  for (const std::size_t input : binding.inputs) in.push_back(given[input].view());
  Made made;
  for (const FieldSpec& output : binding.outputs)
    made.fields.push_back({output, std::vector(output.bytes(), unwritten)});
  std::vector<TensorView> out;
  for (Field& field : made.fields)
    out.emplace_back(field.bytes.data(), field.spec.dtype, field.spec.shape);
  Random random(RandomKey(7, 1), {.number = number});
  if (auto done = transform->apply(in, out, random); !done) made.fault = done.fault().reason;
  return made;
}

// Each pixel says where it lies: column and row of images below 256x256, and the class there.
Pixels places(int width, int height) {
  Pixels pixels(width, height, 3);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      pixels.at(x, y)[0] = static_cast<std::uint8_t>(x);
      pixels.at(x, y)[1] = static_cast<std::uint8_t>(y);
      pixels.at(x, y)[2] = 1;
    }
  return pixels;
}

int class_at(int x, int y) { return (x * 37 + y * 91 + x * y) % 200; }

std::vector<std::uint8_t> classes(int width, int height) {
  std::vector<std::uint8_t> all;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) all.push_back(static_cast<std::uint8_t>(class_at(x, y)));
  return all;
}

Pixels as_pixels(const std::vector<std::uint8_t>& levels, int width, int height) {
  Pixels pixels(width, height, 1);
  pixels.data = levels;
  return pixels;
}

std::vector<Crop> crops() {
  return {random_resized_crop({24, 30}),
          center_crop({16, 20}, {.resize = 33}),
          resize_to({13, 50}),
          letterbox({31, 17}, {.fill = 0}),
          random_crop({30, 25}, {.padding = 8, .fill = 0, .pad_if_needed = true}),
          scale_jitter({40, 20}, {.fill = 0}),
          cover_crop({30, 18}),
          cover_crop({14, 40}, {.position = CropPosition::random})};
}

// What the image shows at each pixel of the sample, where that is its own class everywhere.
void expect_classes_of_places(const std::vector<std::uint8_t>& pixels,
                              const std::vector<std::uint8_t>& mask, std::uint8_t fill) {
  ASSERT_EQ(pixels.size(), 3 * mask.size());
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const std::uint8_t* const pixel = pixels.data() + 3 * i;
    ASSERT_EQ(mask[i], pixel[2] == 0 ? fill : class_at(pixel[0], pixel[1])) << "pixel " << i;
  }
}

TEST(Masks, ShowTheWindowOfTheirImage) {
  for (const auto& [width, height] : {std::pair(64, 48), {1, 1}, {3, 250}, {131, 97}}) {
    const Pixels image = places(width, height);
    const std::vector<std::uint8_t> mask = classes(width, height);
    const std::vector<Field> files{encoded("image", png_of(image)),
                                   encoded("mask", png_of(as_pixels(mask, width, height)))};
    const std::vector<Field> arrays{field_of("mask", {height, width}, mask),
                                    field_of("image", {height, width, 3}, image.data)};
    for (const Crop& crop : crops())
      for (std::uint64_t number = 0; number < 10; ++number) {
        SCOPED_TRACE(crop.to_string() + " of sample " + std::to_string(number));
        const Made made = run(decode_image({.crop = crop,
                                            .flip = 0.5F,
                                            .masks = {"mask"},
                                            .mask_fill = 222,
                                            .filter = ResizeFilter::nearest}),
                              files, number);
        ASSERT_EQ(made.fault, "");
        ASSERT_EQ(made.fields[1].spec,
                  (FieldSpec{"mask", DType::u8, {crop.size().height, crop.size().width}}));
        expect_classes_of_places(made.fields[0].numbers(), made.fields[1].numbers(), 222);
        // The same of what is decoded already, and whatever the filter of the image.
        const Made cropped = run(crop_image({.crop = crop,
                                             .flip = 0.5F,
                                             .filter = ResizeFilter::bicubic,
                                             .geometry = "g",
                                             .masks = {"mask"},
                                             .mask_fill = 222}),
                                 arrays, number, std::byte{1});
        ASSERT_EQ(cropped.fields[2].bytes, made.fields[1].bytes);
      }
  }
}

TEST(Masks, DoNotChangeTheImage) {
  const Pixels image = picture(70, 50);
  const std::vector<Field> files{
      encoded("image", jpeg_of(image)),
      encoded("mask", png_of(as_pixels(classes(70, 50), 70, 50))),
  };
  for (const Crop& crop : crops()) {
    const Made made = run(decode_image({.crop = crop, .flip = 0.5F, .masks = {"mask"}}), files, 3);
    EXPECT_EQ(made.fault, "");
    EXPECT_EQ(made.fields[0].bytes,
              run(decode_image({.crop = crop, .flip = 0.5F}), {files[0]}, 3).fields[0].bytes);
  }
}

TEST(Masks, AreOfTheUprightImage) {
  constexpr int kWidth = 40;
  constexpr int kHeight = 24;
  // Wide steps of grey, which JPEG keeps: the class of a pixel is its level, roughly.
  const auto level = [](int x, int y) { return x / 8 * 40 + y / 8 * 12; };
  Pixels image(kWidth, kHeight, 1);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) *image.at(x, y) = static_cast<std::uint8_t>(level(x, y));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const Bytes jpeg = jpeg_of(image, {.input = JCS_GRAYSCALE,
                                       .stored = JCS_GRAYSCALE,
                                       .sampling = {{1, 1}},
                                       .quality = 100,
                                       .app1 = exif_app1(orientation)});
    const int width = orientation < 5 ? kWidth : kHeight;
    const int height = orientation < 5 ? kHeight : kWidth;
    const Made upright = run(decode_image({.crop = resize_to({height, width}), .channels = 1}),
                             {encoded("image", jpeg)});
    const std::vector<std::uint8_t> levels = upright.fields[0].numbers();
    const std::vector<Field> files{encoded("image", jpeg),
                                   encoded("mask", png_of(as_pixels(levels, width, height)))};
    for (const Crop& crop : crops()) {
      const Made made = run(decode_image({.crop = crop,
                                          .flip = 0.5F,
                                          .channels = 1,
                                          .masks = {"mask"},
                                          .mask_fill = 0,
                                          .filter = ResizeFilter::nearest}),
                            files, 5);
      ASSERT_EQ(made.fields[0].bytes, made.fields[1].bytes) << crop.to_string();
    }
    if (orientation < 5) continue;
    const Made stored = run(decode_image({.crop = resize_to(9), .masks = {"mask"}}),
                            {encoded("image", jpeg), encoded("mask", png_of(image))});
    EXPECT_EQ(
        stored.fault,
        "the mask 'mask': it has 24x40 pixels (height x width), and its image 40x24: set exif "
        "= false if the masks are of the images as stored");
    EXPECT_EQ(
        run(decode_image({.crop = resize_to(9), .exif = false, .masks = {"mask"}}), files).fault,
        "the mask 'mask': it has 40x24 pixels (height x width), and its image 24x40: its "
        "sides are exchanged, as those of masks of upright images are where exif = false is "
        "set");
  }
}

struct Line {
  std::vector<int> numbers;
  std::string file;
  std::vector<std::uint8_t> result;
};

std::vector<std::uint8_t> from_hex(const std::string& hex) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::strtol(hex.substr(i, 2).c_str(), nullptr, 16)));
  return bytes;
}

std::vector<Line> golden(const std::string& kind, std::size_t numbers) {
  std::ifstream file(test::project_path("tests/transform/golden/pillow_masks.txt"));
  std::vector<Line> all;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream words(text);
    std::string found, result;
    words >> found;
    if (found != kind) continue;
    Line line;
    line.numbers.resize(numbers);
    for (int& number : line.numbers) words >> number;
    if (kind == "png") words >> line.file;
    std::string arrow;
    words >> arrow >> result;
    line.result = from_hex(result);
    all.push_back(std::move(line));
  }
  return all;
}

// As mask() of the program.
std::vector<std::uint8_t> golden_mask(int height, int width) {
  std::vector<std::uint8_t> all;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      all.push_back(static_cast<std::uint8_t>((x * 37 + y * 91 + x * y) % 251));
  return all;
}

TEST(Masks, AreCutOutAndResizedAsByPillow) {
  const std::vector<Line> lines = golden("cut", 8);
  ASSERT_EQ(lines.size(), 40U);
  for (const Line& line : lines) {
    const auto& n = line.numbers;
    const std::vector<std::uint8_t> mask = golden_mask(n[0], n[1]);
    std::vector<int> columns;
    std::vector<int> rows;
    transform::nearest_pixels({n[2], n[4], n[7], 0, n[7]}, columns);
    transform::nearest_pixels({n[3], n[5], n[6], 0, n[6]}, rows);
    std::vector<std::uint8_t> found;
    for (const int row : rows)
      for (const int column : columns)
        found.push_back(mask[static_cast<std::size_t>(row * n[1] + column)]);
    EXPECT_EQ(found, line.result);
  }
}

TEST(Masks, OfTheMiddleAreTorchvisions) {
  const std::vector<Line> lines = golden("center", 5);
  ASSERT_EQ(lines.size(), 40U);
  for (const Line& line : lines) {
    const auto& n = line.numbers;
    const std::vector<std::uint8_t> mask = golden_mask(n[0], n[1]);
    const Crop crop = center_crop({n[3], n[4]}, {.resize = n[2]});
    const Made made =
        run(crop_image({.crop = crop, .masks = {"mask"}}),
            {field_of("image", {n[0], n[1], 1}, mask), field_of("mask", {n[0], n[1], 1}, mask)});
    EXPECT_EQ(made.fields[1].numbers(), line.result);
    const Made image = run(crop_image({.crop = crop, .filter = ResizeFilter::nearest}),
                           {field_of("image", {n[0], n[1], 1}, mask)});
    EXPECT_EQ(image.fields[0].numbers(), line.result);
  }
}

TEST(Masks, HaveTheNumbersThatTheirPngStores) {
  const std::vector<Line> lines = golden("png", 2);
  ASSERT_EQ(lines.size(), 10U);
  for (const Line& line : lines) {
    const int height = line.numbers[0];
    const int width = line.numbers[1];
    const std::vector<std::uint8_t> file = from_hex(line.file);
    const Made made = run(decode_image({.crop = resize_to({height, width}), .masks = {"mask"}}),
                          {encoded("image", png_of(picture(width, height))),
                           encoded("mask", to_bytes(file.data(), file.size()))});
    EXPECT_EQ(made.fault, "");
    EXPECT_EQ(made.fields[1].numbers(), line.result);
  }
}

TEST(Masks, KeepTheTypeOfWhatIsDecoded) {
  const std::vector<std::int64_t> numbers{-1, 1LL << 40, 7, 3, 4, 5};
  const Field image = encoded("image", png_of(picture(3, 2)));
  const Made made =
      run(decode_image({.crop = letterbox({4, 3}), .masks = {"mask"}, .mask_fill = -100}),
          {image, field_of("mask", {2, 3}, numbers)});
  EXPECT_EQ(made.fields[1].spec, (FieldSpec{"mask", DType::i64, {4, 3}}));
  EXPECT_EQ(
      made.fields[1].numbers<std::int64_t>(),
      (std::vector<std::int64_t>{-100, -100, -100, -1, 1LL << 40, 7, 3, 4, 5, -100, -100, -100}));
}

TEST(Masks, OfPngsAreOfTheTypeThatIsAskedFor) {
  constexpr int kWidth = 31;
  constexpr int kHeight = 20;
  std::vector<std::uint8_t> samples;
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < kWidth * kHeight; ++i) {
    numbers.push_back(i * 7919 % 65536);
    samples.push_back(static_cast<std::uint8_t>(numbers.back() >> 8));
    samples.push_back(static_cast<std::uint8_t>(numbers.back()));
  }
  const Field image = encoded("image", png_of(picture(kWidth, kHeight)));
  const Field instances =
      encoded("mask", png_of(kWidth, kHeight, samples, {.color = PNG_COLOR_TYPE_GRAY, .bits = 16}));
  const auto made = [&](const Field& mask, DType dtype, int fill = 255) {
    return run(decode_image({.crop = resize_to({kHeight, kWidth}),
                             .masks = {"mask"},
                             .mask_fill = fill,
                             .mask_dtype = dtype}),
               {image, mask});
  };
  const Made wide = made(instances, DType::u16);
  EXPECT_EQ(wide.fields[1].spec, (FieldSpec{"mask", DType::u16, {kHeight, kWidth}}));
  EXPECT_EQ(wide.fields[1].numbers<std::uint16_t>(),
            std::vector<std::uint16_t>(numbers.begin(), numbers.end()));
  EXPECT_EQ(made(instances, DType::i64, -100).fields[1].numbers<std::int64_t>(), numbers);
  for (const DType narrow : {DType::u8, DType::i16})
    EXPECT_THAT(made(instances, narrow).fault, HasSubstr("numbers of 16 bits, and mask_dtype is"));
  const std::vector<std::uint8_t> few = classes(kWidth, kHeight);
  EXPECT_EQ(made(encoded("mask", png_of(as_pixels(few, kWidth, kHeight))), DType::i32)
                .fields[1]
                .numbers<std::int32_t>(),
            std::vector<std::int32_t>(few.begin(), few.end()));
  EXPECT_THAT([&] { (void)made(instances, DType::f32); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("mask_dtype is an integer type")));
}

TEST(Masks, ThatDoNotFitAreFaults) {
  const Field image = encoded("image", png_of(picture(30, 20)));
  const auto fault_of = [&](const Field& mask) {
    return run(decode_image({.crop = resize_to(8), .masks = {"mask"}}), {image, mask}).fault;
  };
  EXPECT_EQ(fault_of(encoded("mask", png_of(picture(20, 20, 1)))),
            "the mask 'mask': it has 20x20 pixels (height x width), and its image 20x30");
  EXPECT_EQ(fault_of(field_of("mask", {1, 2}, std::vector<std::int32_t>{1, 2})),
            "the mask 'mask': it has 1x2 pixels (height x width), and its image 20x30");
  EXPECT_EQ(fault_of(encoded("mask", jpeg_of(picture(30, 20)))),
            "the mask 'mask': a mask is a PNG with a palette or grey levels, found a JPEG image");
  EXPECT_EQ(
      fault_of(encoded("mask", png_of(picture(30, 20)))),
      "the mask 'mask': a mask is a PNG with a palette or grey levels, found one with colours "
      "or alpha");
  EXPECT_EQ(fault_of(encoded("mask", {})), "the mask 'mask': empty: 0 bytes");
  Bytes cut = png_of(as_pixels(classes(30, 20), 30, 20));
  cut.resize(cut.size() / 2);
  EXPECT_THAT(fault_of(encoded("mask", cut)), HasSubstr("premature end of PNG file"));
}

TEST(Masks, WrongOnesAreRefused) {
  const auto refused = [](auto make, auto matcher) {
    EXPECT_THAT(make, ThrowsMessage<std::invalid_argument>(matcher));
  };
  const Crop crop = resize_to(8);
  refused([&] { (void)decode_image({.crop = crop, .masks = {""}}); },
          HasSubstr("decode_image: a mask has no name"));
  refused([&] { (void)decode_image({.crop = crop, .masks = {"image"}}); },
          HasSubstr("decode_image: the mask 'image' has the name of another field"));
  refused([&] { (void)crop_image({.crop = crop, .geometry = "g", .masks = {"g"}}); },
          HasSubstr("crop_image: the mask 'g' has the name of another field"));
  refused(
      [&] {
        (void)crop_image({.crop = crop, .masks = {"a", "b", "a"}});
      },
      HasSubstr("crop_image: the mask 'a' has the name of another field"));
  const auto bind = [&](const FieldSpec& mask, int fill) {
    (void)decode_image({.crop = crop, .masks = {"mask"}, .mask_fill = fill})
        ->bind(std::vector<FieldSpec>{{"image", DType::u8, {kDynamic}}, mask});
  };
  refused(
      [&] {
        bind({"other", DType::u8, {kDynamic}}, 0);
      },
      HasSubstr("decode_image needs a field 'mask', and there is none"));
  refused(
      [&] {
        bind({"mask", DType::f32, {8, 8}}, 0);
      },
      AllOf(HasSubstr("a mask is the bytes of a PNG"), HasSubstr("f32")));
  refused([&] { bind({"mask", DType::u8, {8, 8, 3}}, 0); }, HasSubstr("a mask is the bytes"));
  refused(
      [&] {
        bind({"mask", DType::u8, {kDynamic}}, 256);
      },
      HasSubstr("mask_fill is 256, which 'mask' of u8 cannot hold"));
  refused([&] { bind({"mask", DType::u16, {8, 8}}, -1); }, HasSubstr("mask_fill is -1"));
}

TEST(Masks, TravelInPlans) {
  const Crop crop = resize_to({8, 9});
  const TransformPtr with =
      decode_image({.crop = crop, .masks = {"a", "b"}, .mask_fill = 3, .mask_dtype = DType::i64});
  EXPECT_EQ(transform::describe(*with),
            "decode_image(crop=resize_to(size=(8, 9)), masks=['a', 'b'], mask_fill=3, "
            "mask_dtype='i64')");
  const TransformPtr read = transform::make("decode_image", with->description().options);
  EXPECT_EQ(read->description().options, with->description().options);
  const std::string cropped = crop_image({.crop = crop, .masks = {"a"}})->description().options;
  EXPECT_EQ(transform::make("crop_image", cropped)->description().options, cropped);
  const std::string augmented =
      augment_image({.operations = {flip()}, .masks = {"a"}})->description().options;
  EXPECT_EQ(transform::make("augment_image", augmented)->description().options, augmented);
  // Those that have none are written as before.
  EXPECT_THAT(decode_image({.crop = crop})->description().options, Not(HasSubstr("mask")));
}

// ---- augment_image ----

// Those that leave levels as they are, so that places can be read.
std::vector<Augmentation> moves() {
  return {flip(), vertical_flip(), random_apply(0.8, {rotate({-30, 30})}),
          random_apply(0.5, {perspective(0.4, {.interpolation = Interpolation::nearest})})};
}

TEST(Masks, MoveWithAnAugmentedImage) {
  const Pixels image = places(60, 44);
  const std::vector<std::uint8_t> mask = classes(60, 44);
  const std::vector<Field> given{field_of("image", {44, 60, 3}, image.data),
                                 field_of("mask", {44, 60}, mask)};
  int moved = 0;
  for (std::uint64_t number = 0; number < 60; ++number) {
    const Made made = run(
        augment_image({.operations = moves(), .masks = {"mask"}, .mask_fill = 244}), given, number);
    expect_classes_of_places(made.fields[0].numbers(), made.fields[1].numbers(), 244);
    moved += made.fields[1].numbers() != mask ? 1 : 0;
  }
  EXPECT_GT(moved, 50);
}

TEST(Masks, HaveNoNumberThatWasNotThere) {
  const Pixels image = picture(60, 44);
  std::vector<std::uint8_t> mask = classes(60, 44);
  for (std::uint8_t& number : mask) number = number % 3 == 0 ? 17 : 203;
  std::set<std::uint8_t> seen;
  for (std::uint64_t number = 0; number < 60; ++number) {
    const Made made = run(
        augment_image({.operations = {timm_rand_augment(),
                                      rotate({-90, 90}, {.interpolation = Interpolation::bicubic})},
                       .masks = {"mask"}}),
        {field_of("image", {44, 60, 3}, image.data), field_of("mask", {44, 60}, mask)}, number);
    const auto numbers = made.fields[1].numbers();
    seen.insert(numbers.begin(), numbers.end());
  }
  EXPECT_EQ(seen, (std::set<std::uint8_t>{17, 203, 255}));
}

TEST(Masks, OfAugmentedImagesAreRefusedWhereTheyCannotFollow) {
  const auto refused = [](auto make, auto matcher) {
    EXPECT_THAT(make, ThrowsMessage<std::invalid_argument>(matcher));
  };
  refused(
      [] {
        (void)augment_image({.operations = {random_apply(0.5, {aug_mix()})}, .masks = {"mask"}});
      },
      AllOf(HasSubstr("masks cannot be mixed"), HasSubstr("aug_mix")));
  EXPECT_NO_THROW((void)augment_image({.operations = {aug_mix()}}));
  refused([] { (void)augment_image({.masks = {"image"}}); }, HasSubstr("another field"));
  refused([] { (void)augment_image({.masks = {"mask"}, .mask_fill = 256}); },
          HasSubstr("mask_fill is 0 to 255, found 256"));
  const auto bind = [](const FieldSpec& image, const FieldSpec& mask) {
    (void)augment_image({.masks = {"mask"}})->bind(std::vector{image, mask});
  };
  const FieldSpec image{"image", DType::u8, {8, 9, 3}};
  EXPECT_NO_THROW(bind(image, {"mask", DType::u8, {8, 9}}));
  for (const FieldSpec& wrong :
       {FieldSpec{"mask", DType::i64, {8, 9}}, {"mask", DType::u8, {9, 8}}})
    refused([&] { bind(image, wrong); }, HasSubstr("a mask is u8 [height,width] of one image"));
  refused(
      [&] {
        bind({"image", DType::u8, {2, 8, 9, 3}}, {"mask", DType::u8, {8, 9}});
      },
      HasSubstr("a mask is u8 [height,width] of one image"));
}

}  // namespace
}  // namespace penstock
