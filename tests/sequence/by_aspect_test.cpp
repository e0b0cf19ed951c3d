// Batches by aspect, against a plain program that sorts lists.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/jpeg/images.hpp"
#include "tests/sequence/worlds.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing_support::expect_the_same_on_any_world_and_resumed;

using Sizes = std::vector<ImageSize>;

ImageSize random_size(std::mt19937_64& random, int most) {
  const auto side = [&] { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
  return {side(), side()};
}

Sizes random_sizes(std::mt19937_64& random, std::size_t count, int most) {
  Sizes sizes(count);
  for (ImageSize& size : sizes)
    if (random() % 12 != 0) size = random_size(random, most);
  return sizes;
}

Sizes random_shapes(std::mt19937_64& random, int most) {
  std::set<std::pair<int, int>> seen;
  Sizes shapes;
  while (shapes.size() < 5) {
    const ImageSize shape = random_size(random, most);
    if (seen.emplace(shape.height, shape.width).second) shapes.push_back(shape);
  }
  return shapes;
}

// Whose records are their own numbers.
Dataset numbered(std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  for (std::size_t k = 0; k < count; ++k) numbers[k] = static_cast<std::int64_t>(k);
  return Dataset(source::memory({source::column("number", std::move(numbers))}));
}

// Makes an image [h,w] of the record's number.
TransformPtr paint(ImageSize shape) {
  return map_function(
      {.name = "paint",
       .inputs = {"number"},
       .outputs = {{"number", DType::i64, {}}, {"image", DType::i32, {shape.height, shape.width}}}},
      [](std::span<const ConstTensorView> in, Outputs out, Random&) {
        *out[0].data<std::int64_t>() = *in[0].data<std::int64_t>();
        std::fill_n(out[1].data<std::int32_t>(), out[1].shape().elements(),
                    static_cast<std::int32_t>(*in[0].data<std::int64_t>()));
      });
}

std::uint64_t area(ImageSize size) {
  return static_cast<std::uint64_t>(size.height) * static_cast<std::uint64_t>(size.width);
}

// In integers: whether a/b < c/d.
bool is_less(__int128 a, __int128 b, __int128 c, __int128 d) { return a * d < c * b; }

// The part of an image that covers a shape, as a fraction.
std::pair<std::int64_t, std::int64_t> kept(ImageSize image, ImageSize shape) {
  const std::int64_t wide = std::int64_t{image.width} * shape.height;
  const std::int64_t high = std::int64_t{image.height} * shape.width;
  return std::minmax({wide, high});
}

// None where it is in no batch.
std::optional<std::size_t> bucket_of(const ByAspectOptions& options, ImageSize image) {
  if (area(image) == 0) return std::nullopt;
  std::optional<std::size_t> best;
  for (std::size_t k = 0; k < options.shapes.size(); ++k) {
    const ImageSize shape = options.shapes[k];
    if (options.max_upscale && (shape.width > *options.max_upscale * image.width ||
                                shape.height > *options.max_upscale * image.height))
      continue;
    const auto [low, high] = kept(image, shape);
    if (!best || is_less(kept(image, options.shapes[*best]).first,
                         kept(image, options.shapes[*best]).second, low, high))
      best = k;
  }
  if (!best || !options.max_crop_fraction) return best;
  const auto [low, high] = kept(image, options.shapes[*best]);
  return 1 - static_cast<double>(low) / static_cast<double>(high) > *options.max_crop_fraction
             ? std::nullopt
             : best;
}

std::uint64_t rows_of(const ByAspectOptions& options, std::size_t bucket) {
  if (!options.pixels) return options.rows[bucket];
  return *options.pixels / area(options.shapes[bucket]) / options.multiple * options.multiple;
}

ByAspectOptions random_aspect_options(std::mt19937_64& random) {
  ByAspectOptions options{.shapes = random_shapes(random, 12)};
  options.multiple = 1 + random() % 4;
  if (random() % 2 == 0) {
    options.pixels = options.multiple * 144 + random() % 300;
  } else {
    for (std::size_t k = 0; k < options.shapes.size(); ++k)
      options.rows.push_back(options.multiple * (1 + random() % 5));
  }
  if (random() % 2 == 0) options.max_crop_fraction = static_cast<double>(random() % 8) / 8;
  if (random() % 2 == 0) options.max_upscale = static_cast<double>(1 + random() % 8) / 4;
  options.unmatched = UnmatchedImages::drop;
  options.shuffle = random() % 4 != 0;
  options.reshuffle_each_epoch = random() % 4 != 0;
  return options;
}

// The samples of one step, all of one bucket, whose shape their images have.
std::vector<std::uint64_t> read_step(const Step& step, const ByAspectOptions& options,
                                     const Sizes& sizes, std::size_t& bucket) {
  std::vector<std::uint64_t> numbers;
  for (const SampleId& sample : step.samples()) numbers.push_back(sample.number);
  bucket = bucket_of(options, sizes[numbers.front()]).value();
  std::size_t row = 0;
  for (const DeviceBatch& part : step) {
    const TensorView image = part["image"];
    EXPECT_EQ(image.shape()[1], options.shapes[bucket].height);
    EXPECT_EQ(image.shape()[2], options.shapes[bucket].width);
    for (std::size_t k = 0; k < part.size(); ++k, ++row) {
      EXPECT_EQ(bucket_of(options, sizes[numbers[row]]), bucket);
      const auto* pixels = image.data<std::int32_t>() + k * area(options.shapes[bucket]);
      EXPECT_EQ(pixels[0], static_cast<std::int32_t>(numbers[row]));
      EXPECT_EQ(pixels[area(options.shapes[bucket]) - 1], static_cast<std::int32_t>(numbers[row]));
    }
  }
  EXPECT_EQ(row, numbers.size());
  return numbers;
}

TEST(ByAspect, EverySampleOncePerEpochInABatchOfItsBucket) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const Sizes sizes = random_sizes(random, 1 + random() % 80, 40);
    ByAspectOptions options = random_aspect_options(random);
    options.sizes = sizes;
    const bool drops = random() % 3 == 0;
    const Dataset plan =
        numbered(sizes.size())
            .seed(random())
            .batch_by_aspect(paint, options,
                             {.remainder = drops ? Remainder::drop : Remainder::keep})
            .repeat(2);
    std::map<std::size_t, std::uint64_t> counts;
    std::map<std::size_t, std::pair<double, double>> pixels;  // of the images, and what is left
    for (const ImageSize size : sizes)
      if (const auto bucket = bucket_of(options, size)) {
        ++counts[*bucket];
        const auto [low, high] = kept(size, options.shapes[*bucket]);
        pixels[*bucket].first += static_cast<double>(area(size));
        pixels[*bucket].second +=
            static_cast<double>(area(size) * static_cast<std::uint64_t>(low)) /
            static_cast<double>(high);
      }
    std::uint64_t batches = 0;
    std::uint64_t delivered = 0;
    for (const auto& [bucket, size] : counts) {
      const std::uint64_t rows = rows_of(options, bucket);
      batches += drops ? size / rows : (size + rows - 1) / rows;
      delivered += drops ? size / rows * rows : size;
    }
    EXPECT_EQ(plan.size(), 2 * batches);
    EXPECT_EQ(plan.samples(), 2 * delivered);
    const BucketSummary summary = *plan.buckets();
    EXPECT_EQ(summary.batches, batches);
    EXPECT_EQ(summary.samples, delivered);
    EXPECT_EQ(summary.dropped, sizes.size() - delivered);
    double all = 0;
    double left = 0;
    for (std::size_t bucket = 0; bucket < options.shapes.size(); ++bucket) {
      const BucketSummary::Bucket& found = summary.buckets[bucket];
      EXPECT_EQ(found.shape, options.shapes[bucket]);
      EXPECT_EQ(found.rows, rows_of(options, bucket));
      EXPECT_EQ(found.samples, counts[bucket]);
      const auto [whole, rest] = pixels[bucket];
      const double count = static_cast<double>(counts[bucket]);  // each is cut to an integer
      if (whole > 0) {
        EXPECT_NEAR(found.crop_fraction, 1 - rest / whole, count / whole);
      }
      all += whole;
      left += rest;
    }
    if (all > 0) {
      EXPECT_NEAR(summary.crop_fraction, 1 - left / all, static_cast<double>(sizes.size()) / all);
    }

    std::vector<std::vector<std::vector<std::uint64_t>>> epochs(2);
    if (plan.size() == 0U) {
      EXPECT_THROW((void)plan.loader(), std::invalid_argument);
      continue;
    }
    Loader loader = plan.loader();
    while (const auto step = loader.next()) {
      std::size_t bucket = 0;
      epochs[step->epoch()].push_back(read_step(*step, options, sizes, bucket));
      EXPECT_LE(epochs[step->epoch()].back().size(), rows_of(options, bucket));
    }
    for (const auto& epoch : epochs) {
      EXPECT_EQ(epoch.size(), batches);
      std::set<std::uint64_t> seen;
      for (const auto& numbers : epoch) seen.insert(numbers.begin(), numbers.end());
      EXPECT_EQ(seen.size(), delivered);
    }
    if (!options.shuffle || !options.reshuffle_each_epoch) {
      EXPECT_EQ(epochs[0], epochs[1]);
    }
    if (options.shuffle && options.reshuffle_each_epoch && delivered > 20 && batches > 5) {
      EXPECT_NE(epochs[0], epochs[1]);
    }
  }
}

TEST(ByAspect, AnExampleInOrder) {
  const Sizes sizes{{20, 10}, {10, 10}, {9, 20}, {11, 10}, {0, 0}, {40, 20}};
  ByAspectOptions options{.shapes = {{8, 4}, {4, 8}, {6, 6}}, .pixels = 72, .shuffle = false};
  options.sizes = sizes;
  const Dataset plan = numbered(sizes.size()).batch_by_aspect(paint, options);
  EXPECT_THAT(
      plan.describe(),
      EndsWith(").batch_by_aspect(map=<paint(number) -> number i64 [], image i32 [8,4]>, "
               "shapes=[(8, 4), (4, 8), (6, 6)], pixels=72, shuffle=False, sizes=<6 sizes>)"));
  EXPECT_EQ(plan.batch_size(), 2U);
  EXPECT_THAT(plan.fields(), ElementsAre(FieldSpec{"number", DType::i64, {}},
                                         FieldSpec{"image", DType::i32, {kDynamic, kDynamic}}));
  Loader loader = plan.loader();
  EXPECT_EQ(loader.fields()[1].shape, (Shape{kDynamic, kDynamic}));
  std::vector<std::vector<std::uint64_t>> numbers;
  std::size_t bucket = 0;
  while (const auto step = loader.next())
    numbers.push_back(read_step(*step, options, sizes, bucket));
  EXPECT_THAT(numbers, ElementsAre(ElementsAre(0, 5), ElementsAre(2), ElementsAre(1, 3)));
}

TEST(ByAspect, OfTwoThatCutAsMuchAwayTheFirstIsItsBucket) {
  const auto bucket = [](Sizes shapes) {
    const Dataset plan = numbered(1).batch_by_aspect(
        paint, {.shapes = std::move(shapes), .rows = {1, 1}, .sizes = {{30, 30}}});
    return plan.buckets()->buckets[0].samples == 1 ? 0 : 1;
  };
  EXPECT_EQ(bucket({{6, 9}, {9, 6}}), 0);
  EXPECT_EQ(bucket({{9, 6}, {6, 9}}), 0);
  EXPECT_EQ(bucket({{8, 8}, {4, 4}}), 0);
  EXPECT_EQ(bucket({{9, 6}, {6, 6}}), 1);
}

TEST(ByAspect, SmallImagesAreInBucketsOfSmallShapes) {
  ByAspectOptions options{.shapes = {{64, 64}, {32, 48}, {16, 16}},
                          .rows = {1, 1, 1},
                          .sizes = {{64, 64}, {63, 63}, {40, 50}, {17, 900}, {15, 16}},
                          .max_upscale = 1.0,
                          .unmatched = UnmatchedImages::drop};
  const auto samples = [&] {
    const BucketSummary summary = *numbered(5).batch_by_aspect(paint, options).buckets();
    std::vector<std::uint64_t> counts;
    for (const auto& bucket : summary.buckets) counts.push_back(bucket.samples);
    counts.push_back(summary.dropped);
    return counts;
  };
  EXPECT_THAT(samples(), ElementsAre(1, 1, 2, 1));  // 63x63 is as square as 16x16
  options.max_upscale = 1.02;
  EXPECT_THAT(samples(), ElementsAre(2, 1, 1, 1));
  options.max_crop_fraction = 0.5;
  EXPECT_THAT(samples(), ElementsAre(2, 1, 0, 2));
  options.max_upscale.reset();
  EXPECT_THAT(samples(), ElementsAre(3, 1, 0, 1));  // 17x900 is too wide for all
}

TEST(ByAspect, ImagesThatFitNoBucketAreRefusedByName) {
  ByAspectOptions options{.shapes = {{8, 8}, {8, 16}},
                          .rows = {1, 1},
                          .sizes = {{8, 8}, {8, 64}},
                          .max_crop_fraction = 0.5};
  const auto refused = [&](const std::string& message) {
    EXPECT_THAT([&] { (void)numbered(2).batch_by_aspect(paint, options); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr("batch_by_aspect: "), HasSubstr("row 1"), HasSubstr(message))));
  };
  refused(
      " has 8x64 pixels (height x width), of which 8x16 cuts 0.75 away, and max_crop_fraction is "
      "0.5: add a "
      "shape, raise max_crop_fraction, or let unmatched be drop");
  options.sizes[1] = {4, 4};
  options.max_upscale = 1.5;
  refused(
      " has 4x4 pixels (height x width), which every shape enlarges more than 1.5 times: add a "
      "smaller shape, raise max_upscale, or let unmatched be drop");
}

// Photographs of many sizes, some turned by EXIF.
class Photos {
 public:
  explicit Photos(std::mt19937_64& random, std::size_t count = 50) {
    for (std::size_t k = 0; k < count; ++k) {
      const ImageSize size = {8 + static_cast<int>(random() % 33),
                              8 + static_cast<int>(random() % 33)};
      const auto pixels =
          testing_images::picture(size.width, size.height, 3, static_cast<unsigned>(k));
      const bool is_png = k % 3 == 0;
      testing_images::JpegKind kind;
      const bool turned = k % 3 == 1;
      if (turned) kind.app1 = testing_images::exif_app1(6);
      const auto bytes =
          is_png ? testing_images::png_of(pixels) : testing_images::jpeg_of(pixels, kind);
      const std::string name = std::to_string(100 + k) + (is_png ? ".png" : ".jpg");
      folder_.write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      sizes_.push_back(turned ? ImageSize(size.width, size.height) : size);
    }
  }
  [[nodiscard]] Dataset images() const { return image_folder(folder_.path()); }
  [[nodiscard]] const Sizes& sizes() const { return sizes_; }
  [[nodiscard]] const test::TemporaryFolder& folder() const { return folder_; }

 private:
  test::TemporaryFolder folder_;
  Sizes sizes_;
};

const Sizes kShapes{{20, 12}, {12, 20}, {16, 16}};

TransformPtr decode(ImageSize shape, CropPosition position = CropPosition::center, float flip = 0) {
  return decode_image({.crop = cover_crop(shape, {.position = position}), .flip = flip});
}

TEST(ByAspect, ImagesAreThoseThatTheirShapesCropMakes) {
  std::mt19937_64 random(3);
  const Photos photos(random);
  EXPECT_EQ(image_sizes(photos.images().source()), photos.sizes());
  const auto map = [](ImageSize shape) { return decode(shape, CropPosition::random, 0.5F); };
  const Dataset plan = photos.images().seed(5);
  Loader loader =
      plan.batch_by_aspect(map, {.shapes = kShapes, .pixels = 2000, .sizes = photos.sizes()})
          .loader();
  std::set<std::int64_t> shapes;
  while (const auto step = loader.next()) {
    const TensorView image = (*step)[0]["image"];
    const ImageSize shape(static_cast<int>(image.shape()[1]), static_cast<int>(image.shape()[2]));
    shapes.insert(shape.height);
    Loader all = plan.map(map(shape)).batch(photos.sizes().size()).loader();
    const auto reference = all.next();
    const std::size_t bytes = 3 * area(shape);
    for (std::size_t row = 0; row < step->samples().size(); ++row) {
      const auto* expected =
          (*reference)[0]["image"].data<std::uint8_t>() + step->samples()[row].number * bytes;
      EXPECT_TRUE(std::equal(expected, expected + bytes, image.data<std::uint8_t>() + row * bytes));
    }
  }
  EXPECT_EQ(shapes.size(), 3U);
}

TEST(ByAspect, BatchesAreTheSameOnAnyWorldAndResumed) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    const Photos photos(random);
    const Dataset images = round % 2 == 0 ? photos.images() : photos.images().skip(3).shard(3, 1);
    ByAspectOptions options{.shapes = kShapes,
                            .rows = {1 + random() % 7, 1 + random() % 7, 1 + random() % 7},
                            .sizes = photos.sizes(),
                            .max_crop_fraction = 0.5,
                            .unmatched = UnmatchedImages::drop,
                            .seed = random()};
    Dataset plan = images.batch_by_aspect(
        [](ImageSize shape) { return decode(shape, CropPosition::random, 0.5F); }, options,
        {.remainder = static_cast<Remainder>(round % 3), .uneven = true});
    if (round > 2) plan = plan.transform_on_device({.mean = {0.5}, .std = {0.25}, .flip = 0.5F});
    expect_the_same_on_any_world_and_resumed(plan.repeat(2), random);
  }
}

TEST(ByAspect, ThreadsChangeNothing) {
  std::mt19937_64 random(8);
  const Photos photos(random);
  const Dataset plan = photos.images().seed(1).batch_by_aspect(
      [](ImageSize shape) { return decode(shape, CropPosition::random, 0.5F); },
      {.shapes = kShapes, .rows = {8, 4, 4}, .multiple = 4, .sizes = photos.sizes()},
      {.uneven = true});
  std::set<std::string> digests;
  for (const int devices : {1, 2, 4})
    for (const int threads : {1, 8}) {
      Loader loader = plan.prefetch_to_devices(host_devices(devices))
                          .loader({.digest = true, .threads = threads});
      while (loader.next()) {
      }
      digests.insert(loader.digest().to_string());
    }
  EXPECT_EQ(digests.size(), 1U);
}

// Normalised, and in the order of a network, each bucket in its own shape.
TEST(ByAspect, ImagesAreTransformedOnTheirDevice) {
  std::mt19937_64 random(4);
  const Photos photos(random);
  const Dataset batches = photos.images().seed(1).batch_by_aspect(
      [](ImageSize shape) { return decode(shape); },
      {.shapes = kShapes, .rows = {4, 4, 4}, .sizes = photos.sizes()}, {.uneven = true});
  const Dataset transformed =
      batches.transform_on_device({.mean = {0.5, 0.25, 0}, .std = {0.5, 1, 2}, .flip = 0});
  EXPECT_EQ(transformed.loader().fields()[0].shape, (Shape{3, kDynamic, kDynamic}));
  Loader plain = batches.loader();
  Loader loader = transformed.prefetch_to_devices(host_devices(2)).loader();
  while (const auto expected = plain.next()) {
    const auto step = loader.next();
    const TensorView pixels = (*expected)[0]["image"];
    const auto height = static_cast<std::size_t>(pixels.shape()[1]);
    const auto width = static_cast<std::size_t>(pixels.shape()[2]);
    std::size_t row = 0;
    for (const DeviceBatch& part : *step) {
      const TensorView made = part["image"];
      ASSERT_EQ(made.shape(), (Shape{static_cast<std::int64_t>(part.size()), 3, pixels.shape()[1],
                                     pixels.shape()[2]}));
      for (std::size_t k = 0; k < part.size(); ++k, ++row)
        for (std::size_t c = 0; c < 3; ++c)
          for (std::size_t at = 0; at < height * width; ++at) {
            const float level =
                static_cast<float>(
                    pixels.data<std::uint8_t>()[(row * height * width + at) * 3 + c]) /
                255.0F;
            const float mean = c == 0 ? 0.5F : c == 1 ? 0.25F : 0;
            const float stddev = c == 0 ? 0.5F : c == 1 ? 1 : 2;
            ASSERT_NEAR(made.data<float>()[((k * 3) + c) * height * width + at],
                        (level - mean) / stddev, 1e-5);
          }
    }
    ASSERT_EQ(row, expected->samples().size());
  }
  EXPECT_FALSE(loader.next());
}

TEST(ByAspect, WhatIsMadeOnDevicesIsTheSameOnAnyNumberOfThem) {
  std::mt19937_64 random(5);
  const Photos photos(random);
  const Dataset plan =
      photos.images()
          .seed(1)
          .batch_by_aspect(
              [](ImageSize shape) { return decode(shape); },
              {.shapes = kShapes, .rows = {8, 4, 4}, .multiple = 4, .sizes = photos.sizes()},
              {.uneven = true})
          .transform_on_device({.flip = 0.5F, .erase = {.probability = 0.5}});
  std::set<std::string> digests;
  for (const int devices : {1, 2, 4})
    for (const int threads : {1, 8}) {
      Loader loader = plan.prefetch_to_devices(host_devices(devices))
                          .loader({.digest_transformed = true, .threads = threads});
      while (loader.next()) {
      }
      digests.insert(loader.transformed_digest().to_string());
    }
  EXPECT_EQ(digests.size(), 1U);
}

TEST(ByAspect, ImagesOfABatchAreMixed) {
  std::mt19937_64 random(6);
  const Photos photos(random);
  Loader loader =
      photos.images()
          .seed(1)
          .batch_by_aspect([](ImageSize shape) { return decode(shape); },
                           {.shapes = kShapes, .rows = {8, 8, 8}, .sizes = photos.sizes()})
          .transform_on_device({.mixup = 0.4F, .cutmix = 1, .mix_probability = 1, .classes = 1})
          .loader();
  int mixed = 0;
  while (const auto step = loader.next()) {
    const DeviceBatch& batch = (*step)[0];
    for (std::size_t row = 0; row < batch.size(); ++row) {
      const std::int32_t partner = batch["mix_row"].data<std::int32_t>()[row];
      EXPECT_LT(static_cast<std::size_t>(partner), batch.size());
      mixed += static_cast<std::size_t>(partner) != row;
    }
  }
  EXPECT_GT(mixed, 20);
}

TEST(ByAspect, ABadImageIsReplacedByOneOfItsBucket) {
  std::mt19937_64 random(7);
  const Photos photos(random);
  photos.folder().write("102.jpg", "no image");
  const auto shape_of = [&](std::uint64_t number) {
    return bucket_of({.shapes = kShapes}, photos.sizes()[number]);
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Loader loader =
        image_folder(photos.folder().path())
            .seed(seed)
            .batch_by_aspect([](ImageSize shape) { return decode(shape); },
                             {.shapes = kShapes, .rows = {4, 4, 4}, .sizes = photos.sizes()})
            .loader({.on_fault = OnFault::replace});
    std::uint64_t samples = 0;
    while (const auto step = loader.next()) {
      for (const SampleId& sample : step->samples()) {
        EXPECT_NE(sample.number, 2U);
        EXPECT_EQ(shape_of(sample.number), shape_of(step->samples().front().number));
        ++samples;
      }
    }
    EXPECT_EQ(samples, photos.sizes().size());
    EXPECT_EQ(loader.faults().size(), 1U);
  }
}

TEST(ByAspect, ManySizesLieInAFileBesideThePlan) {
  const test::TemporaryFolder folder;
  std::mt19937_64 random(9);
  const Sizes sizes = random_sizes(random, 1500, 100);
  const MapFunction nothing = [](std::span<const ConstTensorView>, Outputs, Random&) {};
  const auto map = [&](ImageSize shape) {
    return map_function({.name = "nothing",
                         .inputs = {"number"},
                         .outputs = {{"image", DType::u8, {shape.height, shape.width}}}},
                        nothing);
  };
  PlanJsonOptions json;
  json.registry.add_function("nothing", nothing);
  const Dataset plan =
      Dataset(source::numbers(1500))
          .batch_by_aspect(map, {.shapes = kShapes, .pixels = 6000, .sizes = sizes});
  plan.save(folder / "plan.json", json);
  std::vector<std::filesystem::path> lists;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".npy") lists.push_back(entry.path());
  ASSERT_EQ(lists.size(), 1U);
  const SourcePtr array = source::arrays({{.name = "size", .path = lists.front()}});
  ASSERT_EQ(array->size(), sizes.size());
  EXPECT_THAT(array->fields(), ElementsAre(FieldSpec{"size", DType::i32, {2}}));
  for (std::uint64_t k = 0; k < sizes.size(); ++k) {
    Record record;
    ASSERT_TRUE(array->read(k, record));
    const auto* size = record[0].data<std::int32_t>();
    ASSERT_EQ(ImageSize(size[0], size[1]), sizes[k]);
  }
  const Dataset again = Dataset::load(folder / "plan.json", json);
  EXPECT_EQ(again.describe(), plan.describe());
  EXPECT_EQ(again.to_json(json), plan.to_json(json));
  EXPECT_EQ(again.buckets()->crop_fraction, plan.buckets()->crop_fraction);
  std::filesystem::remove(lists.front());
  EXPECT_THROW((void)Dataset::load(folder / "plan.json", json), Error);
}

TEST(ByAspect, AStateBelongsToItsSizesAndMaps) {
  std::mt19937_64 random(10);
  const Photos photos(random);
  const auto loader = [&](Sizes sizes, int size = 0, float flip = 0) {
    Sizes shapes = kShapes;
    shapes.back() = ImageSize(shapes.back().height + size);
    return photos.images()
        .seed(1)
        .batch_by_aspect(
            [&](ImageSize shape) {
              return decode(shape, CropPosition::center, shape == shapes.back() ? flip : 0);
            },
            {.shapes = shapes, .rows = {2, 2, 2}, .sizes = std::move(sizes)})
        .loader();
  };
  Loader first = loader(photos.sizes());
  (void)first.next();
  EXPECT_LT(first.state().to_json().size(), 3000U);
  Loader same = loader(photos.sizes());
  same.restore(first.state());
  Sizes others = photos.sizes();
  for (ImageSize& size : others) size = {2 * size.height, 2 * size.width};  // in the same buckets
  Loader larger = loader(others);
  EXPECT_THAT([&] { larger.restore(first.state()); },
              ThrowsMessage<Error>(HasSubstr("this state belongs to another dataset")));
  Loader other_shape = loader(photos.sizes(), 1);
  EXPECT_THROW(other_shape.restore(first.state()), Error);
  Loader other_map = loader(photos.sizes(), 0, 0.5F);
  EXPECT_THROW(other_map.restore(first.state()), Error);
}

TEST(ByAspect, RefusesWhatCannotBe) {
  const Dataset images = numbered(2);
  const ByAspectOptions good{.shapes = {{4, 8}, {8, 4}}, .rows = {2, 2}, .sizes = {{9, 9}, {9, 8}}};
  const auto refused = [](const Dataset& dataset, const ByAspectOptions& options,
                          const std::string& message) {
    EXPECT_THAT([&] { (void)dataset.batch_by_aspect(paint, options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("batch_by_aspect: " + message)));
  };
  const auto with = [&](auto change) {
    ByAspectOptions options = good;
    change(options);
    return options;
  };
  using Options = ByAspectOptions;
  refused(images, with([](Options& o) { o.shapes = {}; }), "it needs shapes");
  refused(images, with([](Options& o) {
            o.shapes[1] = {0, 4};
          }),
          "a shape has at least 1x1 pixels, found 0x4");
  refused(images, with([](Options& o) {
            o.shapes[1] = {4, 8};
          }),
          "no two shapes are the same, found 4x8 twice");
  refused(images, with([](Options& o) {
            for (int k = 0; k < 5000; ++k) o.shapes.emplace_back(100, k + 1);
          }),
          "expected at most 4096 shapes, found 5002");
  refused(images, with([](Options& o) { o.rows = {}; }), "how large is a batch? Give pixels");
  refused(images, with([](Options& o) { o.pixels = 64; }), "it takes pixels or rows, found both");
  refused(images, with([](Options& o) { o.rows = {2}; }),
          "rows has a number for each of the 2 shapes, found 1");
  refused(images, with([](Options& o) { o.rows[1] = 3, o.multiple = 2; }),
          "rows are 2 or a multiple of it, found 3");
  refused(images, with([](Options& o) { o.rows = {}, o.pixels = 40, o.multiple = 2; }),
          "a batch of at most 40 pixels has no room for 2 rows of 32: raise pixels to 64 or more");
  refused(images, with([](Options& o) { o.max_crop_fraction = 1.5; }),
          "max_crop_fraction is a fraction");
  refused(images, with([](Options& o) { o.max_crop_fraction = NAN; }),
          "max_crop_fraction is a fraction");
  refused(images, with([](Options& o) { o.max_upscale = 0; }), "max_upscale is a factor");
  refused(
      images, with([](Options& o) { o.sizes.pop_back(); }),
      "sizes has height and width of each of the 2 records of the source, found 1: image_sizes()");
  refused(images, with([](Options& o) {
            o.sizes[1] = {0, 4};
          }),
          "sizes are 1x1 or more, or 0x0 where there is no image, found 0x4 of ");
  refused(images.shuffle(), good, "it has a random order of its own: leave shuffle out");
  refused(images.repeat(2), good, "it makes the batches of one epoch");
  refused(images.sample({1, 1}), good, "sample makes other samples in every epoch");
  refused(mix({images, images}), good, "its samples must come from one source");
  refused(images.batch(2), good, "the plan has batch(2) already");
  EXPECT_THAT([&] { (void)images.batch_by_aspect(nullptr, good); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("needs a function")));
  EXPECT_THAT([&] { (void)images.batch_by_aspect([](ImageSize) { return TransformPtr(); }, good); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("the map of 4x8 is a null pointer")));
  const auto unlike = [](ImageSize shape) {
    return map_function({.name = "unlike",
                         .inputs = {"number"},
                         .outputs = {{"image", shape.width == 8 ? DType::u8 : DType::f32, {4}}}},
                        [](std::span<const ConstTensorView>, Outputs, Random&) {});
  };
  EXPECT_THAT([&] { (void)images.batch_by_aspect(unlike, good); },
              ThrowsMessage<std::invalid_argument>(HasSubstr(
                  "differ in more than extents: one has image u8 [4], another image f32 [4]")));
  EXPECT_THAT(
      [&] {
        (void)images.batch_by_aspect(paint, good).prefetch_to_devices(host_devices(4)).loader();
      },
      ThrowsMessage<std::invalid_argument>(
          HasSubstr("batch_by_aspect: 2 rows, of images of 4x8, do not divide over 4 replicas: set "
                    "multiple")));
  EXPECT_THAT(
      [&] { (void)images.batch_by_aspect(paint, good).transform_on_device({.field = "x"}); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("no field 'x'")));
}

TEST(AspectShapes, AreThoseOfKohyasScripts) {
  // make_bucket_resolutions((1024, 1024), 512, 2048, 64), those of a ratio from 1/2 to 2.
  EXPECT_THAT(aspect_shapes(),
              ElementsAre(ImageSize(1408, 704), ImageSize(1344, 768), ImageSize(1280, 768),
                          ImageSize(1216, 832), ImageSize(1152, 896), ImageSize(1088, 960),
                          ImageSize(1024, 1024), ImageSize(960, 1088), ImageSize(896, 1152),
                          ImageSize(832, 1216), ImageSize(768, 1280), ImageSize(768, 1344),
                          ImageSize(704, 1408)));
  EXPECT_EQ(aspect_shapes({.ratio = {0.25, 4}}).size(), 33U);
  // make_bucket_resolutions((512, 512), 256, 1024, 64)
  const Sizes small = aspect_shapes({.pixels = 512 * 512, .ratio = {0.25, 4}});
  EXPECT_EQ(small.size(), 17U);
  EXPECT_EQ(small.front(), ImageSize(1024, 256));
}

TEST(AspectShapes, RefusesWhatCannotBe) {
  const auto refused = [](const AspectShapesOptions& options, const std::string& message) {
    EXPECT_THAT([&] { (void)aspect_shapes(options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  refused({.multiple = 0}, "multiple is 1 or more, found 0");
  refused({.pixels = 4000}, "from 64x64 to 67108864 of them, found 4000");
  refused({.pixels = UINT64_MAX}, "from 64x64 to 67108864");
  refused({.ratio = {2, 1}}, "ratio is a range above 0, width over height, found [2, 1]");
  refused({.ratio = {1.01, 1.02}}, "no shape of multiples of 64 has a ratio from 1.01 to 1.02");
  refused({.pixels = 1 << 26, .multiple = 1}, "more than 4096 such shapes");
}

}  // namespace
}  // namespace penstock
