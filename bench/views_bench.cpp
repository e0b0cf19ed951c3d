// What do several crops of one image cost: DINO's two large and eight small ones by decode_views, by
// ten calls of decode_image, and by one? On one thread, from memory; time is an image's.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <penstock/penstock.hpp>

#include "bench_images.hpp"

namespace penstock::bench {
namespace {

constexpr std::size_t kMostImages = 200;
constexpr int kLarge = 2;
constexpr int kSmall = 8;

const Crop& large() {
  static const Crop kCrop = random_resized_crop(224, {.scale = {0.4, 1}});
  return kCrop;
}
const Crop& small() {
  static const Crop kCrop = random_resized_crop(96, {.scale = {0.05, 0.4}});
  return kCrop;
}

const std::vector<std::vector<std::byte>>& encoded() {
  static const std::vector<std::vector<std::byte>> kImages = [] {
    const Dataset dataset = images();
    std::vector<std::vector<std::byte>> all;
    Record record;
    for (std::uint64_t i = 0; i < dataset.source().size() && all.size() < kMostImages; ++i) {
      (void)dataset.source().read(i, record);
      const auto bytes = record[0].bytes();
      all.emplace_back(bytes.begin(), bytes.end());
    }
    return all;
  }();
  return kImages;
}

// A transform with the memory that it writes to.
class Runner {
 public:
  explicit Runner(TransformPtr transform) : transform_(std::move(transform)) {
    const std::vector<FieldSpec> fields{{"image", DType::u8, {kDynamic}}};
    const std::vector<FieldSpec> outputs = transform_->bind(fields).outputs;
    for (const FieldSpec& output : outputs) memory_.emplace_back(output.bytes());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      out_.emplace_back(memory_[i].data(), outputs[i].dtype, outputs[i].shape);
  }

  void operator()(std::span<const std::byte> bytes, std::uint64_t number, std::uint16_t stream) {
    const ConstTensorView in(bytes.data(), DType::u8, {std::ssize(bytes)});
    Random random(RandomKey(7, 1), SampleId{.number = number}, stream);
    if (!transform_->apply(std::span(&in, 1), out_, random))
      throw std::runtime_error("an image that cannot be decoded: measure others");
  }

 private:
  TransformPtr transform_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<TensorView> out_;
};

template <class Function>
void measure(benchmark::State& state, Function function) {
  const auto& images = encoded();  // made once, and not timed
  const auto epoch = [&] {
    for (std::size_t i = 0; i < images.size(); ++i) function(images[i], i);
  };
  epoch();  // an index is built in the first one
  for (auto _ : state) epoch();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(images.size()));
}

std::shared_ptr<MemoryJpegIndex> index_or_none(bool with) {
  return with ? std::make_shared<MemoryJpegIndex>() : nullptr;
}

// The ceiling: every pixel decoded, none resized.
void BM_Ceiling_Decoder(benchmark::State& state) {
  jpeg::Decoder decoder;
  std::vector<std::uint8_t> pixels;
  measure(state, [&](std::span<const std::byte> bytes, std::size_t) {
    const auto info = decoder.open(bytes);
    if (!info) throw std::runtime_error("no JPEG: measure others");
    const std::size_t row = 3 * static_cast<std::size_t>(info->width);
    pixels.resize(row * static_cast<std::size_t>(info->height));
    if (!decoder.decode({.chroma = jpeg::Chroma::smooth}, pixels, row))
      throw std::runtime_error("an image that cannot be decoded: measure others");
  });
}

void BM_DecodeImage_One(benchmark::State& state) {
  Runner one(
      decode_image({.crop = large(), .flip = 0.5F, .index = index_or_none(state.range(0) != 0)}));
  measure(state, [&](std::span<const std::byte> bytes, std::size_t i) { one(bytes, i, 0); });
}

void BM_DecodeImage_Ten(benchmark::State& state) {
  const auto index = index_or_none(state.range(0) != 0);
  Runner two(decode_image({.crop = large(), .flip = 0.5F, .index = index}));
  Runner eight(decode_image({.crop = small(), .flip = 0.5F, .index = index}));
  measure(state, [&](std::span<const std::byte> bytes, std::size_t i) {
    for (int copy = 0; copy < kLarge; ++copy) two(bytes, i, static_cast<std::uint16_t>(copy));
    for (int copy = 0; copy < kSmall; ++copy)
      eight(bytes, i, static_cast<std::uint16_t>(256 + copy));
  });
}

void BM_DecodeViews_TwoAndEight(benchmark::State& state) {
  Runner views(
      decode_views({.views = {{.field = "global", .crop = large(), .count = kLarge, .flip = 0.5F},
                              {.field = "local", .crop = small(), .count = kSmall, .flip = 0.5F}},
                    .index = index_or_none(state.range(0) != 0)}));
  measure(state, [&](std::span<const std::byte> bytes, std::size_t i) { views(bytes, i, 0); });
}

BENCHMARK(BM_Ceiling_Decoder)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_DecodeImage_One)->ArgName("index")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_DecodeImage_Ten)->ArgName("index")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_DecodeViews_TwoAndEight)
    ->ArgName("index")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::bench
