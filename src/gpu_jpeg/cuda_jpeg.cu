// JPEGs on a GPU, in five kernels: tables of the batch's Huffman codes, and the images' heads; coefficients, a thread for each piece of
// a scan, in zigzag order; samples, a thread for each block; pixels of the regions; and their resize. Every number is the host decoder's.
#include <algorithm>

#include "src/device/cuda_launch.hpp"
#include "src/gpu_jpeg/cuda_jpeg.hpp"
#include "src/jpeg/decoder/idct_block.hpp"
#include "src/jpeg/decoder/pixel_numbers.hpp"
#include "src/transform/resize_kernels.hpp"

namespace penstock::gpu_jpeg {

namespace {

namespace symbol = jpeg::symbol;
using device::check;
using device::launch;
using jpeg::kBlockSide;
using jpeg::kBlockSize;

constexpr unsigned kThreads = 128;
// A warp: an image has some tens of pieces, which differ in length.
constexpr unsigned kDecodingThreads = 32;
constexpr unsigned kMostGridRows = 65535;
constexpr unsigned kWindows = jpeg::kWindows;
constexpr int kWindowBits = jpeg::kWindowBits;

// A canonical code as a kernel reads it, where CanonicalCode's arrays have no operators.
struct CodeView {
  const std::uint32_t* limit;
  const std::int32_t* offset;
  const std::uint8_t* symbols;
  bool dc;
};

static_assert(sizeof(jpeg::CanonicalCode) == 396, "CodeView counts on this");

__device__ CodeView code_at(const std::byte* code) {
  return {reinterpret_cast<const std::uint32_t*>(code),
          reinterpret_cast<const std::int32_t*>(code + 68),
          reinterpret_cast<const std::uint8_t*>(code + 136),
          *reinterpret_cast<const bool*>(code + 392)};
}

__device__ std::uint32_t symbol_at(const CodeView& code, std::uint32_t next16) {
  return symbol::find(code.limit, code.offset, code.symbols, code.dc, next16);
}

// What all kernels of a group know.
struct Group {
  const PlacedJpeg* images;
  const std::byte* packed;
  std::byte* heads;
  std::uint32_t* tables;
  std::int16_t* coefficients;
  std::uint8_t* samples;
  std::uint8_t* pixels;
  std::uint32_t* failed;
};

__device__ const PackedJpeg& packed_of(const Group& group, const PlacedJpeg& placed) {
  return *reinterpret_cast<const PackedJpeg*>(group.packed + placed.packed);
}

template <class T>
__device__ const T* part_of(const PackedJpeg& image, std::uint32_t at) {
  return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(&image) + at);
}

__device__ const std::byte* code_of(const PackedJpeg& image, std::uint32_t number) {
  return part_of<std::byte>(image, image.codes) + number * sizeof(jpeg::CanonicalCode);
}

// A look-up for every next kWindowBits, where these tell the symbol. And a copy of the head: pixels may be written over it.
__global__ void __launch_bounds__(kThreads) make_tables(const Group group) {
  const PlacedJpeg& placed = group.images[blockIdx.y];
  const PackedJpeg& image = packed_of(group, placed);
  const unsigned number = blockIdx.x * kThreads + threadIdx.x;
  const auto* const words = part_of<std::uint32_t>(image, 0);
  for (unsigned i = number; i < image.head_bytes / 4; i += kWindows)
    reinterpret_cast<std::uint32_t*>(group.heads + placed.head)[i] = words[i];
  for (std::uint32_t i = 0; i < image.code_count; ++i) {
    if ((placed.makes_tables >> i & 1) == 0) continue;
    const CodeView code = code_at(code_of(image, i));
    std::uint32_t entry = symbol_at(code, number << (16 - kWindowBits));
    if (entry == symbol::kInvalid || symbol::code_bits(entry) > unsigned(kWindowBits))
      entry = symbol::kUndecided;
    group.tables[std::size_t(placed.table[i]) * kWindows + number] = entry;
  }
}

// The next bits of a scan. Behind its end come zeros.
struct Bits {
  const std::uint32_t* words;  // big-endian
  std::uint32_t count;
  std::uint32_t next;
  std::uint64_t buffer;  // the next ones, at the top
  int have;

  __device__ Bits(const std::uint32_t* data, std::uint32_t size, std::uint32_t bit)
      : words(data), count(size), next(bit / 32), buffer(0), have(0) {
    refill();
    refill();
    skip(int(bit % 32));
  }
  __device__ std::uint32_t word() {
    if (next >= count) {
      ++next;
      return 0;
    }
    const std::uint32_t value = __ldg(words + next++);
    return value << 24 | (value & 0xFF00U) << 8 | (value >> 8 & 0xFF00U) | value >> 24;
  }
  // 32 bits more than there are at the least: as many as a symbol takes, with its value.
  __device__ void refill() {
    if (have > 32) return;
    buffer |= std::uint64_t(word()) << (32 - have);
    have += 32;
  }
  __device__ void skip(int bits) {
    buffer <<= bits;
    have -= bits;
  }
  __device__ std::uint64_t position() const { return std::uint64_t(next) * 32 - have; }
};

struct Code {
  const std::uint32_t* table;
  const std::byte* code;
};

// The next symbol; its code is taken. kInvalid where there is none.
__device__ std::uint32_t next_symbol(Bits& bits, const Code& code) {
  bits.refill();
  std::uint32_t entry = __ldg(code.table + (bits.buffer >> (64 - kWindowBits)));
  if (entry == symbol::kUndecided)
    entry = symbol_at(code_at(code.code), std::uint32_t(bits.buffer >> 48));
  if (entry != symbol::kInvalid) bits.skip(int(symbol::code_bits(entry)));
  return entry;
}

__device__ std::int32_t next_value(Bits& bits, std::uint32_t entry) {
  const unsigned size = symbol::value_bits(entry);
  if (size == 0) return 0;
  const std::uint32_t raw = std::uint32_t(bits.buffer >> (64 - size));
  bits.skip(int(size));
  return jpeg::extend(raw, size);
}

// Reads a block, and writes it to `out` where that is not null. False where the data are not what the index promised.
__device__ bool read_block(Bits& bits, const Code& dc_code, const Code& ac_code, std::int16_t& dc,
                           std::int16_t* out) {
  std::uint32_t entry = next_symbol(bits, dc_code);
  if (entry == symbol::kInvalid) return false;
  dc = std::int16_t(std::uint32_t(dc) + std::uint32_t(next_value(bits, entry)));
  if (out != nullptr) out[0] = dc;
  for (int k = 1; k < kBlockSize;) {
    entry = next_symbol(bits, ac_code);
    if (entry == symbol::kInvalid) return false;
    if ((entry & symbol::kEnd) != 0) break;
    k += symbol::step(entry);
    if (k > kBlockSize) return false;
    const std::int32_t value = next_value(bits, entry);
    if (out != nullptr) out[k - 1] = std::int16_t(value);
  }
  return true;
}

__global__ void __launch_bounds__(kDecodingThreads) read_pieces(const Group group) {
  const PlacedJpeg& placed = group.images[blockIdx.y];
  const PackedJpeg& image = packed_of(group, placed);
  const std::uint32_t number = blockIdx.x * kDecodingThreads + threadIdx.x;
  if (number >= image.piece_count) return;
  const PackedPiece piece = part_of<PackedPiece>(image, image.pieces)[number];
  const auto code = [&](int component, int kind) {
    const std::uint32_t of = image.code[component][kind];
    return Code{group.tables + std::size_t(placed.table[of]) * kWindows, code_of(image, of)};
  };
  Bits bits(part_of<std::uint32_t>(image, image.data), image.words, piece.bit);
  std::int16_t dc[kPackedComponents] = {piece.dc[0], piece.dc[1], piece.dc[2]};
  int row = int(piece.first / image.mcus_per_row);
  int column = int(piece.first - std::uint32_t(row) * image.mcus_per_row);
  for (std::uint32_t mcu = piece.first; mcu < piece.end; ++mcu) {
    const bool wanted = mcu >= piece.begin;
    const std::int64_t y = row - image.first_row;
    const std::int64_t x = column - image.first_column;
    for (int c = 0; c < image.components; ++c) {
      const int across = c == 0 ? image.h : 1;
      const int down = c == 0 ? image.v : 1;
      for (int block = 0; block < across * down; ++block) {
        const std::int64_t at =
            (y * down + block / across) * image.columns * across + x * across + block % across;
        std::int16_t* const out =
            wanted ? group.coefficients + (placed.first_block[c] + at) * kBlockSize : nullptr;
        if (!read_block(bits, code(c, 0), code(c, 1), dc[c], out)) {
          group.failed[placed.number] = 1;
          return;
        }
      }
    }
    if (bits.position() > piece.end_bit) {
      group.failed[placed.number] = 1;
      return;
    }
    if (++column == image.mcus_per_row) {
      column = 0;
      ++row;
    }
  }
  bool is_right = bits.position() + piece.slack >= piece.end_bit;
  for (int c = 0; c < image.components && piece.slack == 0; ++c)
    is_right = is_right && dc[c] == piece.then_dc[c];
  if (!is_right) group.failed[placed.number] = 1;
}

__device__ std::uint32_t blocks_of(const PackedJpeg& image, int component) {
  const std::uint32_t mcus = std::uint32_t(image.columns) * image.rows;
  return component == 0 ? mcus * (image.h * image.v) : mcus;
}

// Two numbers of 16 bits in each word.
constexpr int kWordsOfBlock = kBlockSize / 2;

struct Words {
  std::uint32_t of[kWordsOfBlock];
};

// Which bits of a block's words, in zigzag order, are not of its first row.
consteval Words below_first_row() {
  Words masks{};
  for (int i = kBlockSide; i < kBlockSize; ++i) {
    const int k = jpeg::kZigzagOf[i];
    masks.of[k / 2] |= 0xFFFFU << (16 * (k % 2));
  }
  return masks;
}

struct ZigzagPlaces {
  std::uint8_t natural[kBlockSize];
};

consteval ZigzagPlaces zigzag_places() {
  ZigzagPlaces places{};
  for (int i = 0; i < kBlockSize; ++i)
    places.natural[jpeg::kZigzagOf[i]] = static_cast<std::uint8_t>(i);
  return places;
}

__global__ void __launch_bounds__(kThreads) transform_blocks(const Group group) {
  constexpr Words kBelow = below_first_row();
  constexpr ZigzagPlaces kPlaces = zigzag_places();
  const PlacedJpeg& placed = group.images[blockIdx.y];
  const PackedJpeg& image = packed_of(group, placed);
  std::uint32_t block = blockIdx.x * kThreads + threadIdx.x;
  int component = 0;
  while (component < image.components && block >= blocks_of(image, component))
    block -= blocks_of(image, component++);
  if (component == image.components) return;
  const std::uint64_t number = placed.first_block[component] + block;
  const auto* const in = reinterpret_cast<const uint4*>(group.coefficients + number * kBlockSize);
  const auto* const quant = part_of<uint4>(image, image.quants) + component * (kWordsOfBlock / 4);
  std::int16_t work[kBlockSize];
  std::uint32_t below = 0;
#pragma unroll
  for (int i = 0; i < kWordsOfBlock / 4; ++i) {
    const uint4 values = in[i];
    const uint4 steps = __ldg(quant + i);
    const std::uint32_t value[4] = {values.x, values.y, values.z, values.w};
    const std::uint32_t step[4] = {steps.x, steps.y, steps.z, steps.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int word = 4 * i + k;
      below |= value[k] & kBelow.of[word];
      work[kPlaces.natural[2 * word]] =
          jpeg::idct::wrap(std::int16_t(value[k]) * int(step[k] & 0xFFFF));
      work[kPlaces.natural[2 * word + 1]] =
          jpeg::idct::wrap(std::int16_t(value[k] >> 16) * int(step[k] >> 16));
    }
  }
  std::uint8_t made[kBlockSize];
  jpeg::idct::transform(work, below == 0, made, kBlockSide);
  // Samples lie in rows of the region's blocks.
  const std::uint32_t across = image.columns * (component == 0 ? image.h : 1);
  const std::uint32_t y = block / across;
  const std::uint32_t x = block - y * across;
  const auto row = [&](int line) {
    std::uint32_t words[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < kBlockSide; ++i)
      words[i / 4] |= std::uint32_t(made[line * kBlockSide + i]) << (8 * (i % 4));
    return uint2{words[0], words[1]};
  };
  auto* const out =
      reinterpret_cast<uint2*>(group.samples + placed.first_block[component] * kBlockSize) +
      std::uint64_t(y) * kBlockSide * across + x;
#pragma unroll
  for (int line = 0; line < kBlockSide; ++line) out[line * across] = row(line);
}

// Samples of one component, by their places in the image.
struct Plane {
  const std::uint8_t* samples;
  std::uint32_t stride;
  int x;
  int y;

  __device__ Plane(const Group& group, const PlacedJpeg& placed, const PackedJpeg& image,
                   int component) {
    const int h = component == 0 ? image.h : 1;
    const int v = component == 0 ? image.v : 1;
    samples = group.samples + placed.first_block[component] * kBlockSize;
    stride = std::uint32_t(image.columns * h * kBlockSide);
    x = image.first_column * h * kBlockSide;
    y = image.first_row * v * kBlockSide;
  }
  __device__ int at(int column, int line) const {
    return samples[std::uint32_t(line - y) * stride + std::uint32_t(column - x)];
  }
};

__device__ int within(int value, int size) {
  return value < 0 ? 0 : value < size ? value : size - 1;
}

// Of 1, 2 and 4: no image that is packed has others.
__device__ int log2_of(int factor) { return factor >> 1; }

// The chroma of a pixel, which libjpeg's upsampling repeats at the image's edges.
__device__ int chroma_of(const Plane& plane, const PackedJpeg& image, int x, int y) {
  const int column = x >> log2_of(image.h);
  const int line = y >> log2_of(image.v);
  const bool odd = x % 2 != 0;
  const bool below = y % 2 != 0;
  const int beside = within(odd ? column + 1 : column - 1, image.chroma_width);
  const int far = within(below ? line + 1 : line - 1, image.chroma_height);
  if (image.smooth_h != 0 && image.smooth_v != 0)
    return jpeg::pixel::smooth_h2v2(3 * plane.at(column, line) + plane.at(column, far),
                                    3 * plane.at(beside, line) + plane.at(beside, far), odd);
  if (image.smooth_h != 0)
    return jpeg::pixel::smooth_h2(plane.at(column, line), plane.at(beside, line), odd);
  if (image.smooth_v != 0)
    return jpeg::pixel::smooth_v2(plane.at(column, line), plane.at(column, far), below);
  return plane.at(column, line);
}

__global__ void __launch_bounds__(kThreads) make_pixels(const Group group) {
  const PlacedJpeg& placed = group.images[blockIdx.y];
  const PackedJpeg& image = packed_of(group, placed);
  const std::uint32_t number = blockIdx.x * kThreads + threadIdx.x;
  const auto width = std::uint32_t(image.width);
  if (number >= width * std::uint32_t(image.height)) return;
  const std::uint32_t line = number / width;
  const int y = image.y + int(line);
  const int x = image.x + int(number - line * width);
  const int luma = Plane(group, placed, image, 0).at(x, y);
  std::uint8_t rgb[3] = {std::uint8_t(luma), std::uint8_t(luma), std::uint8_t(luma)};
  if (image.components == 3 && image.is_ycc != 0) {
    jpeg::pixel::from_ycc(luma, chroma_of(Plane(group, placed, image, 1), image, x, y),
                          chroma_of(Plane(group, placed, image, 2), image, x, y), rgb);
  } else if (image.components == 3) {
    rgb[1] = std::uint8_t(Plane(group, placed, image, 1).at(x, y));
    rgb[2] = std::uint8_t(Plane(group, placed, image, 2).at(x, y));
  }
  std::uint32_t pixel = rgb[0] | std::uint32_t(rgb[1]) << 8 | std::uint32_t(rgb[2]) << 16;
  reinterpret_cast<std::uint32_t*>(group.pixels)[placed.first_pixel + number] = pixel;
}

__global__ void __launch_bounds__(kThreads) resize_pixels(const Group group, std::uint8_t* out) {
  const PlacedJpeg& placed = group.images[blockIdx.y];
  const PackedJpeg& image = *reinterpret_cast<const PackedJpeg*>(group.heads + placed.head);
  const int number = int(blockIdx.x * kThreads + threadIdx.x);
  const int width = image.out_width;
  if (number >= image.out_height * width) return;
  const int y = number / width;
  const int x = number - y * width;
  const PackedAxis& vertical = image.vertical;
  const PackedAxis& horizontal = image.horizontal;
  const std::int32_t top = part_of<std::int32_t>(image, vertical.places)[y];
  const std::int32_t left = part_of<std::int32_t>(image, horizontal.places)[x];
  const std::int16_t* const down =
      part_of<std::int16_t>(image, vertical.weights) + y * vertical.taps;
  const std::int16_t* const across =
      part_of<std::int16_t>(image, horizontal.weights) + x * horizontal.taps;
  const auto* const pixels =
      reinterpret_cast<const std::uint32_t*>(group.pixels) + placed.first_pixel;
  const int bits = transform::fraction_bits(image.filter);
  const int first_shift = transform::kWeightBits - bits;
  const int second_shift = transform::kWeightBits + bits;
  std::int32_t sums[3] = {1 << (second_shift - 1), 1 << (second_shift - 1),
                          1 << (second_shift - 1)};
  for (int i = 0; i < horizontal.taps; ++i) {
    // Weightless pixels may lie beside the region.
    if (across[i] == 0) continue;
    std::int32_t between[3] = {1 << (first_shift - 1), 1 << (first_shift - 1),
                               1 << (first_shift - 1)};
    for (int k = 0; k < vertical.taps; ++k) {
      if (down[k] == 0) continue;
      const std::uint32_t pixel = pixels[std::size_t(top + k) * image.width + left + i];
      between[0] += std::int32_t(pixel & 0xFF) * down[k];
      between[1] += std::int32_t(pixel >> 8 & 0xFF) * down[k];
      between[2] += std::int32_t(pixel >> 16 & 0xFF) * down[k];
    }
    for (int c = 0; c < 3; ++c) sums[c] += std::int16_t(between[c] >> first_shift) * across[i];
  }
  std::uint8_t* const to = out + placed.out + std::size_t(number) * 3;
  for (int c = 0; c < 3; ++c) to[c] = jpeg::pixel::level(sums[c] >> second_shift);
}

unsigned groups_of(std::uint64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

}  // namespace

void enqueue_jpegs(const PlacedJpegs& batch, const PlacedJpeg* images, const std::byte* packed,
                   std::byte* scratch, std::byte* out, StreamHandle stream) {
  if (batch.images().empty()) return;
  check(cudaMemsetAsync(scratch, 0, PlacedJpegs::flag_bytes(batch.images().size()), stream));
  for (const JpegGroup& all : batch.groups()) {
    check(cudaMemsetAsync(scratch + all.coefficients, 0, all.samples - all.coefficients, stream));
    for (std::uint32_t done = 0; done < all.count; done += kMostGridRows) {
      const unsigned count = std::min<unsigned>(all.count - done, kMostGridRows);
      const Group group{.images = images + all.first + done,
                        .packed = packed,
                        .heads = scratch + all.heads,
                        .tables = reinterpret_cast<std::uint32_t*>(scratch + all.tables),
                        .coefficients = reinterpret_cast<std::int16_t*>(scratch + all.coefficients),
                        .samples = reinterpret_cast<std::uint8_t*>(scratch + all.samples),
                        .pixels = reinterpret_cast<std::uint8_t*>(scratch + all.pixels),
                        .failed = reinterpret_cast<std::uint32_t*>(scratch)};
      launch(make_tables, dim3(kWindows / kThreads, count), kThreads, 0, stream, group);
      launch(read_pieces, dim3((all.most_pieces + kDecodingThreads - 1) / kDecodingThreads, count),
             kDecodingThreads, 0, stream, group);
      launch(transform_blocks, dim3(groups_of(all.most_blocks), count), kThreads, 0, stream, group);
      launch(make_pixels, dim3(groups_of(all.most_pixels), count), kThreads, 0, stream, group);
      launch(resize_pixels, dim3(groups_of(all.most_outputs), count), kThreads, 0, stream, group,
             reinterpret_cast<std::uint8_t*>(out));
    }
  }
}

}  // namespace penstock::gpu_jpeg
