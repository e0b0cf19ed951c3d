// transform/formats/bmp: a Windows bitmap's pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/transform/formats/image_reader.hpp"

namespace penstock::transform {

/// A bitmap of 1, 4 or 8 bits with a palette, or of 16, 24 or 32 bits; uncompressed, RLE4 or RLE8, of any header from OS/2's to
/// version 5. Alpha counts only where the header has a mask for it. Numbers beyond the palette are black. Runs that end before
/// the last row is full, or leave a row and its padding, are a fault.
///
/// Source  Microsoft, [MS-WMF] 2.2.2.9 and "Bitmap Storage"; where that leaves a choice (levels of 5 and 6 bits, pixels that a
///         run leaves out), the result is Pillow's
class BmpReader final : public ImageReader {
 public:
  Result<void> open(std::span<const std::byte> bytes) override;
  Result<void> read(std::uint8_t* rgba) override;

 private:
  // Where a channel lies in a pixel of 16 or 32 bits.
  struct Channel {
    std::uint32_t mask = 0;
    int shift = 0;
    std::uint32_t max = 0;  // its greatest number

    static Channel of(std::uint32_t mask) noexcept;
    [[nodiscard]] std::uint8_t level(std::uint32_t pixel) const noexcept;
  };
  using Rgba = std::array<std::uint8_t, 4>;

  [[nodiscard]] std::uint32_t number(std::size_t at, std::size_t bytes) const noexcept;
  Result<void> read_masks(std::size_t header, std::uint32_t compression);
  void read_palette(std::size_t at, std::size_t entry_bytes, std::uint32_t count);
  Result<void> read_rows(std::uint8_t* rgba) const;
  void convert_row(const std::byte* row, std::uint8_t* rgba) const noexcept;
  Result<void> read_runs(std::uint8_t* rgba) const;

  std::span<const std::byte> bytes_;
  std::size_t data_ = 0;  // where the pixels begin
  int bits_ = 0;          // of a pixel
  bool is_top_down_ = false;
  bool has_runs_ = false;
  std::array<Channel, 4> channels_{};  // of 16 and 32 bits
  std::vector<Rgba> palette_;
};

}  // namespace penstock::transform
