// gpu_jpeg/packed_jpeg: a JPEG on its way to a GPU: what a crop needs of its scan, and what kernels decode it with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/jpeg/decoder/header.hpp"
#include "src/jpeg/decoder/huffman.hpp"
#include "src/jpeg/decoder/plan.hpp"
#include "src/jpeg/decoder/scan.hpp"
#include "src/jpeg/decoder/unstuff.hpp"
#include "src/transform/image_packer.hpp"
#include "src/transform/resize_axis.hpp"

namespace penstock::gpu_jpeg {

inline constexpr int kPackedComponents = 3;
/// A DC and an AC code for each component.
inline constexpr int kPackedCodes = 2 * kPackedComponents;
/// Of where a packed JPEG lies.
inline constexpr std::size_t kPackedAlignment = 16;

/// MCUs of one image, in the order of the scan, that one thread decodes. They begin where a decoder can: at a restart marker, or at
/// an entry of the image's index.
struct PackedPiece {
  std::uint32_t bit = 0;    ///< of the image's data
  std::uint32_t first = 0;  ///< MCU that `bit` is before
  std::uint32_t begin = 0;  ///< the first that is needed
  std::uint32_t end = 0;    ///< behind the last
  /// Where the data of the last one end: there, or up to `slack` bits before. Else the index is wrong.
  std::uint32_t end_bit = 0;
  std::uint32_t slack = 0;
  std::int16_t dc[kPackedComponents] = {};
  std::int16_t then_dc[kPackedComponents] = {};  ///< behind the last one, where there is no slack
};

/// Of a component: steps in zigzag order.
struct PackedQuant {
  std::uint16_t steps[jpeg::kBlockSize] = {};
};

/// One direction of a resize: which pixels of the region make an output pixel.
struct PackedAxis {
  std::uint32_t places = 0;   ///< i32: the first pixel of each
  std::uint32_t weights = 0;  ///< i16: `taps` for each
  std::int32_t taps = 0;
};

/// What a packed JPEG begins with. Its parts lie behind it; their places are in bytes from here.
struct PackedJpeg {
  std::uint32_t bytes = 0;  ///< all of it
  std::uint32_t head_bytes =
      0;                     ///< up to behind the axes: what is still needed when rows are written
  std::uint32_t codes = 0;   ///< jpeg::CanonicalCode
  std::uint32_t quants = 0;  ///< PackedQuant, one a component
  std::uint32_t pieces = 0;
  std::uint32_t data = 0;   ///< big-endian bits, in words
  std::uint32_t words = 0;  ///< of the data
  std::uint32_t code_count = 0;
  std::uint32_t piece_count = 0;
  std::uint8_t code[kPackedComponents][2] = {};  ///< of `codes`: DC and AC
  std::uint8_t is_ycc = 0;
  std::uint8_t components = 0;
  ResizeFilter filter = ResizeFilter::bilinear;
  std::int32_t h = 1;  ///< luma blocks of an MCU, and pixels that share a chroma sample
  std::int32_t v = 1;
  std::int32_t smooth_h = 0;
  std::int32_t smooth_v = 0;
  std::int32_t chroma_width = 0;  ///< of the whole image
  std::int32_t chroma_height = 0;
  std::int32_t mcus_per_row = 0;
  std::int32_t first_column = 0;  ///< in MCUs
  std::int32_t columns = 0;
  std::int32_t first_row = 0;
  std::int32_t rows = 0;
  std::int32_t x = 0;  ///< the region, in pixels of the image
  std::int32_t y = 0;
  std::int32_t width = 0;
  std::int32_t height = 0;
  std::int32_t out_width = 0;
  std::int32_t out_height = 0;
  PackedAxis vertical;
  PackedAxis horizontal;

  [[nodiscard]] std::uint64_t mcus() const noexcept {
    return static_cast<std::uint64_t>(columns) * static_cast<std::uint64_t>(rows);
  }
  [[nodiscard]] std::uint64_t blocks() const noexcept {
    return mcus() * static_cast<std::uint64_t>(h * v + components - 1);
  }
  [[nodiscard]] std::uint64_t pixels() const noexcept {
    return static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
  }
};

/// Of a GPU's memory, what decoding an image takes at most beside the batch's tables.
[[nodiscard]] std::size_t scratch_bytes(const PackedJpeg& image) noexcept;

/// Packs one image after another. Its pixels will be those of jpeg::Decoder and transform::Resize, bit for bit.
///
/// Threads  one caller at a time; keeps its memory.
class JpegPacker final : public transform::ImagePacker {
 public:
  /// Images that would take more `scratch` than that are none for the packer.
  explicit JpegPacker(std::size_t scratch = SIZE_MAX) : most_scratch_(scratch) {}

  /// Gets an image ready. Returns the bytes that write() takes; 0 where it is none for a GPU: not for Penstock's own decoder,
  /// too large, or the index cannot be its.
  [[nodiscard]] std::size_t prepare(const transform::PackRequest& request);
  /// What decoding it takes of a GPU's memory.
  [[nodiscard]] std::size_t scratch() const noexcept { return scratch_bytes(head_); }
  /// `to` is aligned to kPackedAlignment.
  void write(std::byte* to) const noexcept;
  /// Gives large memory back.
  void trim();
  /// A PackedJpeg at the first place that is aligned.
  [[nodiscard]] bool pack(const transform::PackRequest& request,
                          std::span<std::byte> place) override;

 private:
  [[nodiscard]] bool find_codes();
  void find_pieces();
  void sort_pieces();
  void add_axis(PackedAxis& packed, const transform::ResizeAxis& axis, int from, bool mirror);
  void lay_out();

  std::size_t most_scratch_;
  PackedJpeg head_;
  std::vector<PackedPiece> pieces_;
  std::vector<PackedPiece> sorted_;
  std::vector<std::uint8_t> lengths_;  // of the pieces, the longest 0
  std::vector<jpeg::CanonicalCode> codes_;
  std::vector<std::int32_t> places_;
  std::vector<std::int16_t> weights_;

  jpeg::JpegHeader header_;
  jpeg::RegionPlan plan_;
  jpeg::Unstuffed unstuffed_;
  std::vector<jpeg::Checkpoint> points_;
  std::vector<std::uint32_t> markers_;
  transform::ResizeAxis vertical_;
  transform::ResizeAxis horizontal_;
};

/// The packed JPEG at the first aligned place of these bytes.
[[nodiscard]] std::span<std::byte> aligned_place(std::span<std::byte> place) noexcept;

}  // namespace penstock::gpu_jpeg
