// gpu_jpeg/packed_batch: JPEGs on their way to a GPU: of each what a crop needs of its scan, and what kernels decode it with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <penstock/core/geometry.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/transform/crop.hpp>

#include "src/jpeg/decoder/header.hpp"
#include "src/jpeg/decoder/huffman.hpp"
#include "src/jpeg/decoder/plan.hpp"
#include "src/jpeg/decoder/scan.hpp"
#include "src/jpeg/decoder/unstuff.hpp"
#include "src/transform/resize_axis.hpp"

namespace penstock::gpu_jpeg {

inline constexpr int kPackedComponents = 3;

/// MCUs of one image, in the order of the scan, that one thread decodes. They begin where a decoder can: at a restart marker, or at
/// an entry of the image's index.
struct PackedPiece {
  std::uint32_t image = 0;
  std::uint32_t bit = 0;    ///< of the image's data
  std::uint32_t first = 0;  ///< MCU that `bit` is before
  std::uint32_t begin = 0;  ///< the first that is needed
  std::uint32_t end = 0;    ///< behind the last
  /// Where the data of the last one end: there, or up to `slack` bits before. Else the index is wrong.
  std::uint32_t end_bit = 0;
  std::uint32_t slack = 0;
  std::int16_t dc[kPackedComponents] = {};
  std::int16_t unused = 0;
};

/// Of a component: steps by natural place, 8 * row + column.
struct PackedQuant {
  std::uint16_t steps[jpeg::kBlockSize] = {};
};

/// One direction of a resize: which pixels of the region make an output pixel, in `places` and `weights`, by output pixel.
struct PackedAxis {
  std::uint32_t places = 0;   ///< the first pixel of each
  std::uint32_t weights = 0;  ///< `taps` for each
  std::int32_t taps = 0;
};

/// One image of a batch.
struct PackedImage {
  std::uint32_t first_word = 0;  ///< of its data, big-endian bits
  std::uint32_t words = 0;
  std::uint32_t codes[kPackedComponents][2] = {};  ///< DC and AC
  std::uint32_t quants[kPackedComponents] = {};
  std::uint32_t row = 0;  ///< of the output
  std::int32_t components = 0;
  std::int32_t is_ycc = 0;
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
  PackedAxis vertical;
  PackedAxis horizontal;
  std::uint64_t first_block[kPackedComponents] =
      {};                         ///< of the batch's blocks, in rows of the region's MCUs
  std::uint64_t first_pixel = 0;  ///< of the batch's region pixels
};

/// Where the parts of a packed batch lie, in bytes from its beginning, and those of the kernels' scratch memory.
struct PackedLayout {
  std::size_t images = 0;
  std::size_t pieces = 0;
  std::size_t codes = 0;
  std::size_t quants = 0;
  std::size_t places = 0;
  std::size_t weights = 0;
  std::size_t data = 0;
  std::size_t natural = 0;  ///< of a place in the zigzag its natural one, 64 bytes
  std::size_t bytes = 0;

  std::size_t tables = 0;
  std::size_t coefficients = 0;
  std::size_t samples = 0;
  std::size_t pixels = 0;
  std::size_t failed = 0;  ///< a number an image: not 0 where the index was wrong
  std::size_t scratch_bytes = 0;

  std::uint32_t image_count = 0;
  std::uint32_t piece_count = 0;
  std::uint32_t code_count = 0;
  std::uint64_t most_blocks = 0;  ///< of one image
  std::uint64_t most_pixels = 0;
  ImageSize output;  ///< of each image
  ResizeFilter filter = ResizeFilter::bilinear;
};

/// What one image of a batch shows: `box` of the stored image, at the batch's output size.
struct PackedCrop {
  Region box;
  bool mirror = false;
};

/// Collects the images of a batch. Its pixels will be those of jpeg::Decoder and transform::Resize, bit for bit.
///
/// Threads  one caller at a time; keeps its memory.
class PackedBatch {
 public:
  PackedBatch(ImageSize output, ResizeFilter filter, jpeg::Chroma chroma)
      : output_(output), filter_(filter), chroma_(chroma) {}

  /// Adds an image. False where it is none for a GPU: not for Penstock's own decoder, or the index cannot be its; nothing is
  /// added then. `index` must be of these bytes (JpegKey::of), and the crop within the image: all that the region needs is
  /// valid then.
  [[nodiscard]] bool add(std::span<const std::byte> bytes, const JpegIndex& index,
                         const PackedCrop& crop);
  /// The row of the output that the next image goes to; without it, image i goes to row i.
  void set_row(std::size_t row) noexcept { row_ = row; }
  void clear() noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return images_.size(); }

  [[nodiscard]] PackedLayout layout() const noexcept;
  /// Writes layout().bytes bytes.
  void write(std::byte* to) const noexcept;

 private:
  struct Code {
    jpeg::HuffmanSpec spec;
    bool dc;
  };

  [[nodiscard]] bool add_codes(PackedImage& image);
  void add_quants(PackedImage& image);
  void add_pieces(const PackedImage& image);
  void add_data(PackedImage& image);
  [[nodiscard]] PackedAxis add_axis(const transform::ResizeAxis& axis, int from, bool mirror);
  [[nodiscard]] std::optional<std::uint32_t> code_of(const jpeg::HuffmanSpec& spec, bool dc);

  ImageSize output_;
  ResizeFilter filter_;
  jpeg::Chroma chroma_;

  std::vector<PackedImage> images_;
  std::vector<PackedPiece> pieces_;
  std::vector<Code> specs_;
  std::vector<jpeg::CanonicalCode> codes_;
  std::vector<PackedQuant> quants_;
  std::vector<std::int32_t> places_;
  std::vector<std::int16_t> weights_;
  std::vector<std::uint32_t> words_;
  std::size_t row_ = 0;  // of the next image
  std::uint64_t blocks_ = 0;
  std::uint64_t pixels_ = 0;
  std::uint64_t most_blocks_ = 0;
  std::uint64_t most_pixels_ = 0;

  // Of the image that is added.
  jpeg::JpegHeader header_;
  jpeg::RegionPlan plan_;
  jpeg::Unstuffed unstuffed_;
  std::vector<jpeg::Checkpoint> points_;
  std::vector<std::uint32_t> markers_;
  transform::ResizeAxis vertical_;
  transform::ResizeAxis horizontal_;
};

}  // namespace penstock::gpu_jpeg
