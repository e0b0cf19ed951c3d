// What does a device transform cost on a host device? A batch of 64 images of 224 x 224, against a plain loop that widens the
// same bytes to numbers of the same size. Threads have a batch each, as the loader's have. And in a loader, whose images are
// in memory: with its augmentations in the device transform, and in augment_image before it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <hwy/aligned_allocator.h>

#include <penstock/penstock.hpp>

#include "src/device/device_augmentation.hpp"

namespace penstock {
namespace {

constexpr int kSide = 224;
constexpr std::size_t kRows = 64;
constexpr std::size_t kBytes = std::size_t{kSide} * kSide * 3;

std::vector<std::byte> pixels() {
  std::vector<std::byte> all(kRows * kBytes);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<std::byte>(i * 2654435761U >> 7);
  return all;
}

// The ceiling, with the instructions that the machine has.
#if defined(__x86_64__) && defined(__gnu_linux__)
#define PENSTOCK_EVERY_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PENSTOCK_EVERY_MACHINE
#endif
PENSTOCK_EVERY_MACHINE void widen(const std::byte* in, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
}
PENSTOCK_EVERY_MACHINE void widen(const std::byte* in, std::uint16_t* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint16_t>(in[i]);
}

template <class T>
void BM_Ceiling(benchmark::State& state) {
  const std::vector<std::byte> in = pixels();
  std::vector<T> out(in.size());
  for (auto _ : state) {
    widen(in.data(), out.data(), in.size());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}
BENCHMARK(BM_Ceiling<float>)->Name("ceiling_u8_to_32_bits")->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(BM_Ceiling<std::uint16_t>)
    ->Name("ceiling_u8_to_16_bits")
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

enum class What : std::uint8_t { normalise, flip_and_erase, mix };

void BM_Transform(benchmark::State& state, DType dtype, ImageLayout layout, What what) {
  DeviceTransformOptions options{.dtype = dtype,
                                 .layout = layout,
                                 .mean = {0.485F, 0.456F, 0.406F},
                                 .std = {0.229F, 0.224F, 0.225F}};
  if (what == What::flip_and_erase) {
    options.flip = 0.5;
    options.erase = {.probability = 0.25};
  }
  if (what == What::mix) options.mixup = 0.4;
  const DeviceTransform transform(
      options, {.name = "image", .dtype = DType::u8, .shape = {kSide, kSide, 3}});
  const std::vector<std::byte> in = pixels();
  std::vector<SampleId> samples(kRows);
  for (std::size_t i = 0; i < kRows; ++i) samples[i].number = i;
  std::vector<DeviceTransformRow> rows(kRows);
  transform.draw(RandomKey(7, 0), 0, 0, samples, {}, rows);
  const std::size_t out_bytes = kRows * transform.output().bytes();
  const auto out = hwy::AllocateAligned<std::byte>(out_bytes);  // as the loader's
  std::memset(out.get(), 0, out_bytes);  // so that its pages are there before, as the loader's are
  for (auto _ : state) {
    transform.run(in.data(), rows, out.get());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}

// What the host does for augmentations that run on a GPU: an item is an image.
void BM_DrawAugmentations(benchmark::State& state, const Augmentation& operation) {
  DeviceTransformOptions options;
  options.augment = {operation};
  const device::DeviceAugmentation augmentation(
      options, {.name = "image", .dtype = DType::u8, .shape = {kSide, kSide, 3}});
  std::vector<SampleId> samples(kRows);
  std::vector<DeviceTransformRow> rows(kRows);
  for (DeviceTransformRow& row : rows) row.present = 1;
  std::vector<std::byte> programs(kRows * augmentation.program_bytes());
  std::vector<std::byte> passes(kRows * augmentation.pass_bytes());
  std::uint64_t number = 0;
  for (auto _ : state) {
    for (SampleId& sample : samples) sample.number = number++;
    benchmark::DoNotOptimize(
        augmentation.draw(RandomKey(7, 0), samples, rows, programs.data(), passes.data()));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}

class Images final : public Source {
 public:
  [[nodiscard]] std::uint64_t size() const noexcept override { return kRows; }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(1);
    record[0] = ConstTensorView(pixels_.data() + number * kBytes, DType::u8, {kSide, kSide, 3});
    return {};
  }
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    return "image " + std::to_string(number);
  }
  [[nodiscard]] std::string fingerprint() const override { return "images"; }

 private:
  std::vector<std::byte> pixels_ = pixels();
  std::vector<FieldSpec> fields_{{"image", DType::u8, {kSide, kSide, 3}}};
};

// Where a loader augments. An item is an image.
enum class Where : std::uint8_t { nowhere, in_a_map, on_the_device };

void BM_Loader(benchmark::State& state, const std::vector<Augmentation>& operations, Where where,
               double mixup) {
  Dataset images = Dataset(std::make_shared<Images>()).seed(7).repeat();
  if (where == Where::in_a_map) images = images.map(augment_image({.operations = operations}));
  DeviceTransformOptions options{
      .mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}, .mixup = mixup};
  if (where == Where::on_the_device) options.augment = operations;
  Loader loader = images.batch(kRows)
                      .transform_on_device(options)
                      .prefetch_to_devices(host_devices(1))
                      .loader({.threads = static_cast<int>(state.range(0))});
  (void)loader.next();
  for (auto _ : state) benchmark::DoNotOptimize(loader.next());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}

const bool kRegistered = [] {
  for (const auto& [name, operations] :
       {std::pair{"trivial_augment_wide", std::vector{trivial_augment_wide()}},
        std::pair{"timm_rand_augment", std::vector{timm_rand_augment()}}})
    for (const auto& [where, how] : {std::pair{Where::in_a_map, "augment_image_"},
                                     std::pair{Where::on_the_device, "transform_on_device_"}})
      for (const double mixup : {0.0, 0.4})
        benchmark::RegisterBenchmark(
            (std::string("loader_") + how + name + (mixup > 0 ? "_and_mixup" : "")).c_str(),
            BM_Loader, operations, where, mixup)
            ->ArgName("threads")
            ->Arg(1)
            ->Arg(2)
            ->Arg(8)
            ->UseRealTime()
            ->MeasureProcessCPUTime();
  for (const double mixup : {0.0, 0.4})
    benchmark::RegisterBenchmark(mixup > 0 ? "loader_mixup" : "loader_normalise", BM_Loader,
                                 std::vector<Augmentation>{}, Where::nowhere, mixup)
        ->ArgName("threads")
        ->Arg(1)
        ->Arg(2)
        ->Arg(8)
        ->UseRealTime()
        ->MeasureProcessCPUTime();

  for (const auto& [name, operation] :
       {std::pair{"draw_trivial_augment_wide", trivial_augment_wide()},
        std::pair{"draw_timm_rand_augment", timm_rand_augment()},
        std::pair{"draw_aug_mix", aug_mix()}})
    benchmark::RegisterBenchmark(name, BM_DrawAugmentations, operation);

  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const ImageLayout layout : {ImageLayout::nchw, ImageLayout::nhwc})
      for (const auto& [what, name] :
           {std::pair{What::normalise, "normalise"},
            std::pair{What::flip_and_erase, "flip_and_erase"}, std::pair{What::mix, "mixup"}})
        benchmark::RegisterBenchmark(
            (std::string(name_of(dtype)) + "_" + name_of(layout) + "_" + name).c_str(),
            BM_Transform, dtype, layout, what)
            ->Threads(1)
            ->Threads(2)
            ->UseRealTime();
  return true;
}();

}  // namespace
}  // namespace penstock
