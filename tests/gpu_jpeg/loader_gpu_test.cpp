// Loaders whose JPEGs are decoded on GPUs: digests, faults and states are the host's. Needs a GPU, and says so where there is none.
#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/device/cuda_support.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock {
namespace {

using namespace testing_images;
using Devices = std::vector<Device>;

constexpr int kSide = 48;
constexpr std::uint64_t kImages = 19;

// A bit of everything: samplings, restart markers, turned and progressive ones, a PNG; number 11 is cut.
Bytes image_of(std::uint64_t number) {
  const auto n = static_cast<int>(number);
  JpegKind kind{.quality = 60 + n % 3 * 15};
  if (n % 4 != 0) kind.sampling = {{2, n % 4 == 1 ? 2 : 1}, {1, 1}, {1, 1}};
  if (n % 5 == 2) kind.restart = 3;
  kind.progressive = n % 13 == 6;
  if (n % 17 == 8) kind = {.input = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE};
  const Pixels pixels = picture(50 + n * 3 % 40, 52 + n * 5 % 30,
                                kind.input == JCS_GRAYSCALE ? 1 : 3, static_cast<unsigned>(n));
  if (n % 19 == 9) return png_of(pixels);
  if (n % 7 == 3) kind.app1 = exif_app1(1 + n % 8);
  Bytes bytes = jpeg_of(pixels, kind);
  if (n == 11) bytes.resize(bytes.size() / 2);
  return bytes;
}

class Images final : public Source {
 public:
  explicit Images(std::vector<Bytes> images) : images_(std::move(images)) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return images_.size(); }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(2);
    for (std::size_t field = 0; field < 2; ++field) {
      const Bytes& bytes = images_[(number + field) % images_.size()];
      record[field] =
          ConstTensorView(bytes.data(), DType::u8, {static_cast<std::int64_t>(bytes.size())});
    }
    return {};
  }
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    return "image " + std::to_string(number);
  }
  [[nodiscard]] std::string fingerprint() const override { return "images"; }

 private:
  std::vector<Bytes> images_;
  std::vector<FieldSpec> fields_{{"image", DType::u8, {kDynamic}},
                                 {"other", DType::u8, {kDynamic}}};
};

std::vector<Bytes> all_images() {
  std::vector<Bytes> images;
  for (std::uint64_t number = 0; number < kImages; ++number) images.push_back(image_of(number));
  return images;
}

std::shared_ptr<MemoryJpegIndex> index_of(const std::vector<Bytes>& images) {
  auto index = std::make_shared<MemoryJpegIndex>();
  for (const Bytes& bytes : images)
    if (auto found = build_jpeg_index(bytes)) index->put(JpegKey::of(bytes), *std::move(found));
  return index;
}

struct Plan {
  std::vector<Bytes> images = all_images();
  std::shared_ptr<JpegIndexStore> index{};
  std::shared_ptr<JpegStats> stats = std::make_shared<JpegStats>();
  ResizeFilter filter = ResizeFilter::bilinear;
  JpegDecoder decoder = JpegDecoder::reference;

  [[nodiscard]] Dataset make() const {
    const auto decode = [&](const char* field, const char* geometry) {
      return decode_image({.field = field,
                           .crop = random_resized_crop(kSide),
                           .flip = 0.5F,
                           .geometry = geometry,
                           .decoder = decoder,
                           .filter = filter,
                           .index = index,
                           .stats = stats});
    };
    return Dataset(std::make_shared<Images>(images))
        .map(decode("image", "place"))
        .map(decode("other", ""))
        .seed(7)
        .shuffle()
        .repeat(2);
  }
};

struct Found {
  std::vector<Digest> steps;
  std::vector<std::string> faults;
  Digest total;
  Digest transformed;

  friend bool operator==(const Found&, const Found&) = default;
};

Found drain(Loader& loader) {
  Found found;
  while (const auto step = loader.next()) {
    found.steps.push_back(step->digest());
    for (const Fault& fault : step->faults()) found.faults.push_back(fault.to_string());
  }
  found.total = loader.digest();
  found.transformed = loader.transformed_digest();
  return found;
}

Dataset batches(const Dataset& data, const Devices& devices) {
  return data.batch(6, {.uneven = true})
      .transform_on_device({.field = "other", .layout = ImageLayout::nhwc, .flip = 0.3})
      .prefetch_to_devices(devices);
}

LoaderOptions options(bool on_gpu, OnFault policy = OnFault::mask, int threads = 2) {
  return {.on_fault = policy,
          .digest = true,
          .digest_transformed = true,
          .decode_on_gpu = on_gpu,
          .threads = threads};
}

class LoaderJpegsGpu : public testing_support::OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    Devices all;
    for (int index = 0; index < std::min(gpu_count(), 8); ++index)
      all.push_back({Device::Kind::cuda, index});
    lists_ = {{all[0]}, all, {all[0], {Device::Kind::host, 0}, all[0]}};
  }
  static Devices hosts(std::size_t count) { return Devices(count, {Device::Kind::host, 0}); }

  std::vector<Devices> lists_;
};

TEST_F(LoaderJpegsGpu, DigestsAndFaultsAreTheHosts) {
  struct Run {
    int threads;
    bool is_prepared;
    OnFault policy = OnFault::mask;
  };
  for (const Devices& devices : lists_)
    for (const Run& run : {Run{1, false}, Run{8, true, OnFault::replace}}) {
      SCOPED_TRACE(testing::Message() << devices.size() << " devices, " << run.threads
                                      << " threads, prepared " << run.is_prepared);
      Loader host =
          batches(Plan{}.make(), hosts(devices.size())).loader(options(false, run.policy));
      const Found expected = drain(host);
      ASSERT_EQ(expected.faults.size(), 4U);  // the cut one, in two fields and two epochs
      Plan plan;
      plan.index = run.is_prepared ? index_of(plan.images) : std::make_shared<MemoryJpegIndex>();
      Loader loader = batches(plan.make(), devices).loader(options(true, run.policy, run.threads));
      ASSERT_EQ(drain(loader), expected);
      const JpegCounts counts = plan.stats->counts();
      const std::uint64_t decoded = counts.own + counts.on_gpu;
      const std::uint64_t share = devices.size() == 3 ? 20 : 10;  // some of the devices are none
      // Others are turned, progressive, too large packed, or met for the first time.
      EXPECT_GT(counts.on_gpu, decoded * (run.is_prepared ? 6 : 2) / share);
      EXPECT_GT(counts.own, 0U);
    }
}

TEST_F(LoaderJpegsGpu, EveryStepResumes) {
  Plan plan;
  plan.index = index_of(plan.images);
  const Dataset data = plan.make();
  Loader host = batches(Plan{}.make(), hosts(1)).loader(options(false));
  std::vector<LoaderState> states{host.state()};
  const Found expected = [&] {
    Found found;
    while (const auto step = host.next()) {
      found.steps.push_back(step->digest());
      states.push_back(host.state());
    }
    return found;
  }();
  Loader loader = batches(data, lists_[0]).loader(options(true));
  for (std::size_t at = 0; at < expected.steps.size(); ++at) {
    loader.restore(states[at]);
    for (std::size_t k = at; k < std::min(at + 3, expected.steps.size()); ++k)
      ASSERT_EQ(loader.next()->digest(), expected.steps[k]) << "resumed at " << at;
  }
  // And the other way round.
  loader.rewind();
  (void)loader.next();
  (void)loader.next();
  const LoaderState state = loader.state();
  host.restore(state);
  EXPECT_EQ(host.next()->digest(), expected.steps[2]);
}

TEST_F(LoaderJpegsGpu, FiltersAndChromaAreTheHosts) {
  // The other two combinations are those of all other tests, and of the kernels' own.
  Plan plan{.filter = ResizeFilter::bicubic, .decoder = JpegDecoder::fast};
  Loader host = batches(plan.make(), hosts(1)).loader(options(false));
  const Found expected = drain(host);
  plan.index = index_of(plan.images);
  Loader loader = batches(plan.make(), lists_[0]).loader(options(true));
  ASSERT_EQ(drain(loader), expected);
}

// What is delivered, byte by byte: also rows that are masked, and fields beside the image.
TEST_F(LoaderJpegsGpu, FieldsAreTheHosts) {
  Plan plan;
  plan.index = index_of(plan.images);
  Loader host = batches(plan.make(), hosts(1)).loader(options(false));
  Loader loader = batches(plan.make(), lists_[0]).loader(options(true));
  while (const auto expected = host.next()) {
    const auto step = loader.next();
    for (const char* field : {"image", "place", "other", "valid"}) {
      const TensorView there = (*step)[0][field];
      (*step)[0].wait_on(stream());
      const auto found = testing_support::to_host(there.bytes(), stream());
      ASSERT_TRUE(std::ranges::equal(found, (*expected)[0][field].bytes())) << field;
    }
  }
  EXPECT_FALSE(loader.next());
}

// Nobody waits for most batches: their places are used again all the same.
TEST_F(LoaderJpegsGpu, BatchesThatNobodyLooksAtDoNoHarm) {
  Plan plan;
  plan.index = index_of(plan.images);
  const auto loader_of = [&](const Devices& devices, bool on_gpu) {
    return plan.make().repeat(3).batch(4).prefetch_to_devices(devices).loader(
        {.on_fault = OnFault::mask, .decode_on_gpu = on_gpu});
  };
  Loader host = loader_of(hosts(1), false);
  Loader loader = loader_of(lists_[0], true);
  std::size_t looked_at = 0;
  while (const auto expected = host.next()) {
    const auto step = loader.next();
    if (step->number() % 9 != 8) continue;
    (*step)[0].wait_on(stream());
    const auto found = testing_support::to_host((*step)[0]["image"].bytes(), stream());
    ASSERT_TRUE(std::ranges::equal(found, (*expected)[0]["image"].bytes()));
    ++looked_at;
  }
  EXPECT_GT(looked_at, 2U);
}

class Spans final : public StageObserver {
 public:
  void begin(Stage, std::uint64_t, std::uint64_t) noexcept override {}
  void end(Stage, std::uint64_t, std::uint64_t) noexcept override {}
  void on_device(const Device&, Stage stage, std::uint64_t step, std::int64_t begin_ns,
                 std::int64_t end_ns) noexcept override {
    const std::lock_guard lock(mutex_);
    if (stage == Stage::decode && begin_ns <= end_ns) steps_.insert(step);
  }
  [[nodiscard]] std::set<std::uint64_t> steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::uint64_t> steps_;
};

TEST_F(LoaderJpegsGpu, TimelinesShowTheDecoding) {
  Plan plan;
  plan.index = index_of(plan.images);
  Spans spans;
  std::set<std::uint64_t> steps;
  {
    LoaderOptions observed = options(true);
    observed.observer = &spans;
    Loader loader = batches(plan.make(), lists_[0]).loader(observed);
    while (const auto step = loader.next()) steps.insert(step->number());
  }
  EXPECT_EQ(spans.steps(), steps);
}

TEST_F(LoaderJpegsGpu, ABudgetCountsWhatDecodingTakes) {
  Plan plan;
  plan.index = index_of(plan.images);
  const auto loader_of = [&](std::size_t mib) {
    LoaderOptions limited = options(true);
    limited.budget_bytes = mib << 20;
    return batches(plan.make(), lists_[0]).loader(limited);
  };
  try {
    (void)loader_of(20);  // 6 rows of two fields want 60 MB
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("for augmentations and decoding on GPUs"),
              std::string::npos)
        << error.what();
  }
  Loader loader = loader_of(120);
  EXPECT_TRUE(loader.next());
  EXPECT_GT(loader.stats().memory_bytes, std::size_t{55} << 20);
}

// Wherever a file is damaged, it is a fault or none as on the host, and no other sample changes.
TEST_F(LoaderJpegsGpu, DamageIsFoundOnTheHost) {
  Plan plan;
  const Bytes whole = jpeg_of(picture(60, 52, 3, 2), {.sampling = {{2, 2}, {1, 1}, {1, 1}}});
  plan.images.clear();
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 16) {
    plan.images.push_back(whole);
    plan.images.back()[at] ^= std::byte{0x55};
    plan.images.push_back({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at)});
    plan.images.push_back(whole);
  }
  Loader host = batches(plan.make(), hosts(1)).loader(options(false));
  const Found expected = drain(host);
  ASSERT_GT(expected.faults.size(), 25U);
  for (const bool is_whole : {false, true}) {
    // What is known of the whole file says nothing of the others.
    plan.index = is_whole ? index_of({whole}) : index_of(plan.images);
    Loader loader = batches(plan.make(), lists_[0]).loader(options(true));
    ASSERT_EQ(drain(loader), expected);
  }
}

// Also where only the last batches had it, and in batch_at; and the next run has nothing of it.
TEST_F(LoaderJpegsGpu, AWrongIndexEndsTheRun) {
  Plan plan;
  plan.images.clear();
  for (unsigned i = 0; i < 16; ++i)
    plan.images.push_back(
        jpeg_of(picture(90, 80, 3, i), {.sampling = {{2, 2}, {1, 1}, {1, 1}}, .restart = 0}));
  const auto index = index_of(plan.images);
  const auto spoil = [&](std::size_t number) {
    auto wrong = *build_jpeg_index(plan.images[number]);
    for (JpegIndex::Entry& entry : wrong.entries) entry.bit ^= entry.mcu == 0 ? 0 : 1;
    index->put(JpegKey::of(plan.images[number]), wrong);
  };
  plan.index = index;
  const Dataset data =
      Dataset(std::make_shared<Images>(plan.images))
          .map(decode_image({.crop = center_crop(60, {.resize = 60}), .index = index}))
          .map(pad({.field = "other", .to = 1, .truncate = true}))
          .seed(3);
  const auto expect_told = [](const auto& run) {
    try {
      run();
      FAIL() << "nobody has noticed";
    } catch (const Error& error) {
      EXPECT_NE(
          std::string(error.what()).find("could not be decoded on the GPU: what its index says"),
          std::string::npos)
          << error.what();
    }
  };
  const auto mend = [&](std::size_t number) {
    index->put(JpegKey::of(plan.images[number]), *build_jpeg_index(plan.images[number]));
  };
  const auto steps_of = [](Loader& loader) {
    std::size_t steps = 0;
    while (loader.next()) ++steps;
    return steps;
  };
  for (const std::size_t number : {std::size_t{0}, std::size_t{15}}) {
    spoil(number);
    Loader loader = data.batch(4).prefetch_to_devices(lists_[0]).loader({.decode_on_gpu = true});
    expect_told([&] { (void)steps_of(loader); });
    expect_told([&] { (void)loader.batch_at(number / 4); });
    mend(number);
    loader.rewind();
    EXPECT_EQ(steps_of(loader), 4U);
  }
  // Where all batches were wrong, one of them is told of.
  for (std::size_t number = 0; number < plan.images.size(); ++number) spoil(number);
  Loader loader = data.batch(2).prefetch_to_devices(lists_[0]).loader({.decode_on_gpu = true});
  expect_told([&] { (void)steps_of(loader); });
  for (std::size_t number = 0; number < plan.images.size(); ++number) mend(number);
  loader.rewind();
  EXPECT_EQ(steps_of(loader), 8U);
}

TEST(LoaderJpegs, WhatNoGpuDecodesIsRefused) {
  const auto refused = [](const Dataset& data) {
    try {
      (void)data.batch(4)
          .prefetch_to_devices({{Device::Kind::host, 0}})
          .loader({.decode_on_gpu = true});
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  const Dataset images(std::make_shared<Images>(std::vector<Bytes>{image_of(0)}));
  const auto decode = [](DecodeImageOptions given) {
    if (!given.index) given.index = std::make_shared<MemoryJpegIndex>();
    given.crop = random_resized_crop(kSide);
    return decode_image(std::move(given));
  };
  const Dataset other = images.map(decode({.field = "other", .scaled = true}));
  const std::string begin = "decode_on_gpu: no image of this plan can be decoded on a GPU: ";
  EXPECT_EQ(
      refused(images.map(pad({.field = "image", .to = 9})).map(pad({.field = "other", .to = 9}))),
      begin + "it has no decode_image");
  EXPECT_EQ(refused(other.map(decode_image({.crop = random_resized_crop(kSide)}))),
            begin +
                "'other': it is decoded at a part of its size (scaled); 'image': decode_image has "
                "no index");
  EXPECT_EQ(refused(other.map(decode({})).map(augment_image({}))),
            begin +
                "'other': it is decoded at a part of its size (scaled); 'image': "
                "augment_image(operations=[]) "
                "takes the pixels on the host");
  EXPECT_EQ(refused(other.map(decode({}))), "taken");
}

}  // namespace
}  // namespace penstock
