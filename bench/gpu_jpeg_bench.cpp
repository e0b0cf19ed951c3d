// JPEGs decoded on a GPU: the work in a batch, what the kernels take for it, and how fast one core feeds them.
//
//   penstock_gpu_jpeg_bench [--work|--quick|--once] [FOLDER]   tables in Markdown; of generated photographs without a folder
//
// --work leaves out the times, and needs no GPU; --quick is a trial with 4 images; --once runs the largest batch's kernels twice, for
// a profiler.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <penstock/gpu_jpeg/batch_decoder.hpp>
#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "src/device/cuda_owners.hpp"
#include "src/gpu_jpeg/cuda_jpeg.hpp"
#ifdef PENSTOCK_HAVE_NVJPEG
#include "nvjpeg_decoding.hpp"
#endif

namespace penstock::bench {
namespace {

namespace fs = std::filesystem;
using device::check;
using device::DeviceMemory;
using gpu_jpeg::PackedJpeg;
using gpu_jpeg::PackedPiece;
using gpu_jpeg::PlacedJpeg;

constexpr ImageSize kSize{224, 224};
constexpr std::size_t kRow = std::size_t{224} * 224 * 3;

struct Size {
  std::vector<std::size_t> batches{64, 256};
  int rounds = 15;
};

struct Photo {
  std::vector<std::byte> bytes;
  JpegIndex index;
};

std::vector<Photo> read_photos(const fs::path& folder, std::size_t most) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Photo> photos;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto bytes = std::as_bytes(std::span(text));
    if (auto index = build_jpeg_index(bytes); index && photos.size() < most)
      photos.push_back({{bytes.begin(), bytes.end()}, *std::move(index)});
  }
  return photos;
}

Region crop_of(const Photo& photo, std::size_t number) {
  Random random(RandomKey(7, 0), SampleId{.number = number});
  return choose_placement(random_resized_crop(kSize), static_cast<int>(photo.index.width),
                          static_cast<int>(photo.index.height), random)
      ->region;
}

// A batch, packed.
struct Batch {
  gpu_jpeg::PlacedJpegs placed{std::size_t{4} << 30};
  std::vector<std::byte> bytes;
  std::size_t placed_at = 0;

  std::size_t images = 0, pieces = 0, blocks = 0, pixels = 0;
  std::uint64_t bits = 0, longest = 0;  // of Huffman codes; of one thread

  Batch(const std::vector<Photo>& photos, std::size_t count) {
    gpu_jpeg::JpegPacker packer;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < count; ++i) {
      const Photo& photo = photos[i % photos.size()];
      const std::size_t size = packer.prepare(
          {.bytes = photo.bytes, .index = photo.index, .box = crop_of(photo, i), .size = kSize});
      if (size == 0) continue;
      places.push_back(bytes.size());
      bytes.resize(bytes.size() + size);
      packer.write(bytes.data() + places.back());
    }
    for (const std::size_t place : places) {
      placed.add(bytes.data() + place, place, images++ * kRow);
      add_work(bytes.data() + place);
    }
    placed.finish();
    placed_at = bytes.size();
    const auto all = std::as_bytes(placed.images());
    bytes.insert(bytes.end(), all.begin(), all.end());
  }

  void add_work(const std::byte* image) {
    PackedJpeg head;
    std::memcpy(&head, image, sizeof head);
    std::vector<PackedPiece> all(head.piece_count);
    std::memcpy(all.data(), image + head.pieces, all.size() * sizeof(PackedPiece));
    pieces += all.size();
    blocks += head.blocks();
    pixels += head.pixels();
    for (std::size_t i = 0; i < all.size(); ++i) {
      // Where a piece ends is known of those that a checkpoint follows; others end before the next one's begin.
      const PackedPiece& piece = all[i];
      const auto next =
          std::find_if(all.begin() + static_cast<std::ptrdiff_t>(i), all.end(),
                       [&](const PackedPiece& other) { return other.bit > piece.bit; });
      const std::uint32_t until =
          next != all.end() ? std::min(piece.end_bit, next->bit) : piece.end_bit;
      const std::uint64_t own = until - piece.bit;
      bits += own;
      longest = std::max(longest, own);
    }
  }
};

template <class Work>
double median_ms(int rounds, const Work& work) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    check(cudaDeviceSynchronize());
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void print_work(const std::vector<Photo>& photos, const Size& size) {
  fmt::print(
      "| images | threads for Huffman codes | bits of them | most of one thread | blocks | pixels "
      "before the resize | bytes to "
      "the device | scratch |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const std::size_t count : size.batches) {
    const Batch batch(photos, count);
    fmt::print("| {} | {} | {:.1f} M | {} | {:.2f} M | {:.1f} M | {:.1f} MB | {:.0f} MB |\n",
               batch.images, batch.pieces, static_cast<double>(batch.bits) / 1e6, batch.longest,
               static_cast<double>(batch.blocks) / 1e6, static_cast<double>(batch.pixels) / 1e6,
               static_cast<double>(batch.bytes.size()) / 1e6,
               static_cast<double>(batch.placed.scratch_bytes()) / 1e6);
  }
}

void run_kernels(const Batch& batch, int rounds) {
  const DeviceMemory in(0, batch.bytes.size());
  const DeviceMemory scratch(0, batch.placed.scratch_bytes());
  const DeviceMemory out(0, kRow * batch.images);
  check(cudaMemcpy(in.data(), batch.bytes.data(), batch.bytes.size(), cudaMemcpyHostToDevice));
  for (int round = 0; round < rounds; ++round)
    gpu_jpeg::enqueue_jpegs(batch.placed,
                            reinterpret_cast<const PlacedJpeg*>(in.data() + batch.placed_at),
                            in.data(), scratch.data(), out.data(), nullptr);
  check(cudaDeviceSynchronize());
}

void print_times(const std::vector<Photo>& photos, const Size& size) {
  fmt::print(
      "\n| images | kernels ms | images/s of them | copy ms | one core packs, copies and decodes: "
      "images/s |\n"
      "| --- | --- | --- | --- | --- |\n");
  const auto index = std::make_shared<MemoryJpegIndex>();
  for (const Photo& photo : photos) index->put(JpegKey::of(photo.bytes), photo.index);
  for (const std::size_t count : size.batches) {
    const Batch batch(photos, count);
    const DeviceMemory in(0, batch.bytes.size());
    const DeviceMemory scratch(0, batch.placed.scratch_bytes());
    const DeviceMemory out(0, kRow * count);
    const double copy = median_ms(size.rounds, [&] {
      check(cudaMemcpyAsync(in.data(), batch.bytes.data(), batch.bytes.size(),
                            cudaMemcpyHostToDevice, nullptr));
    });
    const double kernels = median_ms(size.rounds, [&] {
      gpu_jpeg::enqueue_jpegs(batch.placed,
                              reinterpret_cast<const PlacedJpeg*>(in.data() + batch.placed_at),
                              in.data(), scratch.data(), out.data(), nullptr);
    });
    gpu_jpeg::BatchDecoder decoder({.size = kSize, .index = index});
    std::vector<gpu_jpeg::BatchImage> images;
    for (std::size_t i = 0; i < count; ++i) {
      const Photo& photo = photos[i % photos.size()];
      images.push_back({.bytes = photo.bytes, .box = crop_of(photo, i)});
    }
    constexpr int kBatches = 8;
    const double all = median_ms(size.rounds, [&] {
      for (int k = 0; k < kBatches; ++k) (void)decoder.decode(images, out.data(), nullptr);
    });
    fmt::print("| {} | {:.2f} | {:.0f} | {:.2f} | {:.0f} |\n", batch.images, kernels,
               1e3 * static_cast<double>(batch.images) / kernels, copy,
               1e3 * kBatches * static_cast<double>(count) / all);
  }
}

// Whole images, one CPU thread; grey ones and others of unusual kinds may be none for it.
void print_nvjpeg([[maybe_unused]] const std::vector<Photo>& photos,
                  [[maybe_unused]] const Size& size) {
#ifdef PENSTOCK_HAVE_NVJPEG
  fmt::print("\n| nvJPEG, whole images | ms | images/s |\n| --- | --- | --- |\n");
  for (const std::size_t count : size.batches)
    for (const NvjpegBackend backend : {NvjpegBackend::gpu, NvjpegBackend::hardware}) {
      std::vector<std::span<const std::byte>> images;
      for (std::size_t i = 0; i < count; ++i) images.emplace_back(photos[i % photos.size()].bytes);
      const std::string name = fmt::format(
          "{} by {}", count, backend == NvjpegBackend::gpu ? "kernels" : "the hardware's engine");
      const auto decoding = NvjpegDecoding::make(backend, images);
      if (!decoding) {
        fmt::print("| {} | does not take them | |\n", name);
        continue;
      }
      const double ms = median_ms(size.rounds, [&] { decoding->decode(); });
      fmt::print("| {} | {:.2f} | {:.0f} |\n", name, ms, 1e3 * static_cast<double>(count) / ms);
    }
#else
  fmt::print("\nno nvJPEG was found when this was built\n");
#endif
}

int run(int count, char** arguments) {
  const std::string_view first = count > 1 ? arguments[1] : "";
  const bool only_work = first == "--work";
  Size size;
  if (first == "--quick") size = {.batches = {4}, .rounds = 1};
  const int folder = first.starts_with("--") ? 2 : 1;
  const std::size_t most = size.batches.back();
  const std::vector<Photo> photos = read_photos(
      count > folder ? fs::path(arguments[folder]) : source::synthetic_image_folder({.count = 256}),
      most);
  if (photos.empty()) {
    fmt::print(stderr, "penstock_gpu_jpeg_bench: no JPEG that has an index\n");
    return 1;
  }
  if (first == "--once") {
    run_kernels(Batch(photos, size.batches.back()), 2);
    return 0;
  }
  print_work(photos, size);
  if (only_work) return 0;
  if (gpu_count() == 0) {
    fmt::print(stderr, "penstock_gpu_jpeg_bench: no GPU here; --work needs none\n");
    return 1;
  }
  print_times(photos, size);
  print_nvjpeg(photos, size);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int count, char** arguments) {
  try {
    return penstock::bench::run(count, arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "penstock_gpu_jpeg_bench: {}\n", error.what());
    return 1;
  }
}
