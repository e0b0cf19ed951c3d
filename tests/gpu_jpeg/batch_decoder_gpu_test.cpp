// The decoder of batches: both sides' pixels, batches in parts, wrong indices. Needs a GPU, and says so where there is none.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/gpu_jpeg/batch_decoder.hpp>

#include "tests/device/cuda_support.hpp"
#include "tests/gpu_jpeg/host_pixels.hpp"

namespace penstock::gpu_jpeg {
namespace {

using namespace testing_images;
using device::DeviceMemory;
using testing_support::to_host;

constexpr ImageSize kSize{20, 24};
constexpr std::size_t kRow = std::size_t{20} * 24 * 3;
constexpr std::size_t kImages = 9;
constexpr std::size_t kProgressive = 3;
constexpr std::size_t kCut = 6;

class BatchDecoderGpu : public testing_support::OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    for (unsigned i = 0; i < kImages; ++i) {
      JpegKind kind{.sampling = {{2, 2}, {1, 1}, {1, 1}}};
      kind.progressive = i == kProgressive;
      kind.restart = i == 5 ? 2 : 0;
      all_.push_back({.bytes = jpeg_of(picture(60 + 7 * static_cast<int>(i), 50, 3, i), kind),
                      .box = {3, 2, 40, 31},
                      .mirror = i % 2 == 0});
    }
    cut_ = all_[kCut].bytes;
    cut_.resize(cut_.size() / 3);
    for (const Wanted& wanted : all_)
      images_.push_back({.bytes = wanted.bytes, .box = wanted.box, .mirror = wanted.mirror});
    images_[kCut].bytes = cut_;
  }

  void expect_pixels(const DeviceMemory& memory, ResizeFilter filter = ResizeFilter::bilinear,
                     jpeg::Chroma chroma = jpeg::Chroma::smooth) const {
    const auto found = to_host({memory.data(), kRow * kImages}, stream());
    for (std::size_t i = 0; i < kImages; ++i) {
      const auto expected =
          i == kCut ? std::vector<std::byte>(kRow) : on_host(all_[i], kSize, filter, chroma);
      ASSERT_EQ(std::memcmp(found.data() + kRow * i, expected.data(), kRow), 0) << i;
    }
  }

  std::vector<Wanted> all_;
  Bytes cut_;
  std::vector<BatchImage> images_;
};

TEST_F(BatchDecoderGpu, LearnsWhatTheHostDecodedAndQueuesBatches) {
  BatchDecoder decoder({.size = kSize});
  std::array<std::unique_ptr<DeviceMemory>, 5> out;
  for (std::size_t round = 0; round < out.size(); ++round) {
    out[round] = std::make_unique<DeviceMemory>(0, kRow * kImages);
    const BatchReport report = decoder.decode(images_, out[round]->data(), stream());
    EXPECT_EQ(report.on_host, round == 0 ? kImages : 2U);  // later the progressive and the cut one
    EXPECT_EQ(report.on_gpu, kImages - report.on_host);
    for (std::size_t i = 0; i < kImages; ++i)
      EXPECT_EQ(report.faults[i].has_value(), i == kCut) << i;
  }
  for (const auto& memory : out) expect_pixels(*memory);
  decoder.wait();
}

TEST_F(BatchDecoderGpu, BatchesGoInPartsWhereMemoryIsSmall) {
  const auto index = std::make_shared<MemoryJpegIndex>();
  for (const Wanted& wanted : all_)
    if (auto found = build_jpeg_index(wanted.bytes)) index->put(JpegKey::of(wanted.bytes), *found);
  const DeviceMemory out(0, kRow * kImages);
  for (const std::size_t scratch : {std::size_t{0}, std::size_t{60'000}, std::size_t{100'000}}) {
    BatchDecoder decoder({.size = kSize,
                          .filter = ResizeFilter::bicubic,
                          .chroma = jpeg::Chroma::repeated,
                          .index = index,
                          .scratch_bytes = scratch});
    const BatchReport report = decoder.decode(images_, out.data(), stream());
    EXPECT_EQ(report.on_gpu, scratch == 0 ? 0 : kImages - 2);  // too small for any of them
    expect_pixels(out, ResizeFilter::bicubic, jpeg::Chroma::repeated);
  }
}

enum class What { bit, dc };
class WrongIndexGpu : public BatchDecoderGpu, public testing::WithParamInterface<What> {};
INSTANTIATE_TEST_SUITE_P(Entries, WrongIndexGpu, testing::Values(What::bit, What::dc));

TEST_P(WrongIndexGpu, IsToldOnce) {
  const auto index = std::make_shared<MemoryJpegIndex>();
  const Bytes& bytes = all_[0].bytes;
  auto wrong = build_jpeg_index(bytes);
  ASSERT_TRUE(wrong);
  if (GetParam() == What::bit) wrong->entries[1].bit ^= 1;
  if (GetParam() == What::dc) wrong->entries[1].dc[0] += 50;
  ASSERT_GE(wrong->entries.size(), 3U);
  index->put(JpegKey::of(bytes), *wrong);
  BatchDecoder decoder({.size = kSize, .index = index});
  const DeviceMemory out(0, kRow);
  const BatchReport report = decoder.decode({{{.bytes = bytes}}}, out.data(), stream());
  ASSERT_EQ(report.on_gpu, 1U);
  try {
    decoder.wait();
    FAIL() << "nothing was told";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "image 0 of an earlier batch could not be decoded on the GPU: what the index says "
                 "of it is wrong. Its "
                 "row holds anything. Begin with a new index; if you wrote none by yourself, this "
                 "is a bug of Penstock");
  }
  decoder.wait();  // told once
}

TEST_F(BatchDecoderGpu, AnIndexOfAnotherSizeOnlyCostsTime) {
  const auto index = std::make_shared<MemoryJpegIndex>();
  auto wrong = build_jpeg_index(all_[0].bytes);
  ASSERT_TRUE(wrong);
  wrong->width = wrong->height = 20;
  index->put(JpegKey::of(all_[0].bytes), *wrong);
  BatchDecoder decoder({.size = kSize, .index = index});
  const DeviceMemory out(0, kRow * kImages);
  for (int round = 0; round < 2; ++round) {
    (void)decoder.decode(images_, out.data(), stream());
    expect_pixels(out);
  }
}

TEST_F(BatchDecoderGpu, ACaptureIsRefused) {
  BatchDecoder decoder({.size = kSize});
  const DeviceMemory out(0, kRow * kImages);
  device::check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed));
  EXPECT_THROW((void)decoder.decode(images_, out.data(), stream()), CudaError);
  cudaGraph_t graph = nullptr;
  (void)cudaStreamEndCapture(stream(), &graph);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  (void)decoder.decode(images_, out.data(), stream());
  expect_pixels(out);
}

TEST_F(BatchDecoderGpu, OptionsAndBoxesAreChecked) {
  EXPECT_THROW(BatchDecoder({.device = {Device::Kind::host, 0}, .size = kSize}),
               std::invalid_argument);
  EXPECT_THROW(BatchDecoder({.device = {Device::Kind::cuda, gpu_count()}, .size = kSize}),
               CudaError);
  EXPECT_THROW(BatchDecoder({.size = {0, 4}}), std::invalid_argument);
  EXPECT_THROW(BatchDecoder({.size = kSize, .filter = ResizeFilter::pillow_bicubic}),
               std::invalid_argument);
  EXPECT_THROW(BatchDecoder({.size = kSize, .index = nullptr}), std::invalid_argument);
  EXPECT_THROW(BatchDecoder({.size = {50'000, 50'000}}), std::invalid_argument);
  BatchDecoder decoder({.size = kSize});
  const DeviceMemory out(0, kRow * kImages);
  for (int round = 0; round < 2; ++round) {  // decoded by the host, and then by the GPU
    std::vector<BatchImage> images = images_;
    images[0].box = Region{50, 0, 20, 20};
    try {
      (void)decoder.decode(images, out.data(), stream());
      FAIL() << "taken";
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(),
                   "a box of 20x20 pixels at (50, 0) is not within its image, which has 60x50");
    }
    (void)decoder.decode(images_, out.data(), stream());
    expect_pixels(out);
  }
}

}  // namespace
}  // namespace penstock::gpu_jpeg
