// What a JPEG costs the CPU where a GPU decodes it: reading the file, hashing it, and packing what its crop needs; beside the CPU's own
// decoding of the same crops.
//
//   penstock_jpeg_packing PHOTOS [ROUNDS]        prints a table in Markdown
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <time.h>

#include <penstock/core/random.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/jpeg/transcode_jpeg.hpp>
#include <penstock/penstock.hpp>

#include "src/gpu_jpeg/packed_jpeg.hpp"

namespace penstock::bench {
namespace {

namespace fs = std::filesystem;

double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

std::vector<std::byte> read_file(const fs::path& path) {
  std::vector<std::byte> bytes(fs::file_size(path));
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (std::fread(bytes.data(), 1, bytes.size(), file) != bytes.size()) bytes.clear();
  std::fclose(file);
  return bytes;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Of an image, by rounds.
struct Costs {
  std::vector<double> read, hash, pack, decode;
  double bytes = 0;
  std::size_t packed = 0, images = 0;
};

constexpr ImageSize kSize{224, 224};
constexpr std::size_t kPlace = std::size_t{224} * 224 * 3;

struct Bench {
  std::vector<fs::path> files;
  std::shared_ptr<MemoryJpegIndex> index = std::make_shared<MemoryJpegIndex>();
  Crop crop = random_resized_crop(kSize);
  Costs costs;

  void pack(int round) {
    gpu_jpeg::JpegPacker packer;
    std::vector<std::byte> slot(64 * kPlace);
    double read = 0, hash = 0, pack = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
      const double begin = cpu_us();
      const std::vector<std::byte> bytes = read_file(files[i]);
      const double opened = cpu_us();
      const auto found = index->find(JpegKey::of(bytes));
      const double known = cpu_us();
      read += opened - begin;
      hash += known - opened;
      ++costs.images;
      if (!found) continue;
      Random random(RandomKey(7, static_cast<std::uint32_t>(round)), SampleId{.number = i});
      const auto placement = choose_placement(crop, static_cast<int>(found->width),
                                              static_cast<int>(found->height), random);
      const std::span place = std::span(slot).subspan(i % 64 * kPlace, kPlace);
      if (packer.pack({.bytes = bytes, .index = *found, .box = placement->region, .size = kSize},
                      place)) {
        ++costs.packed;
        gpu_jpeg::PackedJpeg head;
        std::memcpy(&head, gpu_jpeg::aligned_place(place).data(), sizeof head);
        costs.bytes += head.bytes;
      }
      pack += cpu_us() - known;
    }
    const auto n = static_cast<double>(files.size());
    costs.read.push_back(read / n);
    costs.hash.push_back(hash / n);
    costs.pack.push_back(pack / n);
  }

  // The CPU's decoder, of the same crops: reading, hash and index are in it.
  void decode(int round) {
    const TransformPtr transform = decode_image({.crop = crop, .index = index});
    std::vector<std::byte> slot(64 * kPlace);
    const double begin = cpu_us();
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::vector<std::byte> bytes = read_file(files[i]);
      const ConstTensorView in(bytes.data(), DType::u8, {static_cast<std::int64_t>(bytes.size())});
      const TensorView out(slot.data() + i % 64 * kPlace, DType::u8, {224, 224, 3});
      Random random(RandomKey(7, static_cast<std::uint32_t>(round)), SampleId{.number = i});
      if (auto made = transform->apply({&in, 1}, std::span(&out, 1), random); !made)
        throw Error(made.fault().to_string());
    }
    costs.decode.push_back((cpu_us() - begin) / static_cast<double>(files.size()));
  }
};

int run(const fs::path& folder, int rounds) {
  Bench bench;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bench.files.push_back(entry.path());
  std::ranges::sort(bench.files);
  for (const fs::path& file : bench.files) {
    const auto bytes = read_file(file);
    if (auto made = build_jpeg_index(bytes)) bench.index->put(JpegKey::of(bytes), *std::move(made));
  }
  for (int round = 0; round < rounds; ++round) {
    bench.pack(round);
    bench.decode(round);
  }
  const Costs& costs = bench.costs;
  const double read = median(costs.read), hash = median(costs.hash), pack = median(costs.pack);
  fmt::print(
      "| CPU us an image | reading | hash, index | packing | all of it | the CPU decodes it | "
      "bytes packed | of pixels | packed |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | **{:.1f}** | {:.0f} | {:.0f} | {} | {} of {} |\n",
             folder.filename().string(), read, hash, pack, read + hash + pack, median(costs.decode),
             costs.bytes / static_cast<double>(costs.packed), kPlace, costs.packed, costs.images);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int count, char** arguments) {
  return penstock::bench::run(arguments[1], count > 2 ? std::stoi(arguments[2]) : 5);
}
