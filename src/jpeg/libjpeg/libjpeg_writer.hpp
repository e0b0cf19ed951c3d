// jpeg/libjpeg/libjpeg_writer: writes JPEGs; all code that writes one uses this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <penstock/core/export.hpp>

#include "src/jpeg/libjpeg/libjpeg_errors.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace jpeg {

/// What pixels are, and how they are to be encoded.
struct JpegFormat {
  enum class Pixels : std::uint8_t { grey, rgb, ycc };

  int width = 0;
  int height = 0;
  Pixels pixels = Pixels::rgb;
  int quality = 90;  ///< libjpeg's, 1 to 100
  int h = 1;         ///< sampling factors of the first component; those of the others are one
  int v = 1;
  bool optimized = false;  ///< Huffman tables made for this image
  bool progressive = false;
  int orientation = 1;  ///< EXIF's; written where it is another than 1
  /// Payloads of APP2 markers, to be written as they are.
  std::vector<std::span<const std::uint8_t>> profile{};
};

/// Writes one JPEG. Accurate DCT, which gives the same bytes with and without SIMD.
///
/// Errors  std::bad_alloc  libjpeg could get no memory
class LibjpegWriter {
 public:
  LibjpegWriter() noexcept;
  ~LibjpegWriter();
  LibjpegWriter(const LibjpegWriter&) = delete;
  LibjpegWriter& operator=(const LibjpegWriter&) = delete;

  /// Encodes u8 [height, width, 3], or [height, width] of grey. False where libjpeg has an error.
  [[nodiscard]] bool encode(const JpegFormat& format, const std::uint8_t* pixels);
  /// Writes the coefficients of `in` as baseline in one scan, with its markers and with `interval`
  /// MCUs between restart markers. False where libjpeg has an error.
  [[nodiscard]] bool transcode(jpeg_decompress_struct& in, jvirt_barray_ptr* coefficients,
                               int interval);

  /// What was written; valid as long as this.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  /// libjpeg's words for the failure.
  [[nodiscard]] std::string_view message() const noexcept { return error_.message; }

 private:
  // Memory that grows; libjpeg's own manager cannot free what it has when it fails.
  struct Destination {
    jpeg_destination_mgr base;  // the first member: libjpeg knows no other
    unsigned char* bytes;
    std::size_t size;
    std::size_t capacity;
  };
  static void begin(j_compress_ptr out);
  static boolean grow(j_compress_ptr out);
  static void end(j_compress_ptr out);

  void create();
  bool write(const JpegFormat& format, const std::uint8_t* pixels) noexcept;
  bool write(jpeg_decompress_struct& in, jvirt_barray_ptr* coefficients, int interval) noexcept;

  LibjpegErrors error_{};
  jpeg_compress_struct out_{};
  Destination destination_{};
};

}  // namespace jpeg
}  // namespace penstock
