// JPEGs on a GPU, in five kernels: tables of the batch's Huffman codes, and the images' heads; coefficients, a thread for each piece of
// a scan, in zigzag order; samples, a thread for each block; pixels of the regions; and their resize, by rows. Every number is the host
// decoder's.
#include <algorithm>

#ifndef PENSTOCK_SIMULATED_CUDA
#include <cuda_pipeline_primitives.h>
#endif

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
// Of one image, whose look-ups they share.
constexpr unsigned kDecodingThreads = 64;
// Those of luma and of chroma, for DC and AC.
constexpr int kUsualCodes = 4;
// Coefficients that are cleared together: a sector of the GPU's memory.
constexpr int kPartSize = 16;
constexpr unsigned kPartWords = 2;  // of 16 bytes

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

// What all kernels of a group know.
struct Group {
  const PlacedJpeg* images;
  const std::byte* packed;
  std::byte* heads;
  LookUp* tables;
  std::int16_t* coefficients;
  std::uint8_t* parts;  // of each block, how many were written
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

// Of 1, 2 and 4: no image that is packed has others.
__device__ int log2_of(int factor) { return factor >> 1; }

// An entry of a LookUp, in 16 bits. It is 0 where nothing is known.
//   0-4    bits that the symbol takes, code and value
//   5-9    bits of its value
//   10     it ends the block
//   11-15  coefficients that it moves on; 0 where it ends the block
constexpr std::uint32_t kTaken = 31;
constexpr int kSize = 5;
constexpr std::uint32_t kHasValue = 31U << kSize;
constexpr std::uint32_t kEnds = 1U << 10;
constexpr int kMoves = 11;

__device__ std::uint32_t narrow(std::uint32_t entry) {
  const bool ends = (entry & symbol::kEnd) != 0;
  return symbol::bits(entry) | symbol::value_bits(entry) << kSize |
         (ends ? kEnds : std::uint32_t(symbol::step(entry)) << kMoves);
}

// The batch's look-ups. And a copy of the head: pixels may be written over it.
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
    LookUp& table = group.tables[placed.table[i]];
    const std::uint32_t entry =
        symbol::find(code.limit, code.offset, code.symbols, code.dc, number << (16 - kWindowBits));
    const bool is_known =
        entry != symbol::kInvalid && symbol::code_bits(entry) <= unsigned(kWindowBits);
    table.entries[number] = std::uint16_t(is_known ? narrow(entry) : 0);
    if (number < sizeof table.symbols) table.symbols[number] = code.symbols[number];
    if (number < kLongCodes) {
      table.limit[number] = code.limit[kWindowBits + 1 + number];
      table.offset[number] = code.offset[kWindowBits + 1 + number];
    }
  }
}

// That of the symbol at the start of the next 16 bits, whose code is longer than a window; 0 where there is none.
__device__ std::uint32_t long_entry(const LookUp& table, std::uint32_t next16, bool dc) {
  unsigned longer = 0;
  for (unsigned i = 0; i < kLongCodes; ++i) longer += next16 >= table.limit[i] ? 1 : 0;
  if (longer == kLongCodes) return 0;
  const unsigned length = kWindowBits + 1 + longer;
  const auto code = std::int32_t(next16 >> (16 - length));
  return narrow(symbol::entry_of(table.symbols[(code + table.offset[longer]) & 255], length, dc));
}

// An object in shared memory by its address there, of 32 bits.
template <class T>
__device__ T& shared_at(std::uint32_t address) {
  return *static_cast<T*>(__cvta_shared_to_generic(address));
}
__device__ std::uint32_t shared_address(const void* object) {
  return std::uint32_t(__cvta_generic_to_shared(object));
}

// A thread's next words wait in a ring of shared memory. Copies of 16 bytes fill it, for which no thread waits: a symbol takes less
// than a word, so that kSteps of them take no more than two copies bring, and what these bring is not read for 2 * kSteps symbols.
constexpr std::uint32_t kRingWords = 32;
constexpr std::uint32_t kRingBytes = 4 * kRingWords;
constexpr std::uint32_t kCopyWords = sizeof(uint4) / 4;
constexpr unsigned kSteps = 8;
static_assert(kSteps <= 2 * kCopyWords);
static_assert(kRingWords >= 2 * kCopyWords + 2 * kSteps + kCopyWords);

__device__ std::uint32_t in_ring(std::uint32_t ring, std::uint32_t byte) {
  return (ring & ~(kRingBytes - 1)) | (byte & (kRingBytes - 1));
}
__device__ std::uint32_t swapped(std::uint32_t word) { return __byte_perm(word, 0, 0x0123); }

// The next bits of a scan. Behind its end come zeros.
struct Bits {
  const uint4* data;  // big-endian
  std::uint32_t words;
  std::uint32_t position;  // in bits
  std::uint32_t filled;    // words that are in the ring, or on their way
  std::uint32_t from;      // address of the ring's word behind these:
  std::uint32_t word[3];   // those from `position` on; the last one as it lies in memory

  // `ring` is aligned to its size.
  __device__ Bits(const uint4* all, std::uint32_t count, std::uint32_t bit, std::uint32_t ring)
      : data(all), words(count), position(bit), filled(bit / 32 / kCopyWords * kCopyWords) {
    from = in_ring(ring, bit / 32 * 4);
    for (std::uint32_t i = 0; i < kRingWords / kCopyWords; ++i) copy();
    __pipeline_commit();
    __pipeline_wait_prior(0);
    word[0] = swapped(take());
    word[1] = swapped(take());
    word[2] = take();
  }
  __device__ void copy() {
    auto& to = shared_at<uint4>(in_ring(from, 4 * filled));
    if (filled < words)
      __pipeline_memcpy_async(&to, data + filled / kCopyWords, sizeof to);
    else
      to = uint4{0, 0, 0, 0};
    filled += kCopyWords;
  }
  // Before every kSteps symbols.
  __device__ void fill() {
    const std::uint32_t next = position / 32 + 3;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (filled - next <= kRingWords - kCopyWords) copy();
    __pipeline_commit();
    __pipeline_wait_prior(2);
  }
  __device__ std::uint32_t take() {
    const std::uint32_t taken = shared_at<const std::uint32_t>(from);
    from = in_ring(from, from + 4);
    return taken;
  }
  __device__ std::uint32_t ahead() const { return __funnelshift_l(word[1], word[0], position); }
  // Fewer than 32.
  __device__ void skip(std::uint32_t bits) {
    const std::uint32_t before = position;
    position += bits;
    if (((position ^ before) & 32) == 0) return;
    word[0] = word[1];
    word[1] = swapped(word[2]);
    word[2] = take();
  }
};

// A block of an MCU.
struct alignas(16) Slot {
  std::uint32_t dc;  // addresses of its look-ups
  std::uint32_t ac;
  std::uint32_t first;  // its number in the group, in the region's first MCU
  // Blocks from one MCU of the region to the next; kTurns, kLast; above bit 16 further ones for each row of MCUs.
  std::uint32_t shape;
};
constexpr std::uint32_t kAcross = 15;
// The next block is of another component.
constexpr std::uint32_t kTurns = 1U << 4;
// The next block is of another MCU.
constexpr std::uint32_t kLast = 1U << 5;

__device__ Slot slot_of(const PackedJpeg& image, const PlacedJpeg& placed, std::uint32_t codes,
                        int number) {
  const int luma = image.h * image.v;
  const bool is_luma = number < luma;
  const int component = is_luma ? 0 : number - luma + 1;
  const std::uint32_t width = image.columns * image.h;
  const bool turns = number + 1 >= luma && image.components > 1;
  const bool last = number + 1 == luma + image.components - 1;
  const auto first = std::uint32_t(placed.first_block[component]);
  const std::uint32_t line = std::uint32_t(number) >> log2_of(image.h);
  return {.dc = codes + std::uint32_t(image.code[component][0] * sizeof(LookUp)),
          .ac = codes + std::uint32_t(image.code[component][1] * sizeof(LookUp)),
          .first = is_luma ? first + line * width + (number & (image.h - 1)) : first,
          .shape = (is_luma ? image.h | width * (image.v - 1) << 16 : 1) | (turns ? kTurns : 0) |
                   (last ? kLast : 0)};
}

// A thread reads a symbol a time, of whichever block it is at: those of a warp do not wait for each other where a block ends.
// No image has more than `kCodes` codes: with fewer a multiprocessor has room for more blocks.
template <int kCodes>
__global__ void __launch_bounds__(kDecodingThreads) read_pieces(const Group group) {
  alignas(16) __shared__ LookUp codes[kCodes];
  alignas(kRingBytes) __shared__ std::uint32_t rings[kDecodingThreads * kRingWords];
  __shared__ Slot slots[jpeg::kMaxBlocksPerMcu];
  const PlacedJpeg& placed = group.images[blockIdx.y];
  const PackedJpeg& image = packed_of(group, placed);
  const std::uint32_t number = blockIdx.x * kDecodingThreads + threadIdx.x;
  if (blockIdx.x * kDecodingThreads >= image.piece_count) return;
  for (std::uint32_t i = 0; i < image.code_count; ++i) {
    const auto* const from = reinterpret_cast<const uint4*>(group.tables + placed.table[i]);
    auto* const to = reinterpret_cast<uint4*>(codes + i);
    for (unsigned k = threadIdx.x; k < sizeof(LookUp) / sizeof(uint4); k += kDecodingThreads)
      __pipeline_memcpy_async(to + k, from + k, sizeof(uint4));
  }
  __pipeline_commit();
  const int count = image.h * image.v + image.components - 1;
  if (int(threadIdx.x) < count)
    slots[threadIdx.x] = slot_of(image, placed, shared_address(codes), int(threadIdx.x));
  __pipeline_wait_prior(0);
  __syncthreads();
  if (number >= image.piece_count) return;

  const PackedPiece& piece = part_of<PackedPiece>(image, image.pieces)[number];
  Bits bits(part_of<uint4>(image, image.data), image.words, piece.bit,
            shared_address(rings + threadIdx.x * kRingWords));
  // Of the component that is read, of the next one, and of the third.
  std::uint32_t dc[kPackedComponents];
#pragma unroll
  for (int c = 0; c < kPackedComponents; ++c) dc[c] = std::uint32_t(piece.dc[c]);
  const int row = int(piece.begin / std::uint32_t(image.mcus_per_row));
  const std::uint32_t y = row - image.first_row;
  // MCUs are counted in the region; those before the first that is needed may be less than none.
  const int region = int(y) * image.columns - row * image.mcus_per_row - image.first_column;
  int mcu = int(piece.first) + region;
  const int begin = int(piece.begin) + region;
  const int end = int(piece.end) + region;
  const std::uint32_t end_bit = piece.end_bit;
  bool is_right = false;

  const std::uint32_t first_slot = shared_address(slots);
  std::uint32_t next_slot = first_slot;
  Slot slot = slots[0];
  std::uint32_t block;
  std::int16_t* out;
  std::uint32_t code;
  std::int32_t at;  // the coefficient that was read last
  const auto begin_block = [&] {
    next_slot = (slot.shape & kLast) != 0 ? first_slot : next_slot + std::uint32_t(sizeof(Slot));
    block = slot.first + (slot.shape & kAcross) * mcu + (slot.shape >> 16) * y;
    out = group.coefficients + std::size_t(block) * kBlockSize;
    code = slot.dc;
    at = -1;
  };
  begin_block();
  bool wanted = mcu >= begin;
  for (unsigned step = 0;; ++step) {
    if (step % kSteps == 0) bits.fill();
    const std::uint32_t window = bits.ahead();
    std::uint32_t entry = shared_at<const std::uint16_t>(code + (window >> (32 - kWindowBits)) *
                                                                    sizeof(std::uint16_t));
    if (entry == 0) {
      entry = long_entry(shared_at<const LookUp>(code), window >> 16, at < 0);
      if (entry == 0) break;
    }
    bits.skip(entry & kTaken);
    // Shifts go by the lowest five bits. What is below half stands for minus what is missing to all ones.
    const std::uint32_t size = entry >> kSize;
    const std::uint32_t value_first = __funnelshift_l(0, window, entry - size);
    const auto below = std::uint32_t(~(std::int32_t(value_first) >> 31));
    std::uint32_t value = (__funnelshift_l(value_first ^ below, 0, size) ^ below) - below;
    const bool is_dc = at < 0;
    const std::int32_t before = at;
    at += std::int32_t(entry >> kMoves);
    if (at >= kBlockSize) break;
    if (is_dc) {
      dc[0] += value;
      value = dc[0];
      code = slot.ac;
    }
    if (wanted) {
      if (((at ^ before) & ~(kPartSize - 1)) != 0) {
        auto* const part =
            reinterpret_cast<uint4*>(out) + std::uint32_t(at) / kPartSize * kPartWords;
        part[0] = uint4{0, 0, 0, 0};
        part[1] = uint4{0, 0, 0, 0};
      }
      if ((entry & kHasValue) != 0 || is_dc) out[std::uint32_t(at)] = std::int16_t(value);
    }
    if ((entry & kEnds) == 0 && at != kBlockSize - 1) continue;
    const Slot next = shared_at<const Slot>(next_slot);
    if (wanted) group.parts[block] = std::uint8_t(std::uint32_t(at) / kPartSize + 1);
    if ((slot.shape & kTurns) != 0) {
      const std::uint32_t first = dc[0];
      dc[0] = dc[1];
      dc[1] = dc[2];
      dc[2] = first;
    }
    if ((slot.shape & kLast) != 0) {
      ++mcu;
      if (bits.position > end_bit) break;
      if (mcu == end) {
        is_right = end_bit - bits.position <= piece.slack;
        break;
      }
      wanted = mcu >= begin;
    }
    slot = next;
    begin_block();
  }
#pragma unroll
  for (int c = 0; c < kPackedComponents; ++c)
    if (c < image.components && piece.slack == 0)
      is_right = is_right && std::int16_t(dc[c]) == piece.then_dc[c];
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

// Of threads, which a multiprocessor has at a time: with more registers there would be fewer.
constexpr unsigned kTransformingBlocks = 6;

struct ZigzagPlaces {
  std::uint8_t natural[kBlockSize];
};

consteval ZigzagPlaces zigzag_places() {
  ZigzagPlaces places{};
  for (int i = 0; i < kBlockSize; ++i)
    places.natural[jpeg::kZigzagOf[i]] = static_cast<std::uint8_t>(i);
  return places;
}

__global__ void __launch_bounds__(kThreads, kTransformingBlocks)
    transform_blocks(const Group group) {
  constexpr Words kBelow = below_first_row();
  constexpr ZigzagPlaces kPlaces = zigzag_places();
  const PlacedJpeg& placed = group.images[blockIdx.y];
  const PackedJpeg& image = packed_of(group, placed);
  for (std::uint32_t of_image = blockIdx.x * kThreads + threadIdx.x;;
       of_image += gridDim.x * kThreads) {
    std::uint32_t block = of_image;
    int component = 0;
    while (component < image.components && block >= blocks_of(image, component))
      block -= blocks_of(image, component++);
    if (component == image.components) return;
    const std::uint64_t number = placed.first_block[component] + block;
    const auto* const in = reinterpret_cast<const uint4*>(group.coefficients + number * kBlockSize);
    const auto* const quant = part_of<uint4>(image, image.quants) + component * (kWordsOfBlock / 4);
    std::int16_t work[kBlockSize];
    std::uint32_t below = 0;
    const unsigned written = group.parts[number] * (kPartWords);
#pragma unroll
    for (unsigned i = 0; i < kWordsOfBlock / 4; ++i) {
      const uint4 values = i < written ? in[i] : uint4{0, 0, 0, 0};
      const uint4 steps = __ldg(quant + i);
      const std::uint32_t value[4] = {values.x, values.y, values.z, values.w};
      const std::uint32_t step[4] = {steps.x, steps.y, steps.z, steps.w};
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) {
        const unsigned word = 4 * i + k;
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
  const auto width = std::uint32_t(image.width);
  const std::uint32_t end = width * std::uint32_t(image.height);
  for (std::uint32_t number = blockIdx.x * kThreads + threadIdx.x; number < end;
       number += gridDim.x * kThreads) {
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
}

// Of a block.
constexpr int kRows = 4;
// Between the directions of a resize, a row of at most so many columns waits in shared memory.
constexpr int kMostColumns = 2048;

// A row at a time: down the columns of the region, then along them. Columns that do not fit are summed up again for each pixel.
// Pixels beside the region weigh nothing: any other may stand in for them.
__global__ void __launch_bounds__(kThreads) resize_pixels(const Group group, std::uint8_t* out) {
  __shared__ uint2 between[kMostColumns];  // three numbers of 16 bits
  const PlacedJpeg& placed = group.images[blockIdx.y];
  const PackedJpeg& image = *reinterpret_cast<const PackedJpeg*>(group.heads + placed.head);
  const int begin = int(blockIdx.x) * kRows;
  const int end = min(begin + kRows, image.out_height);
  const int width = image.width;
  const bool fits = width <= kMostColumns;
  const int columns = image.out_width;
  const PackedAxis vertical = image.vertical;
  const PackedAxis horizontal = image.horizontal;
  const auto* const pixels =
      reinterpret_cast<const std::uint32_t*>(group.pixels) + placed.first_pixel;
  const int bits = transform::fraction_bits(image.filter);
  const int first_shift = transform::kWeightBits - bits;
  const int second_shift = transform::kWeightBits + bits;
  for (int y = begin; y < end; ++y) {
    const std::int32_t top = part_of<std::int32_t>(image, vertical.places)[y];
    const std::int16_t* const down =
        part_of<std::int16_t>(image, vertical.weights) + y * vertical.taps;
    const auto sum_of = [&](int column) {
      std::int32_t sums[3] = {1 << (first_shift - 1), 1 << (first_shift - 1),
                              1 << (first_shift - 1)};
#pragma unroll 4
      for (int k = 0; k < vertical.taps; ++k) {
        const std::int32_t weight = down[k];
        const auto line = std::uint32_t(within(top + k, image.height));
        const std::uint32_t pixel = pixels[line * std::uint32_t(width) + std::uint32_t(column)];
        sums[0] += std::int32_t(pixel & 0xFF) * weight;
        sums[1] += std::int32_t(pixel >> 8 & 0xFF) * weight;
        sums[2] += std::int32_t(pixel >> 16 & 0xFF) * weight;
      }
      return uint2{(std::uint32_t(sums[0] >> first_shift) & 0xFFFF) |
                       std::uint32_t(sums[1] >> first_shift) << 16,
                   std::uint32_t(sums[2] >> first_shift)};
    };
    if (fits) {
      __syncthreads();  // the row before has been read
      for (int column = int(threadIdx.x); column < width; column += int(kThreads))
        between[column] = sum_of(column);
      __syncthreads();
    }
    for (int x = int(threadIdx.x); x < columns; x += int(kThreads)) {
      const std::int32_t left = part_of<std::int32_t>(image, horizontal.places)[x];
      const std::int16_t* const across =
          part_of<std::int16_t>(image, horizontal.weights) + x * horizontal.taps;
      std::int32_t sums[3] = {1 << (second_shift - 1), 1 << (second_shift - 1),
                              1 << (second_shift - 1)};
      for (int i = 0; i < horizontal.taps; ++i) {
        const std::int32_t weight = across[i];
        const int from = within(left + i, width);
        const uint2 column = fits ? between[from] : sum_of(from);
        sums[0] += std::int16_t(column.x) * weight;
        sums[1] += std::int16_t(column.x >> 16) * weight;
        sums[2] += std::int16_t(column.y) * weight;
      }
      std::uint8_t* const to = out + placed.out + (std::size_t(y) * columns + x) * 3;
      for (int c = 0; c < 3; ++c) to[c] = jpeg::pixel::level(sums[c] >> second_shift);
    }
  }
}

unsigned groups_of(std::uint64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

// Of an image, which take turns: images differ in size, and a block of threads that finds nothing to do takes time as well.
constexpr unsigned kMostGroups = 64;
unsigned turns_of(std::uint64_t count) { return std::min(groups_of(count), kMostGroups); }

}  // namespace

void enqueue_jpegs(const PlacedJpegs& batch, const PlacedJpeg* images, const std::byte* packed,
                   std::byte* scratch, std::byte* out, StreamHandle stream,
                   const std::function<void(const char*)>& behind) {
  if (batch.images().empty()) return;
  check(cudaMemsetAsync(scratch, 0, PlacedJpegs::flag_bytes(batch.images().size()), stream));
  for (const JpegGroup& all : batch.groups()) {
    for (std::uint32_t done = 0; done < all.count; done += kMostGridRows) {
      const unsigned count = std::min<unsigned>(all.count - done, kMostGridRows);
      const Group group{.images = images + all.first + done,
                        .packed = packed,
                        .heads = scratch + all.heads,
                        .tables = reinterpret_cast<LookUp*>(scratch + all.tables),
                        .coefficients = reinterpret_cast<std::int16_t*>(scratch + all.coefficients),
                        .parts = reinterpret_cast<std::uint8_t*>(scratch + all.parts),
                        .samples = reinterpret_cast<std::uint8_t*>(scratch + all.samples),
                        .pixels = reinterpret_cast<std::uint8_t*>(scratch + all.pixels),
                        .failed = reinterpret_cast<std::uint32_t*>(scratch)};
      const auto queue = [&](const char* name, auto kernel, unsigned blocks, unsigned threads,
                             const auto&... more) {
        launch(kernel, dim3(blocks, count), threads, 0, stream, group, more...);
        if (behind) behind(name);
      };
      queue("make_tables", make_tables, kWindows / kThreads, kThreads);
      queue("read_pieces",
            all.most_codes <= kUsualCodes ? read_pieces<kUsualCodes> : read_pieces<kPackedCodes>,
            (all.most_pieces + kDecodingThreads - 1) / kDecodingThreads, kDecodingThreads);
      queue("transform_blocks", transform_blocks, turns_of(all.most_blocks), kThreads);
      queue("make_pixels", make_pixels, turns_of(all.most_pixels), kThreads);
      queue("resize_pixels", resize_pixels, (all.most_rows + kRows - 1) / kRows, kThreads,
            reinterpret_cast<std::uint8_t*>(out));
    }
  }
}

}  // namespace penstock::gpu_jpeg
