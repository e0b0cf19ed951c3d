// transform/formats/image_reader: the pixels of an image that is decoded as a whole: all kinds but JPEG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <penstock/core/error.hpp>

#include "src/core/image_kind.hpp"

namespace penstock::transform {

/// One image: open once, then read once. Of several frames or pages it is the first.
///
/// Threads  one caller at a time
class ImageReader {
 public:
  ImageReader() = default;
  virtual ~ImageReader() = default;
  ImageReader(const ImageReader&) = delete;
  ImageReader& operator=(const ImageReader&) = delete;

  /// Reads the header. `bytes` must outlive the reader.
  ///
  /// Errors  Fault  what the library found wrong, or an image of a kind that it does not decode
  ///         std::bad_alloc
  [[nodiscard]] virtual Result<void> open(std::span<const std::byte> bytes) = 0;
  [[nodiscard]] int width() const noexcept { return width_; }    ///< as stored, in pixels
  [[nodiscard]] int height() const noexcept { return height_; }  ///< as stored, in pixels
  /// EXIF's, 1 to 8; 1 where the file has none.
  [[nodiscard]] int orientation() const noexcept { return orientation_; }
  /// Writes width * height pixels of R, G, B and alpha, 8 bits each. What is transparent keeps its colours.
  ///
  /// Errors  as open
  [[nodiscard]] virtual Result<void> read(std::uint8_t* rgba) = 0;

 protected:
  [[nodiscard]] std::size_t pixels() const noexcept {
    return static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_);
  }
  /// Of colours that are multiplied by alpha, as Pillow reads "RGBa"; what is transparent becomes black.
  static void divide_by_alpha(std::uint8_t* rgba, std::size_t count) noexcept;

  int width_ = 0;
  int height_ = 0;
  int orientation_ = 1;
};

/// A reader for a kind that is decoded as a whole.
///
/// Errors  Fault  no such kind; or a kind whose library this build does not have, which the fault names
[[nodiscard]] Result<std::unique_ptr<ImageReader>> reader_for(std::span<const std::byte> bytes);

}  // namespace penstock::transform
