// JPEGs decoded on a GPU have the host's pixels. Needs a GPU, and says so where there is none.
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/jpeg/jpeg_index.hpp>

#include "src/gpu_jpeg/cuda_jpeg.hpp"
#include "tests/device/cuda_support.hpp"
#include "tests/gpu_jpeg/host_pixels.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock::gpu_jpeg {
namespace {

using namespace testing_images;
using device::check;
using device::DeviceMemory;
using testing_support::to_host;

std::vector<JpegKind> kinds() {
  std::vector<JpegKind> all{
      {.name = "444", .sampling = {{1, 1}, {1, 1}, {1, 1}}},
      {.name = "422", .sampling = {{2, 1}, {1, 1}, {1, 1}}},
      {.name = "420", .sampling = {{2, 2}, {1, 1}, {1, 1}}},
      {.name = "440", .sampling = {{1, 2}, {1, 1}, {1, 1}}},
      {.name = "411", .sampling = {{4, 1}, {1, 1}, {1, 1}}},
      {.name = "rgb", .stored = JCS_RGB},
  };
  for (const auto& factors : {std::array{1, 1}, {2, 2}, {1, 4}})
    all.push_back({.name = "grey" + std::to_string(10 * factors[0] + factors[1]),
                   .input = JCS_GRAYSCALE,
                   .stored = JCS_GRAYSCALE,
                   .sampling = {factors}});
  return all;
}

// The same image, whose third component has Huffman tables of its own: as many codes as can be.
Bytes with_six_codes(Bytes bytes) {
  const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  Bytes tables;
  for (std::size_t i = 2; at(i + 1) != 0xDA;) {
    const std::size_t size = 2 + 256 * at(i + 2) + at(i + 3);
    if (at(i + 1) == 0xC0) bytes[i + 1] = std::byte{0xC1};
    if (at(i + 1) == 0xC4 && (at(i + 4) & 15) == 1) {
      tables.insert(tables.end(), bytes.begin() + std::ptrdiff_t(i),
                    bytes.begin() + std::ptrdiff_t(i + size));
      tables[tables.size() - size + 4] ^= std::byte{3};  // number 1 becomes 2
    }
    i += size;
    if (at(i + 1) == 0xDA) {
      bytes[i + 10] = std::byte{0x22};
      bytes.insert(bytes.begin() + std::ptrdiff_t(i), tables.begin(), tables.end());
      break;
    }
  }
  return bytes;
}

// Images that are packed one behind the other, and what decodes them.
struct Packed {
  PlacedJpegs placed;
  std::vector<std::byte> bytes;  // then the placed images
  std::size_t placed_at = 0;

  Packed(const std::vector<Wanted>& all, ImageSize output, ResizeFilter filter, jpeg::Chroma chroma,
         std::size_t row, std::size_t scratch = SIZE_MAX, std::uint32_t entry_bits = 0)
      : placed(scratch) {
    JpegPacker packer;
    std::vector<std::size_t> places;
    for (const Wanted& wanted : all) {
      const auto index = build_jpeg_index(wanted.bytes, {.entry_bits = entry_bits});
      if (!index) continue;
      const std::size_t size = packer.prepare({.bytes = wanted.bytes,
                                               .index = *index,
                                               .box = wanted.box,
                                               .mirror = wanted.mirror,
                                               .size = output,
                                               .filter = filter,
                                               .chroma = chroma});
      if (size == 0) continue;
      places.push_back(bytes.size());
      bytes.resize(bytes.size() + size);
      packer.write(bytes.data() + places.back());
    }
    for (std::size_t i = 0; i < places.size(); ++i)
      placed.add(bytes.data() + places[i], places[i], i * row);
    placed.finish();
    placed_at = bytes.size();
    const auto images = std::as_bytes(placed.images());
    bytes.insert(bytes.end(), images.begin(), images.end());
  }
};

class CudaJpegGpu : public testing_support::OnGpu {
 protected:
  void expect_the_hosts_pixels(const std::vector<Wanted>& all, ImageSize output,
                               ResizeFilter filter, jpeg::Chroma chroma,
                               std::size_t most_scratch = SIZE_MAX,
                               std::uint32_t entry_bits = 0) const {
    const std::size_t row =
        static_cast<std::size_t>(output.height) * static_cast<std::size_t>(output.width) * 3 + 13;
    const Packed packed(all, output, filter, chroma, row, most_scratch, entry_bits);
    ASSERT_EQ(packed.placed.images().size(), all.size());
    ASSERT_EQ(packed.placed.groups().size() > 1, most_scratch < SIZE_MAX);
    const DeviceMemory in(0, packed.bytes.size());
    check(cudaMemcpyAsync(in.data(), packed.bytes.data(), packed.bytes.size(),
                          cudaMemcpyHostToDevice, stream()));
    const DeviceMemory scratch(0, packed.placed.scratch_bytes());
    check(cudaMemsetAsync(scratch.data(), 0xA5, packed.placed.scratch_bytes(), stream()));
    const DeviceMemory out(0, row * all.size());
    check(cudaMemsetAsync(out.data(), 0x5A, row * all.size(), stream()));
    enqueue_jpegs(packed.placed, reinterpret_cast<const PlacedJpeg*>(in.data() + packed.placed_at),
                  in.data(), scratch.data(), out.data(), stream());
    const auto found = to_host({out.data(), row * all.size()}, stream());
    const auto failed = to_host({scratch.data(), 4 * all.size()}, stream());
    for (std::size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(i);
      const auto expected = on_host(all[i], output, filter, chroma);
      ASSERT_EQ(std::memcmp(failed.data() + 4 * i, "\0\0\0\0", 4), 0);
      ASSERT_EQ(std::memcmp(found.data() + row * i, expected.data(), expected.size()), 0);
      for (std::size_t k = expected.size(); k < row; ++k)
        ASSERT_EQ(found[row * i + k], std::byte{0x5A}) << "written behind the row";
    }
  }
};

TEST_F(CudaJpegGpu, GivesTheHostsPixelsOfEveryKindAndCrop) {
  std::mt19937 random(5);
  const auto below = [&](double most) {
    return most * static_cast<double>(random() % 10'000) / 10'000;
  };
  std::vector<Wanted> all;
  for (const JpegKind& plain : kinds())
    for (const auto& [width, height] :
         {std::array{1, 1}, {2, 3}, {8, 8}, {15, 16}, {17, 33}, {64, 64}, {97, 61}, {131, 143}})
      for (const int restart : {0, 3}) {
        JpegKind kind = plain;
        kind.quality = std::array{1, 50, 75, 95, 100}[random() % 5];
        kind.restart = restart;
        const Pixels pixels = picture(width, height, kind.input == JCS_GRAYSCALE ? 1 : 3,
                                      static_cast<unsigned>(all.size()));
        const double box_width = 1 + below(width - 1);
        const double box_height = 1 + below(height - 1);
        all.push_back(
            {.bytes = jpeg_of(pixels, kind),
             .box = {below(width - box_width), below(height - box_height), box_width, box_height},
             .mirror = random() % 2 == 0});
        if (restart == 0) all.back().box = {0, 0, double(width), double(height)};
      }
  const std::size_t plain = all.size();
  for (std::size_t i = 0; i < plain; i += 13)
    if (Bytes bytes = with_six_codes(all[i].bytes); bytes.size() > all[i].bytes.size() + 100)
      all.push_back({.bytes = std::move(bytes), .box = all[i].box});
  ASSERT_GT(all.size(), plain);
  for (const jpeg::Chroma chroma : {jpeg::Chroma::smooth, jpeg::Chroma::repeated})
    for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::bicubic}) {
      expect_the_hosts_pixels(all, {9, 14}, filter, chroma);
      if (HasFatalFailure()) return;
    }
  for (const std::uint32_t bits : {1U, 400U, 2048U}) {  // between entries
    expect_the_hosts_pixels(all, {9, 14}, ResizeFilter::bilinear, jpeg::Chroma::smooth, SIZE_MAX,
                            bits);
    if (HasFatalFailure()) return;
  }
  for (const std::size_t scratch : {std::size_t{0}, std::size_t{200'000}}) {  // in groups
    expect_the_hosts_pixels(all, {9, 14}, ResizeFilter::bilinear, jpeg::Chroma::smooth, scratch);
    if (HasFatalFailure()) return;
  }
}

// What a wrong index or damage leads to stays within the batch: the simulation sees every other access.
TEST_F(CudaJpegGpu, DamagedDataAreReadNowhereElse) {
  const Bytes bytes =
      jpeg_of(picture(90, 70, 3), {.sampling = {{2, 2}, {1, 1}, {1, 1}}, .restart = 4});
  const auto index = build_jpeg_index(bytes);
  ASSERT_TRUE(index);
  const Packed packed({3, {.bytes = bytes, .box = {0, 0, 90, 70}}}, {8, 8}, ResizeFilter::bilinear,
                      jpeg::Chroma::smooth, std::size_t{8} * 8 * 3);
  ASSERT_EQ(packed.placed.images().size(), 3U);
  PackedJpeg head;
  std::memcpy(&head, packed.bytes.data(), sizeof head);
  const DeviceMemory in(0, packed.bytes.size());
  const DeviceMemory scratch(0, packed.placed.scratch_bytes());
  const DeviceMemory out(0, 3 * 8 * 8 * 3);
  std::mt19937 random(3);
  std::size_t told = 0;
  for (std::uint64_t round = 0; round < testing_support::steps(2500); ++round) {
    std::vector<std::byte> bad = packed.bytes;
    for (int k = 0; k < 20; ++k)
      bad[head.bytes * (random() % 3) + head.data + random() % (head.bytes - head.data)] =
          static_cast<std::byte>(random());
    check(cudaMemcpyAsync(in.data(), bad.data(), bad.size(), cudaMemcpyHostToDevice, stream()));
    enqueue_jpegs(packed.placed, reinterpret_cast<const PlacedJpeg*>(in.data() + packed.placed_at),
                  in.data(), scratch.data(), out.data(), stream());
    const auto failed = to_host({scratch.data(), 12}, stream());
    told += std::ranges::any_of(failed, [](std::byte byte) { return byte != std::byte{}; }) ? 1 : 0;
  }
  EXPECT_GT(told, 0U);
}

// Files and indices of any kind, as from a hostile file of them: packed or not, nothing else is read or written.
// PENSTOCK_FUZZ_INPUTS says how many.
TEST_F(CudaJpegGpu, AnyFileAndIndexStayWithinTheBatch) {
  const char* const given = std::getenv("PENSTOCK_FUZZ_INPUTS");
  const std::uint64_t inputs =
      given != nullptr ? std::stoull(given) : testing_support::steps(50'000);
  struct Seed {
    Bytes bytes;
    JpegIndex index;
  };
  std::vector<Seed> seeds;
  for (const JpegKind& kind : kinds())
    for (const int restart : {0, 2}) {
      JpegKind own = kind;
      own.restart = restart;
      const int channels = kind.input == JCS_GRAYSCALE ? 1 : 3;
      seeds.push_back({.bytes = jpeg_of(picture(50, 40, channels), own), .index = {}});
      seeds.back().index =
          *build_jpeg_index(seeds.back().bytes, {.entry_bits = seeds.size() % 2 == 0 ? 200U : 0U});
    }
  std::mt19937 random(11);
  const auto below = [&](std::size_t most) { return random() % most; };
  JpegPacker packer(std::size_t{1} << 20);
  const DeviceMemory in(0, std::size_t{1} << 16);
  const DeviceMemory scratch(0, PlacedJpegs::scratch_for(std::size_t{1} << 20, 1));
  const DeviceMemory out(0, std::size_t{6} * 8 * 3);
  std::uint64_t packed = 0;
  std::uint64_t failed = 0;
  for (std::uint64_t input = 0; input < inputs; ++input) {
    Seed seed = seeds[below(seeds.size())];
    JpegIndex& index = seed.index;
    for (std::size_t k = below(4); k-- > 0;) {
      const std::size_t at = below(3) == 0 ? below(seed.bytes.size())
                                           : seed.bytes.size() / 2 + below(seed.bytes.size() / 2);
      seed.bytes[at] = static_cast<std::byte>(random());
    }
    for (std::size_t k = below(4); k-- > 0;) {
      JpegIndex::Entry& entry = index.entries[below(index.entries.size())];
      const std::size_t what = below(6);
      if (what == 0) entry.mcu = static_cast<std::uint32_t>(below(30));
      if (what == 1) entry.byte = static_cast<std::uint32_t>(below(2 * seed.bytes.size()));
      if (what == 2) entry.bit = static_cast<std::uint8_t>(below(8));
      if (what == 3) entry.dc[below(3)] = static_cast<std::int16_t>(random());
      if (what == 4)
        index.entries.erase(index.entries.begin() +
                            static_cast<std::ptrdiff_t>(below(index.entries.size())));
      if (what == 5) index.valid_mcus = static_cast<std::uint32_t>(below(30));
      if (index.entries.empty()) break;
    }
    const double x = static_cast<double>(below(45));
    const double y = static_cast<double>(below(35));
    const std::size_t size = packer.prepare(
        {.bytes = seed.bytes,
         .index = index,
         .box = {x, y, 1 + static_cast<double>(below(49 - below(45))) * (49 - x) / 49,
                 1 + static_cast<double>(below(39)) * (39 - y) / 39},
         .size = {6, 8}});
    if (size == 0) continue;
    ASSERT_LT(size, std::size_t{1} << 15);
    std::vector<std::byte> bytes(size + sizeof(PlacedJpeg));
    packer.write(bytes.data());
    PlacedJpegs placed(std::size_t{1} << 20);
    placed.add(bytes.data(), 0, 0);
    placed.finish();
    std::memcpy(bytes.data() + size, placed.images().data(), sizeof(PlacedJpeg));
    check(cudaMemcpyAsync(in.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream()));
    enqueue_jpegs(placed, reinterpret_cast<const PlacedJpeg*>(in.data() + size), in.data(),
                  scratch.data(), out.data(), stream());
    const auto flags = to_host({scratch.data(), 4}, stream());
    ++packed;
    failed += flags[0] != std::byte{} ? 1 : 0;
  }
  EXPECT_GT(packed, inputs / 4);
  EXPECT_GT(failed, inputs / 50);
  EXPECT_LT(failed, packed);
}

TEST_F(CudaJpegGpu, RowsOfAnyWidthAreTheHosts) {
  std::vector<Wanted> all;
  for (const int width : {2047, 2048, 2049, 3000})
    for (const bool mirror : {false, true})
      all.push_back({.bytes = jpeg_of(picture(width, 20, 3), {}),
                     .box = {0, 0, double(width), 20},
                     .mirror = mirror});
  for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::bicubic})
    expect_the_hosts_pixels(all, {7, 150}, filter, jpeg::Chroma::smooth);
}

TEST_F(CudaJpegGpu, CornersOfALargeImageAreTheHosts) {
#ifdef PENSTOCK_SIMULATED_CUDA  // with a sanitizer and many seeds it takes minutes
  const int side = std::getenv("PENSTOCK_LARGE_IMAGES") != nullptr ? 8192 : 1024;
#else
  constexpr int side = 8192;
#endif
  const Bytes bytes =
      jpeg_of(gradient(side, side), {.sampling = {{2, 2}, {1, 1}, {1, 1}}, .quality = 60});
  std::vector<Wanted> all;
  for (const double x : {0.0, side - 90.0})
    for (const double y : {0.0, side - 70.0})
      all.push_back({.bytes = bytes, .box = {x, y, 90, 70}});
  expect_the_hosts_pixels(all, {20, 30}, ResizeFilter::bilinear, jpeg::Chroma::smooth);
}

}  // namespace
}  // namespace penstock::gpu_jpeg
