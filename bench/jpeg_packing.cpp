// What a JPEG costs the CPU where a GPU decodes it: reading the file, hashing it, and packing what its crop needs; beside the CPU's own
// decoding of the same crops.
//
//   penstock_jpeg_packing PHOTOS [ROUNDS]        prints a table in Markdown
#include <algorithm>
#include <cstdint>
#include <cstdio>
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

#include "src/gpu_jpeg/packed_batch.hpp"
#include "src/transform/resize.hpp"

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

struct Costs {
  std::vector<double> read, hash, pack, write, cpu;
  double bytes = 0;
  std::size_t packed = 0, images = 0;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(const std::vector<fs::path>& files, int round, MemoryJpegIndex& index, Costs& costs) {
  gpu_jpeg::PackedBatch batch({224, 224}, ResizeFilter::bilinear, jpeg::Chroma::smooth);
  const Crop crop = random_resized_crop({224, 224});
  double read = 0, hash = 0, pack = 0, write = 0;
  std::vector<std::byte> out(64 << 20);
  std::size_t packed = 0, images = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    double begin = cpu_us();
    const std::vector<std::byte> bytes = read_file(files[i]);
    double now = cpu_us();
    read += now - begin;
    begin = now;
    const JpegKey key = JpegKey::of(bytes);
    const auto found = index.find(key);
    now = cpu_us();
    hash += now - begin;
    ++images;
    if (!found) continue;
    begin = cpu_us();
    Random random(RandomKey(7, static_cast<std::uint32_t>(round)), SampleId{.number = i});
    const auto placement = choose_placement(crop, static_cast<int>(found->width),
                                            static_cast<int>(found->height), random);
    if (batch.add(bytes, *found, {.box = (*placement).region})) ++packed;
    pack += cpu_us() - begin;
    if (batch.size() == 64 || i + 1 == files.size()) {
      begin = cpu_us();
      costs.bytes += static_cast<double>(batch.layout().bytes);
      batch.write(out.data());
      batch.clear();
      write += cpu_us() - begin;
    }
  }
  const double n = static_cast<double>(images);
  costs.read.push_back(read / n);
  costs.hash.push_back(hash / n);
  costs.pack.push_back(pack / n);
  costs.write.push_back(write / n);
  costs.packed += packed;
  costs.images += images;
}

int run(const fs::path& folder, int rounds) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  MemoryJpegIndex index;
  for (const fs::path& file : files) {
    const auto bytes = read_file(file);
    if (auto made = build_jpeg_index(bytes)) index.put(JpegKey::of(bytes), *std::move(made));
  }
  Costs costs;
  for (int round = 0; round < rounds; ++round) measure(files, round, index, costs);
  fmt::print(
      "| CPU us an image | reading | hash, index | packing | to the slot | in all | bytes to the "
      "device | packed |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  const double read = median(costs.read), hash = median(costs.hash), pack = median(costs.pack),
               write = median(costs.write);
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.0f} | {} of {} |\n",
             folder.filename().string(), read, hash, pack, write, read + hash + pack + write,
             costs.bytes / static_cast<double>(costs.images), costs.packed, costs.images);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int count, char** arguments) {
  return penstock::bench::run(arguments[1], count > 2 ? std::stoi(arguments[2]) : 5);
}
