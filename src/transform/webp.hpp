// transform/webp: a WebP's pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace penstock::transform {

/// One still WebP, lossy or lossless, as RGBA.
class WebpReader {
 public:
  /// Reads the header; false for an animation and where libwebp finds an error. `bytes` must
  /// outlive the reader.
  [[nodiscard]] bool open(std::span<const std::byte> bytes);
  [[nodiscard]] int width() const noexcept { return width_; }
  [[nodiscard]] int height() const noexcept { return height_; }
  /// Writes width*height pixels of four bytes; false where libwebp finds an error.
  [[nodiscard]] bool read(std::uint8_t* rgba);
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

 private:
  std::span<const std::byte> bytes_;
  int width_ = 0;
  int height_ = 0;
  std::string message_;
};

}  // namespace penstock::transform
