// The images that the benchmarks decode: $PENSTOCK_BENCH_DATA, a folder of JPEGs, or else 400
// generated ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <penstock/penstock.hpp>

namespace penstock::bench {

inline Dataset images() {
  if (const char* folder = std::getenv("PENSTOCK_BENCH_DATA")) return image_folder(folder);
  return synthetic_images({.count = 400});
}

/// A region of an encoded image, whole pixels.
struct EncodedRegion {
  std::vector<std::byte> bytes;
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

/// The encoded images with the regions that a loader with this seed crops in its first epoch.
inline std::vector<EncodedRegion> first_epoch_regions(std::uint64_t seed) {
  const Dataset dataset = images().seed(seed);
  Loader loader =
      dataset
          .map(decode_jpeg({.crop = random_resized_crop(224), .flip = 0.5F, .geometry = "region"}))
          .batch(1)
          .loader();
  std::vector<EncodedRegion> regions;
  Record record;
  while (const auto step = loader.next()) {
    const auto* region = (*step)[0]["region"].data<std::int32_t>();
    (void)dataset.source().read(step->samples()[0].number, record);
    const auto bytes = record[0].bytes();
    regions.push_back({{bytes.begin(), bytes.end()}, region[0], region[1], region[2], region[3]});
  }
  return regions;
}

}  // namespace penstock::bench
