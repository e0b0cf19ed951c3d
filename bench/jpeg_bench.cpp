// What does a program gain that only decodes JPEGs? The public decoder beside libjpeg-turbo's own decoding of the same
// regions, which the first epoch of training would crop, and of whole images. The pixels are compared before they are timed.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

#include <benchmark/benchmark.h>

#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>

#include "bench_images.hpp"
#include "libjpeg_region.hpp"

namespace penstock::bench {
namespace {

using jpeg::Chroma;

const std::vector<EncodedRegion>& regions() {
  static const std::vector<EncodedRegion> kRegions = first_epoch_regions(7);
  return kRegions;
}

enum class Part { region, whole };

void decode(jpeg::Decoder& decoder, const EncodedRegion& image, Part part, Chroma chroma,
            std::vector<std::uint8_t>& out) {
  auto info = decoder.open(image.bytes);
  if (!info) throw std::runtime_error(info.fault().reason);
  PixelRect rect{image.x, image.y, image.width, image.height};
  if (part == Part::whole) rect = {0, 0, info->width, info->height};
  const std::size_t row = std::size_t{3} * static_cast<std::size_t>(rect.width);
  out.resize(row * static_cast<std::size_t>(rect.height));
  if (auto done = decoder.decode({.region = rect, .chroma = chroma}, out, row); !done)
    throw std::runtime_error(done.fault().reason);
}

void decode_by_libjpeg(const EncodedRegion& image, Part part, Chroma chroma,
                       std::vector<std::uint8_t>& out) {
  const PixelBox box{image.x, image.y, image.width, image.height};
  if (!decode_region_by_libjpeg(image.bytes, part == Part::whole ? PixelBox{} : box,
                                chroma == Chroma::smooth, out))
    throw std::runtime_error("libjpeg-turbo cannot decode one of the images to RGB");
}

// libjpeg-turbo's own regions begin where an MCU does, so that whole images are what can be compared.
void require_equal(Chroma chroma) {
  static std::set<Chroma> compared;  // once, not before each repetition
  if (!compared.insert(chroma).second) return;
  jpeg::Decoder decoder;
  std::vector<std::uint8_t> ours;
  std::vector<std::uint8_t> theirs;
  for (const EncodedRegion& image : regions()) {
    decode(decoder, image, Part::whole, chroma, ours);
    decode_by_libjpeg(image, Part::whole, chroma, theirs);
    if (ours != theirs) throw std::runtime_error("the decoders do not agree on an image");
  }
}

void penstock_rows(benchmark::State& state, Part part, Chroma chroma, bool indexed) {
  require_equal(chroma);
  jpeg::Decoder decoder({.index = indexed ? std::make_shared<MemoryJpegIndex>()
                                          : std::shared_ptr<MemoryJpegIndex>()});
  std::vector<std::uint8_t> out;
  if (indexed)
    for (const EncodedRegion& image : regions()) decode(decoder, image, part, chroma, out);
  std::int64_t images = 0;
  for (auto _ : state)
    for (const EncodedRegion& image : regions()) {
      decode(decoder, image, part, chroma, out);
      benchmark::DoNotOptimize(out.data());
      ++images;
    }
  state.SetItemsProcessed(images);
}

void libjpeg_rows(benchmark::State& state, Part part, Chroma chroma) {
  std::vector<std::uint8_t> out;
  std::int64_t images = 0;
  for (auto _ : state)
    for (const EncodedRegion& image : regions()) {
      decode_by_libjpeg(image, part, chroma, out);
      benchmark::DoNotOptimize(out.data());
      ++images;
    }
  state.SetItemsProcessed(images);
}

BENCHMARK_CAPTURE(penstock_rows, region, Part::region, Chroma::repeated, false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(penstock_rows, region_indexed, Part::region, Chroma::repeated, true)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(libjpeg_rows, region, Part::region, Chroma::repeated)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(penstock_rows, region_smooth, Part::region, Chroma::smooth, false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(libjpeg_rows, region_smooth, Part::region, Chroma::smooth)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(penstock_rows, whole, Part::whole, Chroma::repeated, false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(libjpeg_rows, whole, Part::whole, Chroma::repeated)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::bench
