// JPEGs decoded on a GPU: the work in a batch, what the kernels take for it, and how fast one core feeds them.
//
//   penstock_gpu_jpeg_bench [--work|--quick|--once] [--prepared] [--dense] [FOLDER]   tables in Markdown; of generated photographs
//   without a folder
//
// --work leaves out the times, and needs no GPU; --quick is a trial with 4 images; --once runs the largest batch's kernels twice, for
// a profiler; --prepared rewrites the files first, as penstock-prepare does; --dense has an index with an entry about every 2048 bits.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
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

std::vector<Photo> read_photos(const fs::path& folder, std::size_t most, bool prepared,
                               std::uint32_t entry_bits) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Photo> photos;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    std::span bytes = std::as_bytes(std::span(text));
    TranscodedJpeg transcoded;
    if (prepared)
      if (auto made = transcode_jpeg(bytes, {})) {
        transcoded = *std::move(made);
        bytes = transcoded.bytes;
      }
    if (auto index = build_jpeg_index(bytes, {.entry_bits = entry_bits});
        index && photos.size() < most)
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

// How many symbols each block of a piece takes. `bits`: what all of them take.
std::vector<std::uint32_t> symbols_of(const std::byte* image, const PackedJpeg& head,
                                      const PackedPiece& piece, std::uint64_t& bits) {
  std::vector<jpeg::CanonicalCode> codes(head.code_count);
  std::memcpy(codes.data(), image + head.codes, codes.size() * sizeof codes[0]);
  std::uint64_t bit = piece.bit;
  const auto next_symbol = [&](const jpeg::CanonicalCode& code) {
    const std::byte* const at = image + head.data + bit / 8;
    const auto byte = [&](int i) { return std::to_integer<std::uint32_t>(at[i]); };
    const std::uint32_t next = byte(0) << 16 | byte(1) << 8 | byte(2);
    const std::uint32_t entry = code.next_symbol(next >> (8 - bit % 8) & 0xFFFF);
    bit += jpeg::symbol::bits(entry);
    return entry;
  };
  std::vector<std::uint32_t> symbols;
  for (std::uint32_t mcu = piece.first; mcu < piece.end; ++mcu)
    for (int block = 0; block < head.h * head.v + head.components - 1; ++block) {
      const auto component = static_cast<std::size_t>(std::max(0, block - head.h * head.v + 1));
      (void)next_symbol(codes[head.code[component][0]]);
      symbols.push_back(1);
      for (int k = 1; k < jpeg::kBlockSize; ++symbols.back())
        k += jpeg::symbol::step(next_symbol(codes[head.code[component][1]]));
    }
  bits = bit - piece.bit;
  return symbols;
}

// What the kernel that reads pieces has to do.
struct Symbols {
  std::uint64_t all = 0;
  std::uint64_t longest = 0;  // of one thread
  std::uint64_t bits = 0;
  std::uint64_t most_bits = 0;  // of one thread
  std::uint64_t warps = 0;
  std::uint64_t steps = 0;  // of each warp, as many as its longest thread has
  // The same, if threads waited for each other where their blocks end.
  std::uint64_t waiting_steps = 0;

  void add(const std::byte* image, const PackedJpeg& head, std::span<const PackedPiece> pieces) {
    constexpr std::size_t kWarp = 32;
    for (std::size_t first = 0; first < pieces.size(); first += kWarp) {
      std::uint64_t most = 0;
      std::vector<std::uint32_t> most_of_block;
      for (const PackedPiece& piece :
           pieces.subspan(first, std::min(kWarp, pieces.size() - first))) {
        std::uint64_t own_bits = 0;
        const std::vector<std::uint32_t> own = symbols_of(image, head, piece, own_bits);
        bits += own_bits;
        most_bits = std::max(most_bits, own_bits);
        most_of_block.resize(std::max(most_of_block.size(), own.size()));
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < own.size(); ++i) {
          most_of_block[i] = std::max(most_of_block[i], own[i]);
          sum += own[i];
        }
        all += sum;
        most = std::max(most, sum);
      }
      ++warps;
      longest = std::max(longest, most);
      steps += most;
      waiting_steps += std::accumulate(most_of_block.begin(), most_of_block.end(), std::uint64_t{});
    }
  }
};

// A batch, packed.
struct Batch {
  gpu_jpeg::PlacedJpegs placed{std::size_t{4} << 30};
  std::vector<std::byte> bytes;
  std::size_t placed_at = 0;

  std::size_t images = 0, pieces = 0, blocks = 0, pixels = 0;
  Symbols symbols;

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
    symbols.add(image, head, all);
    blocks += head.blocks();
    pixels += head.pixels();
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

void print_work(const std::vector<Batch>& batches) {
  fmt::print(
      "| images | threads for Huffman codes | bits of them | most of one thread | blocks | pixels "
      "before the resize | bytes to the device | scratch |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Batch& batch : batches)
    fmt::print("| {} | {} | {:.1f} M | {} | {:.2f} M | {:.1f} M | {:.1f} MB | {:.0f} MB |\n",
               batch.images, batch.pieces, static_cast<double>(batch.symbols.bits) / 1e6,
               batch.symbols.most_bits, static_cast<double>(batch.blocks) / 1e6,
               static_cast<double>(batch.pixels) / 1e6,
               static_cast<double>(batch.bytes.size()) / 1e6,
               static_cast<double>(batch.placed.scratch_bytes()) / 1e6);
  fmt::print(
      "\n| images | launches | symbols | most of one thread | warps | steps of all warps | if "
      "threads "
      "waited at each block's end | bytes over PCIe: packed; slots of a loader |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Batch& batch : batches) {
    const Symbols& symbols = batch.symbols;
    // A group has five kernels; the flags are cleared once.
    fmt::print("| {} | {} | {:.1f} M | {} | {} | {:.2f} M | {:.2f} M | {:.1f}; {:.1f} MB |\n",
               batch.images, 5 * batch.placed.groups().size() + 1,
               static_cast<double>(symbols.all) / 1e6, symbols.longest, symbols.warps,
               static_cast<double>(symbols.steps) / 1e6,
               static_cast<double>(symbols.waiting_steps) / 1e6,
               static_cast<double>(batch.bytes.size()) / 1e6,
               static_cast<double>(batch.images * kRow) / 1e6);
  }
}

// A batch's memory on the device.
struct OnDevice {
  const Batch& batch;
  DeviceMemory in{0, batch.bytes.size()};
  DeviceMemory scratch{0, batch.placed.scratch_bytes()};
  DeviceMemory out{0, kRow* batch.images};

  void copy() const {
    check(cudaMemcpyAsync(in.data(), batch.bytes.data(), batch.bytes.size(), cudaMemcpyHostToDevice,
                          nullptr));
  }
  void decode(const std::function<void(const char*)>& behind = {}) const {
    gpu_jpeg::enqueue_jpegs(batch.placed,
                            reinterpret_cast<const PlacedJpeg*>(in.data() + batch.placed_at),
                            in.data(), scratch.data(), out.data(), nullptr, behind);
  }
};

void run_kernels(const Batch& batch, int rounds) {
  const OnDevice there{batch};
  there.copy();
  for (int round = 0; round < rounds; ++round) there.decode();
  check(cudaDeviceSynchronize());
}

// Memory of the host that copies go from as fast as the bus takes them.
class Pinned {
 public:
  explicit Pinned(std::span<std::byte> bytes) : bytes_(bytes) {
    check(cudaHostRegister(bytes.data(), bytes.size(), cudaHostRegisterPortable));
  }
  ~Pinned() { (void)cudaHostUnregister(bytes_.data()); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  std::span<std::byte> bytes_;
};

// Medians of each kernel's time, in the order in which kernels ran.
class KernelTimes {
 public:
  void begin() {
    next_ = 0;
    mark();
  }
  void behind(const char* kernel) {
    mark();
    if (names_.size() + 1 < next_) names_.emplace_back(kernel);
  }
  // Waits.
  void end() {
    check(cudaEventSynchronize(events_[next_ - 1].get()));
    times_.resize(names_.size());
    for (std::size_t i = 0; i + 1 < next_; ++i) {
      float ms = 0;
      check(cudaEventElapsedTime(&ms, events_[i].get(), events_[i + 1].get()));
      times_[i].push_back(ms);
    }
  }
  void print() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      std::ranges::sort(times_[i]);
      fmt::print("{}{} {:.3f}", i == 0 ? "" : ", ", names_[i], times_[i][times_[i].size() / 2]);
    }
  }

 private:
  void mark() {
    if (next_ == events_.size()) events_.emplace_back(0, device::CudaEvent::Use::timing);
    check(cudaEventRecord(events_[next_++].get(), nullptr));
  }

  std::vector<device::CudaEvent> events_;
  std::vector<std::string> names_;
  std::vector<std::vector<float>> times_;
  std::size_t next_ = 0;
};

void print_times(const std::vector<Photo>& photos, std::vector<Batch>& batches, const Size& size) {
  fmt::print(
      "\n| images | kernels ms | images/s of them | copy ms | one core packs, copies and decodes: "
      "images/s | ms of each kernel |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  const auto index = std::make_shared<MemoryJpegIndex>();
  for (const Photo& photo : photos) index->put(JpegKey::of(photo.bytes), photo.index);
  for (std::size_t b = 0; b < batches.size(); ++b) {
    Batch& batch = batches[b];
    const std::size_t count = size.batches[b];
    const Pinned pinned(batch.bytes);
    const OnDevice there{batch};
    const DeviceMemory out(0, kRow * count);
    const double copy = median_ms(size.rounds, [&] { there.copy(); });
    const double kernels = median_ms(size.rounds, [&] { there.decode(); });
    KernelTimes times;
    for (int round = 0; round < size.rounds; ++round) {
      times.begin();
      there.decode([&](const char* kernel) { times.behind(kernel); });
      times.end();
    }
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
    fmt::print("| {} | {:.2f} | {:.0f} | {:.2f} | {:.0f} | ", batch.images, kernels,
               1e3 * static_cast<double>(batch.images) / kernels, copy,
               1e3 * kBatches * static_cast<double>(count) / all);
    times.print();
    fmt::print(" |\n");
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

int run(std::vector<std::string_view> arguments) {
  const auto take = [&](std::string_view flag) { return std::erase(arguments, flag) > 0; };
  const bool only_work = take("--work");
  const bool prepared = take("--prepared");
  const bool once = take("--once");
  const std::uint32_t entry_bits = take("--dense") ? 2048 : 0;
  Size size;
  if (take("--quick")) size = {.batches = {4}, .rounds = 1};
  const std::vector<Photo> photos = read_photos(
      arguments.empty() ? source::synthetic_image_folder({.count = 256}) : fs::path(arguments[0]),
      size.batches.back(), prepared, entry_bits);
  if (photos.empty()) {
    fmt::print(stderr, "penstock_gpu_jpeg_bench: no JPEG that has an index\n");
    return 1;
  }
  if (once) {
    run_kernels(Batch(photos, size.batches.back()), 2);
    return 0;
  }
  std::size_t files = 0, indices = 0;
  for (const Photo& photo : photos) {
    files += photo.bytes.size();
    indices += photo.index.to_bytes().size();
  }
  fmt::print("{} files of {:.1f} MB, their indices {:.2f}% of that\n\n", photos.size(),
             static_cast<double>(files) / 1e6,
             100.0 * static_cast<double>(indices) / static_cast<double>(files));
  std::vector<Batch> batches;
  for (const std::size_t count : size.batches) batches.emplace_back(photos, count);
  print_work(batches);
  if (only_work) return 0;
  if (gpu_count() == 0) {
    fmt::print(stderr, "penstock_gpu_jpeg_bench: no GPU here; --work needs none\n");
    return 1;
  }
  print_times(photos, batches, size);
  print_nvjpeg(photos, size);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int count, char** arguments) {
  try {
    return penstock::bench::run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "penstock_gpu_jpeg_bench: {}\n", error.what());
    return 1;
  }
}
