// How near does a JPEG file come to a training crop at the speed of the decoder alone? The ceiling
// row is libjpeg-turbo decoding the very same regions from memory, without resizing anything.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include <penstock/penstock.hpp>

#include "bench_images.hpp"
#include "libjpeg_region.hpp"

namespace penstock::bench {
namespace {

constexpr std::uint64_t kSeed = 7;

const std::vector<EncodedRegion>& regions() {
  static const std::vector<EncodedRegion> kRegions = first_epoch_regions(kSeed);
  return kRegions;
}

void count(benchmark::State& state, std::uint64_t images) {
  state.SetItemsProcessed(static_cast<std::int64_t>(images));
}

// What libjpeg-turbo cannot turn to RGB, CMYK, is left out, and does not count.
void bare(benchmark::State& state, bool whole) {
  std::vector<JSAMPLE> rows;
  std::uint64_t images = 0;
  const std::vector<EncodedRegion>& all = regions();  // made once, and not timed
  for (auto _ : state)
    for (const EncodedRegion& region : all) {
      const PixelBox box{region.x, region.y, region.width, region.height};
      if (!decode_region_by_libjpeg(region.bytes, whole ? PixelBox{} : box, false, rows)) continue;
      benchmark::DoNotOptimize(rows.data());
      ++images;
    }
  if (images == 0) throw std::runtime_error("libjpeg-turbo can decode none of the images to RGB");
  count(state, images);
}

void BM_Ceiling_LibjpegRegion(benchmark::State& state) { bare(state, false); }
void BM_LibjpegWholeImage(benchmark::State& state) { bare(state, true); }
BENCHMARK(BM_Ceiling_LibjpegRegion)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_LibjpegWholeImage)->UseRealTime()->Unit(benchmark::kMillisecond);

void thread_counts(benchmark::internal::Benchmark* rows) {
  rows->ArgName("threads");
  const int cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  for (int threads = 1; threads < cores; threads *= 2) rows->Arg(threads);
  rows->Arg(cores);
  rows->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
}

// From the file to the batch, an epoch an iteration.
void load(benchmark::State& state, const Dataset& files, JpegDecoder decoder,
          std::shared_ptr<MemoryJpegIndex> index = nullptr, bool to_floats = false) {
  DecodeImageOptions options;
  options.crop = random_resized_crop(224);
  options.flip = 0.5F;
  options.decoder = decoder;
  const bool learned_first = index != nullptr && index->size() == 0;
  options.index = std::move(index);
  Dataset dataset = files.seed(kSeed).map(decode_image(options)).batch(32);
  if (to_floats)
    dataset = dataset.transform_on_device(
        {.mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}});
  const auto steps = *dataset.size();
  // The same epoch each time, so that the regions are those of the ceiling row.
  Loader loader = dataset.loader({.threads = static_cast<int>(state.range(0))});
  const LoaderState start = loader.state();
  const auto epoch = [&] {
    std::uint64_t images = 0;
    loader.restore(start);
    for (std::uint64_t step = 0; step < steps; ++step) images += loader.next()->samples().size();
    return images;
  };
  if (learned_first) epoch();
  std::uint64_t images = 0;
  for (auto _ : state) images += epoch();
  count(state, images);
}

void BM_Loader(benchmark::State& state) { load(state, images(), JpegDecoder::fast); }
// Every epoch but the first, with an index.
void BM_Loader_Index(benchmark::State& state) {
  load(state, images(), JpegDecoder::fast, std::make_shared<MemoryJpegIndex>());
}
void BM_Loader_Reference(benchmark::State& state) { load(state, images(), JpegDecoder::reference); }
// And normalised, as f32 in planes: what a device transform takes of a host's threads.
void BM_Loader_ToFloats(benchmark::State& state) {
  load(state, images(), JpegDecoder::reference, nullptr, true);
}
void BM_Loader_Libjpeg(benchmark::State& state) { load(state, images(), JpegDecoder::libjpeg); }
// Of the same images as penstock-prepare writes them, with the index that it writes; without it.
void BM_Loader_Prepared(benchmark::State& state) {
  const PreparedImages prepared = prepared_images();
  load(state, prepared.dataset, JpegDecoder::fast, prepared.index);
}
void BM_Loader_PreparedNoIndex(benchmark::State& state) {
  load(state, prepared_images().dataset, JpegDecoder::fast);
}
BENCHMARK(BM_Loader)->Apply(thread_counts);
BENCHMARK(BM_Loader_Index)->Apply(thread_counts);
BENCHMARK(BM_Loader_Reference)->Apply(thread_counts)->Arg(64);
BENCHMARK(BM_Loader_ToFloats)->Apply(thread_counts)->Arg(64);
BENCHMARK(BM_Loader_Libjpeg)->Apply(thread_counts);
BENCHMARK(BM_Loader_Prepared)->Apply(thread_counts);
BENCHMARK(BM_Loader_PreparedNoIndex)->Apply(thread_counts);

}  // namespace
}  // namespace penstock::bench
