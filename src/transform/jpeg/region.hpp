// transform/jpeg/region: the rows of a region of a JPEG, by Penstock's own decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/transform/jpeg/chunk.hpp"
#include "src/transform/jpeg/header.hpp"
#include "src/transform/jpeg/huffman.hpp"
#include "src/transform/jpeg/lanes.hpp"
#include "src/transform/jpeg/planes.hpp"
#include "src/transform/jpeg/scan.hpp"
#include "src/transform/jpeg/unstuff.hpp"
#include "src/transform/rows.hpp"

namespace penstock::detail {

/// How chroma that is stored at half the size gets its own again.
enum class Upsampling : std::uint8_t {
  plain,   ///< every sample is repeated
  smooth,  ///< libjpeg's "fancy" upsampling: neighbours are blended
};

/// Decodes one baseline JPEG after another, and of each no more than a rectangle needs. The pixels
/// are those of that rectangle of the image as libjpeg-turbo decodes it as a whole (accurate DCT).
///
/// It takes nothing that libjpeg-turbo would complain of: wherever the data is not in order, up to
/// the last row that libjpeg-turbo would read for the region, it says so and leaves the image to
/// the JpegReader, whose judgement counts.
///
/// Usage    open, begin, rows as often as needed, close, which is due either way.
/// Threads  one caller at a time; keeps its buffers between images.
class JpegRegion final : public RowSource {
 public:
  /// Reads the header. `bytes` must live until close(). Anything but none: not for this decoder.
  [[nodiscard]] JpegRefusal open(std::span<const std::byte> bytes);
  [[nodiscard]] const JpegHeader& header() const noexcept { return header_; }

  /// Gets ready for the rows of `rect`, of which at most `span` will be asked for at once. False
  /// where libjpeg-turbo would refuse a table.
  [[nodiscard]] bool begin(const PixelRect& rect, int span, Upsampling upsampling);
  /// nullptr where the data is not in order.
  [[nodiscard]] const std::uint8_t* const* rows(int first, int last) override;

  void close() noexcept;

 private:
  // MCUs of one row, from a checkpoint on.
  struct Piece {
    Checkpoint from;
    std::int64_t begin;  // the first that is needed
    std::int64_t end;
    int row;
    const Checkpoint* then;  // the one at `end`, or nullptr
  };

  [[nodiscard]] bool decode_band();
  [[nodiscard]] bool decode_row(int row);
  [[nodiscard]] bool decode_pieces();
  void add_pieces(int row);
  void begin_chunk(std::size_t lane, std::uint64_t bit, int mcus);
  [[nodiscard]] bool skip_to(std::int64_t mcu);
  [[nodiscard]] bool decode_to(std::int64_t mcu, int row);
  [[nodiscard]] bool enter_stretch();
  [[nodiscard]] bool ends_well() const noexcept;
  [[nodiscard]] std::int64_t stretch_end() const noexcept;
  void convert(int y);
  [[nodiscard]] std::uint8_t* slot(int y) noexcept {
    return ring_.data() + static_cast<std::size_t>(y % ring_rows_) * stride_;
  }

  std::span<const std::uint8_t> bytes_;
  JpegHeader header_;
  McuLayout layout_;
  Unstuffed unstuffed_;
  JpegPlanes planes_;
  Lanes lanes_;
  ScanReader reader_;
  std::vector<Piece> pieces_;
  bool in_lanes_ = false;
  std::size_t cursor_ = 0;  // into the reader's checkpoints

  PixelRect rect_;
  bool smooth_h_ = false;
  bool smooth_v_ = false;
  int first_column_ = 0;  // MCU columns and rows that the region needs
  int last_column_ = 0;
  int band_ = 1;  // MCU rows that are decoded together
  int next_row_ = 0;
  int last_row_ = 0;
  int checked_rows_ = 0;  // libjpeg-turbo reads the MCU rows above that one
  int ready_ = 0;         // pixel rows above that one have their samples

  StreamPosition position_;
  std::int64_t next_mcu_ = 0;  // counted in the scan
  std::size_t stretch_ = 0;    // the one that next_mcu_ - 1 is in

  int converted_ = 0;  // pixel rows above that one are, or were, in the ring
  int left_ = 0;       // column of the planes' first pixel
  int ring_rows_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint8_t> ring_;      // row y is at y modulo ring_rows_
  std::vector<std::uint8_t> smoothed_;  // two rows of chroma
  std::vector<const std::uint8_t*> pointers_;
};

}  // namespace penstock::detail
