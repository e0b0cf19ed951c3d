// The images that the benchmarks decode: $PENSTOCK_BENCH_DATA, a folder of JPEGs, or else 400
// generated ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "bench/libjpeg_region.hpp"
#include "src/jpeg/pixels/exif.hpp"

namespace penstock::bench {

inline Dataset images() {
  if (const char* folder = std::getenv("PENSTOCK_BENCH_DATA")) return image_folder(folder);
  return synthetic_images({.count = 400});
}

/// The same, transcoded, in a folder that goes when the program ends; their numbers stay. The index
/// is what penstock-prepare writes beside its shards.
struct PreparedImages {
  Dataset dataset;
  std::shared_ptr<MemoryJpegIndex> index;
};
inline PreparedImages prepared_images() {
  struct Folder {
    std::shared_ptr<MemoryJpegIndex> index = std::make_shared<MemoryJpegIndex>();
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("penstock-bench-" + std::to_string(::getpid()));
    Folder() {
      std::filesystem::create_directories(path);
      const Dataset dataset = images();
      Record record;
      for (std::uint64_t i = 0; i < dataset.source().size(); ++i) {
        (void)dataset.source().read(i, record);
        const auto bytes = record[0].bytes();
        auto transcoded = transcode_jpeg(bytes);
        const auto& out =
            transcoded ? transcoded->bytes : std::vector<std::byte>(bytes.begin(), bytes.end());
        if (auto built = build_jpeg_index(out)) index->put(JpegKey::of(out), std::move(*built));
        std::ofstream(path / fmt::format("{:08}.jpg", i), std::ios::binary)
            .write(reinterpret_cast<const char*>(out.data()), std::ssize(out));
      }
    }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder kFolder;
  return {image_folder(kFolder.path.string()), kFolder.index};
}

/// A region of an encoded image as it is stored, not turned; whole pixels.
struct EncodedRegion {
  std::vector<std::byte> bytes;
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

/// The encoded images with the regions that a loader with this seed crops in its first epoch. What libjpeg-turbo does not
/// decode to RGB, such as CMYK and other formats, is left out, which stderr is told.
inline std::vector<EncodedRegion> first_epoch_regions(std::uint64_t seed) {
  const Dataset dataset = images().seed(seed);
  Loader loader =
      dataset
          .map(decode_image({.crop = random_resized_crop(224), .flip = 0.5F, .geometry = "region"}))
          .batch(1)
          .loader();
  std::vector<EncodedRegion> regions;
  std::vector<JSAMPLE> pixels;
  std::size_t left_out = 0;
  Record record;
  while (const auto step = loader.next()) {
    const auto* region = (*step)[0]["region"].data<std::int32_t>();
    (void)dataset.source().read(step->samples()[0].number, record);
    const auto bytes = record[0].bytes();
    const jpeg::Orientation orientation(region[7]);
    const int width = orientation.transposed ? region[6] : region[5];
    const int height = orientation.transposed ? region[5] : region[6];
    const Region stored = orientation.stored({.x = static_cast<double>(region[0]),
                                              .y = static_cast<double>(region[1]),
                                              .width = static_cast<double>(region[2]),
                                              .height = static_cast<double>(region[3])},
                                             width, height);
    const PixelBox box{static_cast<int>(stored.x), static_cast<int>(stored.y),
                       static_cast<int>(stored.width), static_cast<int>(stored.height)};
    if (decode_region_by_libjpeg(bytes, box, false, pixels))
      regions.push_back({{bytes.begin(), bytes.end()}, box.x, box.y, box.width, box.height});
    else
      ++left_out;
  }
  if (left_out != 0)
    fmt::print(stderr, "left out: {} of {} images, which libjpeg-turbo does not decode to RGB\n",
               left_out, left_out + regions.size());
  return regions;
}

}  // namespace penstock::bench
