// How close does the last metre come to what the machine can do? Copies against bare pinned copies,
// device transforms against copies within the device, and whole loops with kernels that take their
// time.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <penstock/device/device_transform.hpp>
#include <penstock/penstock.hpp>

#include "gpu_kernels.hpp"
#include "src/device/device_augmentation.hpp"
#include "src/device/transfer.hpp"

namespace penstock {
namespace {

constexpr int kCopies = 32;  // of one measurement
constexpr std::size_t kSlots = 4;
const Device kGpu{Device::Kind::cuda, 0};

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

bool skip_without_gpu(benchmark::State& state) {
  if (gpu_count() > 0) return false;
  state.SkipWithError("no GPU here");
  return true;
}

struct Stream {
  Stream() { check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking)); }
  ~Stream() { (void)cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t handle = nullptr;
};

// Levels as a photograph has them: smooth, with noise. Where all are equal, kernels that count levels or look them up seem slower or
// faster than they are.
std::vector<std::byte> photograph(std::size_t bytes) {
  std::vector<std::byte> levels(bytes);
  std::uint32_t noise = 1;
  for (std::size_t i = 0; i < bytes; ++i) {
    noise = noise * 1664525U + 1013904223U;
    levels[i] = static_cast<std::byte>((i / 3 % 224 + i / 50000 + (noise >> 28)) & 0xFF);
  }
  return levels;
}

struct DeviceBytes {
  explicit DeviceBytes(std::size_t bytes) {
    void* raw = nullptr;
    check(cudaMalloc(&raw, bytes));
    data = static_cast<std::byte*>(raw);
    static const std::vector<std::byte> tile = photograph(7 << 20);
    for (std::size_t at = 0; at < bytes; at += tile.size())
      check(cudaMemcpy(data + at, tile.data(), std::min(tile.size(), bytes - at),
                       cudaMemcpyHostToDevice));
  }
  ~DeviceBytes() { (void)cudaFree(data); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  std::byte* data = nullptr;
};

std::shared_ptr<staging::HostMemory> pinned(std::size_t bytes) {
  auto memory = staging::HostMemory::make(bytes, numa_node(kGpu));
  device::pin_host_memory(*memory, {Device::Kind::cuda, 0});
  return memory;
}

// ---- to the device ----

void BM_ToDevice_Ceiling_BareCopy(benchmark::State& state) {
  if (skip_without_gpu(state)) return;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto memory = pinned(kSlots * bytes);
  const DeviceBytes target(kSlots * bytes);
  const Stream stream;
  for (auto _ : state) {
    for (std::size_t k = 0; k < kCopies; ++k) {
      const std::size_t at = k % kSlots * bytes;
      check(cudaMemcpyAsync(target.data + at, memory->bytes().data() + at, bytes,
                            cudaMemcpyHostToDevice, stream.handle));
    }
    check(cudaStreamSynchronize(stream.handle));
  }
  state.SetBytesProcessed(state.iterations() * kCopies * state.range(0));
}

void BM_ToDevice_Transfer(benchmark::State& state) {
  if (skip_without_gpu(state)) return;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto memory = pinned(kSlots * bytes);
  const auto ring = staging::StagingRing::make(memory, memory->bytes(), kSlots, bytes);
  const auto transfer = device::open_transfer(kGpu, {.slots = kSlots, .slice_bytes = bytes});
  for (auto _ : state) {
    // As a loader holds them: several under way at once.
    std::array<std::shared_ptr<device::DeviceSlice>, kSlots> held;
    for (std::size_t k = 0; k < kCopies; ++k) {
      auto slot = std::make_shared<staging::StagingLease>(ring->acquire({}));
      std::shared_ptr<device::DeviceSlice>& slice = held[k % kSlots];
      slice.reset();
      slice = transfer->reserve({});
      const auto filled = slot->bytes();
      transfer->enqueue(*slice, {.slot = std::move(slot), .bytes = filled});
      transfer->transform(*slice);
    }
    for (const auto& slice : held) slice->synchronize();
  }
  state.SetBytesProcessed(state.iterations() * kCopies * state.range(0));
}

#define SIZES Arg(1 << 20)->Arg(4 << 20)->Arg(16 << 20)->Arg(64 << 20)->Arg(256 << 20)
BENCHMARK(BM_ToDevice_Ceiling_BareCopy)->SIZES->UseRealTime();
BENCHMARK(BM_ToDevice_Transfer)->SIZES->UseRealTime();

// ---- device transforms, of so many images ----

constexpr int kSide = 224;
constexpr std::size_t kImageBytes = std::size_t{kSide} * kSide * 3;
constexpr std::size_t kSets = 4;  // in turn, so that none is left in the cache

template <class Work>
void time_on_device(benchmark::State& state, std::size_t bytes_moved, const Work& work) {
  check(cudaDeviceSynchronize());  // what was filled and copied: the stream does not wait for it
  const Stream stream;
  std::size_t set = 0;
  for (auto _ : state) {
    for (int k = 0; k < kCopies; ++k) work(set++ % kSets, stream.handle);
    check(cudaStreamSynchronize(stream.handle));
  }
  state.SetBytesProcessed(state.iterations() * kCopies * static_cast<std::int64_t>(bytes_moved));
}

void BM_DeviceTransform_Ceiling_DeviceCopy(benchmark::State& state) {
  if (skip_without_gpu(state)) return;
  // As many bytes read and written as a transform to f16 moves.
  const std::size_t half = static_cast<std::size_t>(state.range(0)) * kImageBytes * 3 / 2;
  const DeviceBytes from(kSets * half);
  const DeviceBytes to(kSets * half);
  time_on_device(state, 2 * half, [&](std::size_t set, cudaStream_t stream) {
    const std::size_t at = set * half;
    check(cudaMemcpyAsync(to.data + at, from.data + at, half, cudaMemcpyDeviceToDevice, stream));
  });
}

void transform_images(benchmark::State& state, const DeviceTransformOptions& options) {
  if (skip_without_gpu(state)) return;
  const auto images = static_cast<std::size_t>(state.range(0));
  const DeviceTransform transform(
      options, {.name = "image", .dtype = DType::u8, .shape = {kSide, kSide, 3}});
  std::vector<SampleId> samples(images);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].number = i;
  std::vector<DeviceTransformRow> rows(images);
  transform.draw(RandomKey(1, 0), 0, 0, samples, {}, rows);
  const std::size_t in_bytes = images * kImageBytes;
  const std::size_t out_bytes = images * transform.output().bytes();
  const DeviceBytes in(kSets * in_bytes);
  const DeviceBytes row_bytes(images * sizeof(DeviceTransformRow));
  const DeviceBytes out(kSets * out_bytes);
  check(cudaMemcpy(row_bytes.data, rows.data(), images * sizeof(DeviceTransformRow),
                   cudaMemcpyHostToDevice));
  time_on_device(state, in_bytes + out_bytes, [&](std::size_t set, cudaStream_t stream) {
    transform.enqueue(in.data + set * in_bytes,
                      reinterpret_cast<const DeviceTransformRow*>(row_bytes.data), images,
                      out.data + set * out_bytes, stream);
  });
}

const std::vector<float> kMean{0.485F, 0.456F, 0.406F};
const std::vector<float> kDeviation{0.229F, 0.224F, 0.225F};

void BM_DeviceTransform_F16_Nchw(benchmark::State& state) {
  transform_images(state, {.dtype = DType::f16, .mean = kMean, .std = kDeviation});
}
void BM_DeviceTransform_Bf16_Nhwc(benchmark::State& state) {
  transform_images(
      state, {.dtype = DType::bf16, .layout = ImageLayout::nhwc, .mean = kMean, .std = kDeviation});
}
void BM_DeviceTransform_F32_Nchw(benchmark::State& state) {
  transform_images(state, {.mean = kMean, .std = kDeviation});
}
void BM_DeviceTransform_F16_Nchw_FlipEraseMixup(benchmark::State& state) {
  transform_images(state, {.dtype = DType::f16,
                           .mean = kMean,
                           .std = kDeviation,
                           .flip = 0.5,
                           .mixup = 0.4,
                           .erase = {.probability = 0.25}});
}

#define IMAGES Arg(8)->Arg(256)
BENCHMARK(BM_DeviceTransform_Ceiling_DeviceCopy)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceTransform_F16_Nchw)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceTransform_Bf16_Nhwc)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceTransform_F32_Nchw)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceTransform_F16_Nchw_FlipEraseMixup)->IMAGES->UseRealTime();

// ---- augmentations, of so many images; beside a copy of the images ----

void BM_DeviceAugment_Ceiling_DeviceCopy(benchmark::State& state) {
  if (skip_without_gpu(state)) return;
  const std::size_t bytes = static_cast<std::size_t>(state.range(0)) * kImageBytes;
  const DeviceBytes from(kSets * bytes);
  const DeviceBytes to(kSets * bytes);
  time_on_device(state, 2 * bytes, [&](std::size_t set, cudaStream_t stream) {
    const std::size_t at = set * bytes;
    check(cudaMemcpyAsync(to.data + at, from.data + at, bytes, cudaMemcpyDeviceToDevice, stream));
  });
}

// Bytes a second are those of one pass over the images, however many passes there are.
void augment_images(benchmark::State& state, std::vector<Augmentation> operations) {
  if (skip_without_gpu(state)) return;
  const auto images = static_cast<std::size_t>(state.range(0));
  DeviceTransformOptions options;
  options.augment = std::move(operations);
  const device::DeviceAugmentation augmentation(
      options, {.name = "image", .dtype = DType::u8, .shape = {kSide, kSide, 3}});
  std::vector<SampleId> samples(images);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].number = i;
  std::vector<DeviceTransformRow> rows(images);
  for (DeviceTransformRow& row : rows) row.present = 1;
  std::vector<std::byte> programs(images * augmentation.program_bytes());
  std::vector<std::byte> passes(images * augmentation.pass_bytes());
  const auto groups =
      augmentation.draw(RandomKey(1, 0), samples, rows, programs.data(), passes.data());
  const std::size_t bytes = images * kImageBytes;
  const DeviceBytes in(kSets * bytes);
  const DeviceBytes on_device(programs.size() + passes.size());
  const DeviceBytes scratch(augmentation.scratch_bytes(images));
  check(cudaMemcpy(on_device.data, programs.data(), programs.size(), cudaMemcpyHostToDevice));
  check(cudaMemcpy(on_device.data + programs.size(), passes.data(), passes.size(),
                   cudaMemcpyHostToDevice));
  time_on_device(state, 2 * bytes, [&](std::size_t set, cudaStream_t stream) {
    (void)augmentation.enqueue(in.data + set * bytes, groups, on_device.data,
                               on_device.data + programs.size(), images, scratch.data, stream);
  });
  std::size_t most = 0;
  for (const augment::PassGroup& group : groups)
    most = std::max<std::size_t>(most, group.level + std::size_t{1});
  state.counters["passes"] = static_cast<double>(most);
}

void BM_DeviceAugment_Points(benchmark::State& state) {
  augment_images(state, {brightness({0.6, 1.4}), saturation({0.6, 1.4}), solarize(200)});
}
void BM_DeviceAugment_Equalize(benchmark::State& state) { augment_images(state, {equalize()}); }
void BM_DeviceAugment_Autocontrast(benchmark::State& state) {
  augment_images(state, {autocontrast()});
}
void BM_DeviceAugment_Rotate(benchmark::State& state) {
  augment_images(state, {rotate({-30, 30}, {.interpolation = Interpolation::bilinear})});
}
void BM_DeviceAugment_Blur(benchmark::State& state) { augment_images(state, {gaussian_blur(23)}); }
void BM_DeviceAugment_ColorJitter(benchmark::State& state) {
  const Range strength = factors(0.4);
  augment_images(
      state,
      {color_jitter({.brightness = strength, .contrast = strength, .saturation = strength})});
}
void BM_DeviceAugment_TrivialAugmentWide(benchmark::State& state) {
  augment_images(state, {trivial_augment_wide()});
}
void BM_DeviceAugment_TimmRandAugment(benchmark::State& state) {
  augment_images(state, {timm_rand_augment()});
}
void BM_DeviceAugment_AugMix(benchmark::State& state) { augment_images(state, {aug_mix()}); }

BENCHMARK(BM_DeviceAugment_Ceiling_DeviceCopy)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceAugment_Points)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceAugment_Equalize)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceAugment_Autocontrast)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceAugment_Rotate)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceAugment_Blur)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceAugment_ColorJitter)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceAugment_TrivialAugmentWide)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceAugment_TimmRandAugment)->IMAGES->UseRealTime();
BENCHMARK(BM_DeviceAugment_AugMix)->IMAGES->UseRealTime();

// ---- the whole loop ----

// Batches of images that need no decoding, and a training step of so many milliseconds. Where
// copies and device transforms overlap with it, a step takes what the kernel takes: 'overlap' is the
// kernel's time over the step's.
void BM_Loop_KernelOf(benchmark::State& state) {
  if (skip_without_gpu(state)) return;
  const auto ms = static_cast<double>(state.range(0));
  const std::int64_t images = state.range(1);
  const SourcePtr source = source::numbers(std::uint64_t{1} << 20, kImageBytes);
  const Dataset plan =
      Dataset(source)
          .repeat()
          .map(map_function(
              {.name = "as_image",
               .inputs = {"number"},
               .outputs = {{.name = "image", .dtype = DType::u8, .shape = {kSide, kSide, 3}}}},
              [](auto in, auto out, Random&) {
                std::memcpy(out[0].raw(), in[0].raw(), kImageBytes);
              }))
          .batch(static_cast<std::uint64_t>(images))
          .transform_on_device({.dtype = DType::f16, .mean = kMean, .std = kDeviation, .flip = 0.5})
          .prefetch_to_devices({kGpu}, {.depth = 3});
  Loader loader = plan.loader();
  const Stream stream;
  (void)loader.next();
  const Stats before = loader.stats();
  for (auto _ : state) {
    const Step step = *loader.next();
    step[0].wait_on(stream.handle);
    spin(ms, stream.handle);
    check(cudaStreamSynchronize(stream.handle));
  }
  const Stats after = loader.stats();
  const double seconds = after.seconds - before.seconds;
  state.SetItemsProcessed(state.iterations() * images);
  state.counters["overlap"] = static_cast<double>(state.iterations()) * ms * 1e-3 / seconds;
  state.counters["stall"] = (after.wait_s() - before.wait_s()) / seconds;
}
BENCHMARK(BM_Loop_KernelOf)
    ->ArgNames({"ms", "images"})
    ->Args({1, 8})
    ->Args({1, 256})
    ->Args({5, 256})
    ->Args({20, 256})
    ->UseRealTime();

}  // namespace
}  // namespace penstock
