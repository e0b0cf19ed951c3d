// transform/formats/png: a PNG's pixels.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <png.h>

#include "src/transform/formats/image_reader.hpp"

namespace penstock::transform {

/// One PNG of any kind, as 8 bits of R, G, B and alpha. Samples are taken as they are stored: no
/// gamma, no profile, and what is transparent keeps its colours.
///
/// Errors  std::bad_alloc  no memory, for libpng or zlib either
class PngReader final : public ImageReader {
 public:
  ~PngReader() override;

  Result<void> open(std::span<const std::byte> bytes) override;
  [[nodiscard]] int bits() const noexcept { return bits_; }  ///< of a level: 1 to 16
  Result<void> read(std::uint8_t* rgba) override;
  /// Instead: writes width*height numbers as they are stored, entries of a palette or grey levels, of 1 to 8 bits; a fault also
  /// where the PNG has none such.
  [[nodiscard]] Result<void> read_numbers(std::uint8_t* numbers);
  /// Instead: writes width*height pixels of 16 bits a level, of 1 or 3 channels; a grey level is that of all three, alpha is
  /// dropped. A fault also for a PNG of fewer bits, or of colours where there is one channel.
  [[nodiscard]] Result<void> read_wide(std::uint16_t* levels, int channels);

 private:
  [[noreturn]] static void fail(png_structp png, png_const_charp message);
  static png_voidp allocate(png_structp png, png_alloc_size_t size);
  static void release(png_structp png, png_voidp memory);
  static void give(png_structp png, png_bytep out, std::size_t size);

  [[nodiscard]] Fault explain() const;
  bool read_header() noexcept;
  void read_orientation();
  // Says what becomes of the pixels. May leave by longjmp.
  using Convert = void(png_structp png, png_infop info);
  static void convert_to_rgba(png_structp png, png_infop info);
  static void convert_to_numbers(png_structp png, png_infop info);
  static void convert_to_wide(png_structp png, png_infop info);
  static void convert_to_wide_grey(png_structp png, png_infop info);
  static void convert_to_wide_rgb(png_structp png, png_infop info);
  Result<void> read_rows(void* pixels, std::size_t pixel_bytes, Convert* convert);
  bool read_pixels(png_bytepp rows, std::size_t row_bytes, Convert* convert) noexcept;

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_;
  std::span<const std::byte> left_;
  int bits_ = 0;
  bool out_of_memory_ = false;
  char message_[128] = "";
};

}  // namespace penstock::transform
