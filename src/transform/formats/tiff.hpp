// transform/formats/tiff: the first page of a TIFF.
#pragma once

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "src/transform/formats/image_reader.hpp"

struct tiff;

namespace penstock::transform {

/// By libtiff, whose conversion to 8 bits of R, G and B this is. It has no hook for memory: where that is out, there is a fault.
/// Where colours are multiplied by alpha, they are divided by it: of 8 bits as Pillow does, of 16 bits before they become 8,
/// rounded once. The orientation may be of any integer type.
class TiffReader final : public ImageReader {
 public:
  Result<void> open(std::span<const std::byte> bytes) override;
  Result<void> read(std::uint8_t* rgba) override;

 private:
  struct Close {
    void operator()(::tiff* file) const noexcept;
  };

  static std::ptrdiff_t read_bytes(void* self, void* out, std::ptrdiff_t size);
  static std::ptrdiff_t write_nothing(void* self, void* in, std::ptrdiff_t size);
  static std::uint64_t seek(void* self, std::uint64_t offset, int whence);
  static int close(void* self);
  static std::uint64_t size(void* self);
  static int map(void* self, void** base, std::uint64_t* size);
  static void unmap(void* self, void* base, std::uint64_t size);
  static int keep_message(::tiff* file, void* self, const char* module, const char* format,
                          std::va_list arguments);
  static int drop_message(::tiff* file, void* self, const char* module, const char* format,
                          std::va_list arguments);

  [[nodiscard]] Fault explain() const;
  [[nodiscard]] Fault explain_kind() const;
  [[nodiscard]] Result<void> check_kind();

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::array<char, 256> message_{};  // libtiff's first error
  std::unique_ptr<::tiff, Close> file_;
};

}  // namespace penstock::transform
