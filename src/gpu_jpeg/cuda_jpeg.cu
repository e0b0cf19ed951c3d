// JPEGs on a GPU, in five kernels: tables of the batch's Huffman codes; coefficients, a thread for each piece of a scan; samples, a
// thread for each block; pixels of the regions; and their resize. Every number is the host decoder's.
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
// Pieces are of uneven lengths: few in a block, so that it is done soon.
constexpr unsigned kDecodingThreads = 64;
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

__device__ CodeView code_at(const std::byte* codes, std::uint32_t number) {
  const std::byte* const code = codes + number * sizeof(jpeg::CanonicalCode);
  return {reinterpret_cast<const std::uint32_t*>(code),
          reinterpret_cast<const std::int32_t*>(code + 68),
          reinterpret_cast<const std::uint8_t*>(code + 136),
          *reinterpret_cast<const bool*>(code + 392)};
}

__device__ std::uint32_t symbol_at(const CodeView& code, std::uint32_t next16) {
  return symbol::find(code.limit, code.offset, code.symbols, code.dc, next16);
}

// A look-up for every next kWindowBits, where these tell the symbol.
__global__ void __launch_bounds__(kThreads)
    make_tables(const std::byte* codes, std::uint32_t* tables) {
  const CodeView code = code_at(codes, blockIdx.y);
  const unsigned window = blockIdx.x * kThreads + threadIdx.x;
  if (window >= kWindows) return;
  std::uint32_t entry = symbol_at(code, window << (16 - kWindowBits));
  if (entry == symbol::kInvalid || symbol::code_bits(entry) > unsigned(kWindowBits))
    entry = symbol::kNotTold;
  tables[std::size_t(blockIdx.y) * kWindows + window] = entry;
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

// The next symbol; its code is taken. kInvalid where there is none.
__device__ std::uint32_t next_symbol(Bits& bits, const std::uint32_t* table, const std::byte* codes,
                                     std::uint32_t code) {
  bits.refill();
  std::uint32_t entry = __ldg(table + (bits.buffer >> (64 - kWindowBits)));
  if (entry == symbol::kNotTold)
    entry = symbol_at(code_at(codes, code), std::uint32_t(bits.buffer >> 48));
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

struct Scratch {
  const PackedImage* images;
  const PackedPiece* pieces;
  const std::byte* codes;
  const PackedQuant* quants;
  const std::int32_t* places;
  const std::int16_t* weights;
  const std::uint32_t* data;
  const std::uint8_t* natural;
  std::uint32_t* tables;
  std::int16_t* coefficients;
  std::uint8_t* samples;
  std::uint8_t* pixels;
  std::uint32_t* failed;
};

// Reads a block, and writes it to `out` where that is not null. False where the data are not what the index promised.
__device__ bool read_block(Bits& bits, const PackedImage& image, int component,
                           const Scratch& scratch, std::int16_t& dc, std::int16_t* out) {
  const std::uint32_t dc_code = image.codes[component][0];
  const std::uint32_t ac_code = image.codes[component][1];
  std::uint32_t entry =
      next_symbol(bits, scratch.tables + std::size_t(dc_code) * kWindows, scratch.codes, dc_code);
  if (entry == symbol::kInvalid) return false;
  dc = std::int16_t(std::uint32_t(dc) + std::uint32_t(next_value(bits, entry)));
  if (out != nullptr) out[0] = dc;
  const std::uint32_t* const table = scratch.tables + std::size_t(ac_code) * kWindows;
  for (int k = 1; k < kBlockSize;) {
    entry = next_symbol(bits, table, scratch.codes, ac_code);
    if (entry == symbol::kInvalid) return false;
    if ((entry & symbol::kEnd) != 0) break;
    k += symbol::step(entry);
    if (k > kBlockSize) return false;
    const std::int32_t value = next_value(bits, entry);
    if (out != nullptr) out[scratch.natural[k - 1]] = std::int16_t(value);
  }
  return true;
}

__global__ void __launch_bounds__(kDecodingThreads)
    read_pieces(const Scratch scratch, std::uint32_t count) {
  const std::uint32_t number = blockIdx.x * kDecodingThreads + threadIdx.x;
  if (number >= count) return;
  const PackedPiece piece = scratch.pieces[number];
  const PackedImage& image = scratch.images[piece.image];
  Bits bits(scratch.data + image.first_word, image.words, piece.bit);
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
            wanted ? scratch.coefficients + (image.first_block[c] + at) * kBlockSize : nullptr;
        if (!read_block(bits, image, c, scratch, dc[c], out)) {
          scratch.failed[piece.image] = 1;
          return;
        }
      }
    }
    if (bits.position() > piece.end_bit) {
      scratch.failed[piece.image] = 1;
      return;
    }
    if (++column == image.mcus_per_row) {
      column = 0;
      ++row;
    }
  }
  if (bits.position() + piece.slack < piece.end_bit) scratch.failed[piece.image] = 1;
}

__device__ std::uint64_t blocks_of(const PackedImage& image, int component) {
  const std::uint64_t mcus = std::uint64_t(image.columns) * image.rows;
  return component == 0 ? mcus * image.h * image.v : mcus;
}

__global__ void __launch_bounds__(kThreads)
    transform_blocks(const Scratch scratch, std::uint32_t first_image) {
  const PackedImage& image = scratch.images[first_image + blockIdx.y];
  std::uint64_t block = std::uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  int component = 0;
  while (component < image.components && block >= blocks_of(image, component))
    block -= blocks_of(image, component++);
  if (component == image.components) return;
  const std::uint64_t number = image.first_block[component] + block;
  const std::int16_t* const in = scratch.coefficients + number * kBlockSize;
  const PackedQuant& quant = scratch.quants[image.quants[component]];
  std::int16_t work[kBlockSize];
  bool first_row_only = true;
#pragma unroll
  for (int i = 0; i < kBlockSize; ++i) {
    const std::int32_t value = in[i];
    if (i >= kBlockSide && value != 0) first_row_only = false;
    work[i] = jpeg::idct::wrap(value * quant.steps[i]);
  }
  // Samples lie in rows of the region's blocks.
  const int across = image.columns * (component == 0 ? image.h : 1);
  const std::uint64_t y = block / across;
  const std::uint64_t x = block - y * across;
  const std::ptrdiff_t stride = std::ptrdiff_t(across) * kBlockSide;
  std::uint8_t* const out = scratch.samples + image.first_block[component] * kBlockSize +
                            y * kBlockSide * stride + x * kBlockSide;
  jpeg::idct::transform(work, first_row_only, out, stride);
}

// Samples of one component, by their places in the image.
struct Plane {
  const std::uint8_t* samples;
  std::ptrdiff_t stride;
  int x;
  int y;

  __device__ Plane(const Scratch& scratch, const PackedImage& image, int component) {
    const int h = component == 0 ? image.h : 1;
    const int v = component == 0 ? image.v : 1;
    samples = scratch.samples + image.first_block[component] * kBlockSize;
    stride = std::ptrdiff_t(image.columns) * h * kBlockSide;
    x = image.first_column * h * kBlockSide;
    y = image.first_row * v * kBlockSide;
  }
  __device__ int at(int column, int line) const {
    return samples[(line - y) * stride + column - x];
  }
};

__device__ int within(int value, int size) {
  return value < 0 ? 0 : value < size ? value : size - 1;
}

// The chroma of a pixel, which libjpeg's upsampling repeats at the image's edges.
__device__ int chroma_of(const Plane& plane, const PackedImage& image, int x, int y) {
  const int column = x / image.h;
  const int line = y / image.v;
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

__global__ void __launch_bounds__(kThreads)
    make_pixels(const Scratch scratch, std::uint32_t first_image) {
  const PackedImage& image = scratch.images[first_image + blockIdx.y];
  const std::uint64_t number = std::uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (number >= std::uint64_t(image.width) * image.height) return;
  const int line = int(number / image.width);
  const int y = image.y + line;
  const int x = image.x + int(number - std::uint64_t(line) * image.width);
  const int luma = Plane(scratch, image, 0).at(x, y);
  std::uint8_t rgb[3] = {std::uint8_t(luma), std::uint8_t(luma), std::uint8_t(luma)};
  if (image.components == 3 && image.is_ycc != 0) {
    jpeg::pixel::from_ycc(luma, chroma_of(Plane(scratch, image, 1), image, x, y),
                          chroma_of(Plane(scratch, image, 2), image, x, y), rgb);
  } else if (image.components == 3) {
    rgb[1] = std::uint8_t(Plane(scratch, image, 1).at(x, y));
    rgb[2] = std::uint8_t(Plane(scratch, image, 2).at(x, y));
  }
  std::uint32_t pixel = rgb[0] | std::uint32_t(rgb[1]) << 8 | std::uint32_t(rgb[2]) << 16;
  reinterpret_cast<std::uint32_t*>(scratch.pixels)[image.first_pixel + number] = pixel;
}

__global__ void __launch_bounds__(kThreads)
    resize_pixels(const Scratch scratch, std::uint32_t first_image, int height, int width,
                  ResizeFilter filter, std::uint8_t* out, std::size_t row_bytes) {
  const PackedImage& image = scratch.images[first_image + blockIdx.y];
  const int number = int(blockIdx.x * kThreads + threadIdx.x);
  if (number >= height * width) return;
  const int y = number / width;
  const int x = number - y * width;
  const std::int32_t top = scratch.places[image.vertical.places + y];
  const std::int32_t left = scratch.places[image.horizontal.places + x];
  const std::int16_t* const down =
      scratch.weights + image.vertical.weights + y * image.vertical.taps;
  const std::int16_t* const across =
      scratch.weights + image.horizontal.weights + x * image.horizontal.taps;
  const auto* const pixels =
      reinterpret_cast<const std::uint32_t*>(scratch.pixels) + image.first_pixel;
  const int bits = transform::fraction_bits(filter);
  const int first_shift = transform::kWeightBits - bits;
  const int second_shift = transform::kWeightBits + bits;
  std::int32_t sums[3] = {1 << (second_shift - 1), 1 << (second_shift - 1),
                          1 << (second_shift - 1)};
  for (int i = 0; i < image.horizontal.taps; ++i) {
    // Weightless pixels may lie beside the region.
    if (across[i] == 0) continue;
    std::int32_t between[3] = {1 << (first_shift - 1), 1 << (first_shift - 1),
                               1 << (first_shift - 1)};
    for (int k = 0; k < image.vertical.taps; ++k) {
      if (down[k] == 0) continue;
      const std::uint32_t pixel = pixels[std::size_t(top + k) * image.width + left + i];
      between[0] += std::int32_t(pixel & 0xFF) * down[k];
      between[1] += std::int32_t(pixel >> 8 & 0xFF) * down[k];
      between[2] += std::int32_t(pixel >> 16 & 0xFF) * down[k];
    }
    for (int c = 0; c < 3; ++c) sums[c] += std::int16_t(between[c] >> first_shift) * across[i];
  }
  std::uint8_t* const to = out + image.row * row_bytes + std::size_t(number) * 3;
  for (int c = 0; c < 3; ++c) to[c] = jpeg::pixel::level(sums[c] >> second_shift);
}

unsigned groups_of(std::uint64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

}  // namespace

void enqueue_jpegs(const PackedLayout& layout, const std::byte* packed, std::byte* memory,
                   std::byte* out, std::size_t row_bytes, StreamHandle stream) {
  if (layout.image_count == 0) return;
  const auto in = [&](std::size_t at, auto of) {
    return reinterpret_cast<decltype(of)>(packed + at);
  };
  const auto at = [&](std::size_t offset, auto of) {
    return reinterpret_cast<decltype(of)>(memory + offset);
  };
  const Scratch scratch{
      .images = in(layout.images, static_cast<const PackedImage*>(nullptr)),
      .pieces = in(layout.pieces, static_cast<const PackedPiece*>(nullptr)),
      .codes = packed + layout.codes,
      .quants = in(layout.quants, static_cast<const PackedQuant*>(nullptr)),
      .places = in(layout.places, static_cast<const std::int32_t*>(nullptr)),
      .weights = in(layout.weights, static_cast<const std::int16_t*>(nullptr)),
      .data = in(layout.data, static_cast<const std::uint32_t*>(nullptr)),
      .natural = in(layout.natural, static_cast<const std::uint8_t*>(nullptr)),
      .tables = at(layout.tables, static_cast<std::uint32_t*>(nullptr)),
      .coefficients = at(layout.coefficients, static_cast<std::int16_t*>(nullptr)),
      .samples = at(layout.samples, static_cast<std::uint8_t*>(nullptr)),
      .pixels = at(layout.pixels, static_cast<std::uint8_t*>(nullptr)),
      .failed = at(layout.failed, static_cast<std::uint32_t*>(nullptr))};
  check(cudaMemsetAsync(scratch.coefficients, 0, layout.samples - layout.coefficients, stream));
  check(cudaMemsetAsync(scratch.failed, 0, layout.scratch_bytes - layout.failed, stream));
  launch(make_tables, dim3(groups_of(kWindows), layout.code_count), kThreads, 0, stream,
         scratch.codes, scratch.tables);
  launch(read_pieces, (layout.piece_count + kDecodingThreads - 1) / kDecodingThreads,
         kDecodingThreads, 0, stream, scratch, layout.piece_count);
  const std::uint64_t outputs = static_cast<std::uint64_t>(layout.output.height) *
                                static_cast<std::uint64_t>(layout.output.width);
  for (std::uint32_t first = 0; first < layout.image_count; first += kMostGridRows) {
    const unsigned images = std::min<unsigned>(layout.image_count - first, kMostGridRows);
    launch(transform_blocks, dim3(groups_of(layout.most_blocks), images), kThreads, 0, stream,
           scratch, first);
    launch(make_pixels, dim3(groups_of(layout.most_pixels), images), kThreads, 0, stream, scratch,
           first);
    launch(resize_pixels, dim3(groups_of(outputs), images), kThreads, 0, stream, scratch, first,
           layout.output.height, layout.output.width, layout.filter,
           reinterpret_cast<std::uint8_t*>(out), row_bytes);
  }
}

}  // namespace penstock::gpu_jpeg
