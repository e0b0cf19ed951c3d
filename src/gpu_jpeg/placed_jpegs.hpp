// gpu_jpeg/placed_jpegs: packed JPEGs of a batch, and what decoding them together takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/gpu_jpeg/packed_jpeg.hpp"

namespace penstock::gpu_jpeg {

/// Codes that a look-up in a window cannot tell have one of these lengths.
inline constexpr std::size_t kLongCodes = 16 - jpeg::kWindowBits;

/// A Huffman code as kernels read it, copied by 16 bytes.
struct LookUp {
  std::uint16_t entries[jpeg::kWindows];
  std::uint32_t limit[kLongCodes];  ///< CanonicalCode's, of long codes
  std::int32_t offset[kLongCodes];
  std::uint8_t symbols[256];
};
static_assert(sizeof(LookUp) % 16 == 0);

/// Where a packed JPEG lies, where its pixels go, and which parts of the scratch memory are its.
struct PlacedJpeg {
  std::uint64_t packed = 0;  ///< in bytes from where the batch's packed JPEGs are counted
  std::uint64_t out = 0;     ///< in bytes from where the batch's pixels are counted
  std::uint64_t head = 0;    ///< of the scratch memory, in bytes: a copy of the JPEG's head
  std::uint64_t first_block[kPackedComponents] = {};
  std::uint64_t first_pixel = 0;
  std::uint32_t table[kPackedCodes] = {};  ///< of its codes
  std::uint32_t makes_tables =
      0;  ///< bit i: it makes that of code i; another image, which has the same, does not
  std::uint32_t number = 0;  ///< in the order in which they were added
};

/// Images that are decoded together, and the parts of the scratch memory, in bytes from its beginning.
struct JpegGroup {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::size_t heads = 0;
  std::size_t tables = 0;
  std::size_t coefficients = 0;
  std::size_t parts = 0;  ///< a byte a block
  std::size_t samples = 0;
  std::size_t pixels = 0;
  std::size_t end = 0;
  std::uint64_t most_blocks = 0;  ///< of one image
  std::uint64_t most_pixels = 0;
  std::uint32_t most_rows = 0;  ///< of its pixels behind the resize
  std::uint32_t most_pieces = 0;
  std::uint32_t most_codes = 0;
};

/// Threads  one caller at a time; keeps its memory.
class PlacedJpegs {
 public:
  /// `scratch`: of the GPU's memory, for the images of a group; one image may take all of it.
  explicit PlacedJpegs(std::size_t scratch) : most_scratch_(scratch) {}

  void clear() noexcept;
  /// Adds the packed JPEG at `image`, which is read now.
  void add(const std::byte* image, std::uint64_t packed, std::uint64_t out);
  /// Divides the scratch memory; then no more are added.
  void finish();

  [[nodiscard]] std::span<const PlacedJpeg> images() const noexcept { return images_; }
  [[nodiscard]] std::span<const JpegGroup> groups() const noexcept { return groups_; }
  /// What the scratch memory must have, for any images of at most `scratch` bytes each (scratch_bytes), at most `images` of them.
  [[nodiscard]] static std::size_t scratch_for(std::size_t scratch, std::size_t images) noexcept;
  /// The first bytes of the scratch memory: a u32 an image, not 0 where what its index said was wrong.
  [[nodiscard]] static std::size_t flag_bytes(std::size_t images) noexcept {
    return images * sizeof(std::uint32_t);
  }
  [[nodiscard]] std::size_t scratch_bytes() const noexcept;

 private:
  struct Known {
    const std::byte* code;
    std::uint32_t table;
  };
  void begin_group();
  void end_group();

  std::size_t most_scratch_;
  std::vector<PlacedJpeg> images_;
  std::vector<JpegGroup> groups_;
  // Of the group that images are added to.
  std::vector<Known> known_;
  std::size_t head_bytes_ = 0;
  std::uint32_t tables_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t pixels_ = 0;
  std::size_t scratch_ = 0;  // of its images
};

}  // namespace penstock::gpu_jpeg
