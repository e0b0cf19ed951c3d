// jpeg/decoder/header: what a JPEG says about itself before its pixels, and whether it is one
// that Penstock's own decoder takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <penstock/core/export.hpp>
#include <penstock/jpeg/decoder.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace jpeg {

/// A Huffman table as the file gives it.
struct HuffmanSpec {
  std::array<std::uint8_t, 17> counts{};  ///< codes of each length; [0] is not used
  std::array<std::uint8_t, 256> symbols{};
  bool defined = false;
};

enum class JpegColor : std::uint8_t { grey, ycc, rgb };

struct JpegComponent {
  std::uint8_t id = 0;
  std::uint8_t quant = 0;  ///< tables by number, 0 to 3
  std::uint8_t dc = 0;
  std::uint8_t ac = 0;
};

/// A baseline (or extended, 8-bit) Huffman JPEG of one interleaved scan.
struct JpegHeader {
  int width = 0;
  int height = 0;
  int components = 0;  ///< 1 or 3
  JpegColor color = JpegColor::grey;
  /// Blocks of the first component in an MCU; the others have one each. 1x1 for grey, whatever
  /// factors the file gives: a scan of one component is a scan of blocks.
  int h = 1;
  int v = 1;
  /// libjpeg-turbo reads that many MCU rows at a time: more than one for grey with odd factors.
  int rows_together = 1;
  int restart_interval = 0;  ///< in MCUs; 0 for none
  int orientation = 1;       ///< as EXIF says, 1 to 8
  std::size_t scan = 0;      ///< offset of the entropy-coded bytes
  std::array<JpegComponent, 3> component{};
  std::array<std::array<std::uint16_t, 64>, 4> quant{};  ///< in the file's zigzag order
  std::array<bool, 4> quant_defined{};
  std::array<HuffmanSpec, 4> dc{};
  std::array<HuffmanSpec, 4> ac{};

  [[nodiscard]] int mcu_width() const noexcept { return 8 * h; }
  [[nodiscard]] int mcu_height() const noexcept { return 8 * v; }
  [[nodiscard]] int mcus_per_row() const noexcept {
    return (width + mcu_width() - 1) / mcu_width();
  }
  [[nodiscard]] int mcu_rows() const noexcept { return (height + mcu_height() - 1) / mcu_height(); }
  [[nodiscard]] int blocks_per_mcu() const noexcept { return components == 1 ? 1 : h * v + 2; }
};

/// Reads the markers up to the first scan. Takes no file that libjpeg-turbo would decode
/// differently: in doubt it returns why not, and `header` then holds anything.
///
/// Source  ITU-T T.81, Annex B; the choice of colours is libjpeg's (jdapimin.c).
[[nodiscard]] std::optional<JpegFallback> read_jpeg_header(std::span<const std::byte> bytes,
                                                           JpegHeader& header);

}  // namespace jpeg
}  // namespace penstock
