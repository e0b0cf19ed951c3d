// jpeg/decoder/region: the rows of a region of a JPEG, by Penstock's own decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>

#include "src/jpeg/decoder/chunk.hpp"
#include "src/jpeg/decoder/header.hpp"
#include "src/jpeg/decoder/lanes.hpp"
#include "src/jpeg/decoder/lockstep.hpp"
#include "src/jpeg/decoder/plan.hpp"
#include "src/jpeg/decoder/planes.hpp"
#include "src/jpeg/decoder/scan.hpp"
#include "src/jpeg/decoder/unstuff.hpp"
#include "src/jpeg/pixels/rows.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace jpeg {

/// What is known of an image beforehand, and what is to be found out.
struct IndexUse {
  /// What is outside the region is then not looked at. One that cannot be right is left alone, and
  /// another one built; one that turns out to be wrong makes rows() give up.
  const JpegIndex* index = nullptr;
  bool build_index = false;      ///< go through the whole scan, and make an index of it
  std::uint32_t entry_bits = 0;  ///< JpegIndexOptions, of that index
};

/// Decodes one baseline JPEG after another, and of each no more than a rectangle needs. The pixels
/// are those of that rectangle of the image as libjpeg-turbo decodes it as a whole (accurate DCT).
///
/// It takes nothing that libjpeg-turbo would complain of: wherever the data are damaged, up to
/// the last row that libjpeg-turbo would read for the region, it says so and leaves the image to
/// the JpegReader, which decides.
///
/// Usage    open, begin, rows as often as needed, close, which is due either way.
/// Threads  one caller at a time; keeps its buffers between images.
class JpegRegion final : public RowSource {
 public:
  /// Reads the header. `bytes` must live until close(). Something: not for this decoder.
  [[nodiscard]] std::optional<JpegFallback> open(std::span<const std::byte> bytes);
  [[nodiscard]] const JpegHeader& header() const noexcept { return header_; }

  /// Gets ready for the rows of `rect`, of which at most `span` will be asked for at once; it is a
  /// rectangle of the image at 1/scale of its size (1, 2, 4 or 8), rounded up. False where the data
  /// are damaged, or libjpeg-turbo would refuse a table.
  [[nodiscard]] bool begin(const PixelRect& rect, int span, Chroma upsampling, int scale = 1,
                           const IndexUse& use = {});
  /// Whether begin() went by the index that it was given.
  [[nodiscard]] bool used_index() const noexcept { return used_index_; }
  /// The index that begin() made, if it made one; nothing is left.
  [[nodiscard]] std::optional<JpegIndex> take_index() noexcept {
    return std::exchange(built_index_, std::nullopt);
  }
  /// nullptr where the data are damaged.
  [[nodiscard]] const std::uint8_t* const* rows(int first, int last) override;

  void close() noexcept;

 private:
  // MCUs of one row, from a checkpoint on.
  struct Piece {
    Checkpoint from;
    std::int64_t begin = 0;  // the first that is needed
    std::int64_t end = 0;    // behind the last that is decoded
    int row = 0;
    const Checkpoint* then = nullptr;  // the one at `end`, if there is one
    // The end of a restart interval that has not been checked yet; 0 for others.
    std::uint64_t last_bit = 0;
  };

  [[nodiscard]] bool find_points();
  [[nodiscard]] bool scan_for_points();
  void build_index(std::size_t scan_bytes);
  void choose_unchecked();
  void prepare_rows(int span);
  [[nodiscard]] bool decode_band();
  [[nodiscard]] bool decode_pieces();
  [[nodiscard]] bool decode_in_lanes();
  [[nodiscard]] bool decode_in_lockstep();
  void add_pieces(int row);
  void begin_chunk(std::size_t lane, const Piece& piece);
  [[nodiscard]] bool finish_chunk(const Chunk& chunk, std::uint64_t bit, Piece& piece);
  void convert(int y);
  [[nodiscard]] std::uint8_t* slot(int y) noexcept {
    return ring_.data() + static_cast<std::size_t>(y % ring_rows_) * stride_;
  }

  std::span<const std::uint8_t> bytes_;
  JpegHeader header_;
  McuLayout layout_;
  const JpegIndex* index_ = nullptr;
  bool build_index_ = false;
  std::uint32_t entry_bits_ = 0;
  bool used_index_ = false;
  std::optional<JpegIndex> built_index_;

  Unstuffed unstuffed_;
  Lanes lanes_;
  Lockstep lockstep_;
  ScanReader reader_;
  std::vector<Checkpoint> known_;
  std::vector<std::uint32_t> markers_;   // where the scan's are, when an index is used
  std::vector<std::uint8_t> unchecked_;  // restart intervals that are checked when decoded
  std::span<const Checkpoint> points_;   // the reader's, or known_
  std::size_t cursor_ = 0;               // into points_
  std::vector<Piece> pieces_;
  JpegPlanes planes_;

  PixelRect rect_;
  RegionPlan plan_;
  int band_ = 1;      // MCU rows that are decoded together
  int next_row_ = 0;  // MCU row that the next band begins with
  int ready_ = 0;     // pixel rows above that one have their samples

  int converted_ = 0;  // pixel rows above that one are, or were, in the ring
  int left_ = 0;       // column of the planes' first pixel
  int ring_rows_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint8_t> ring_;      // row y is at y modulo ring_rows_
  std::vector<std::uint8_t> smoothed_;  // two rows of chroma
  std::vector<const std::uint8_t*> pointers_;
};

}  // namespace jpeg
}  // namespace penstock
