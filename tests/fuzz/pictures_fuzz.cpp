// Images of all kinds but JPEG: pixels or a fault, whatever the libraries find. Of a few thousand pixels, so that many are tried.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include <zlib.h>

#include "src/transform/formats/image_reader.hpp"
#include "src/transform/formats/png.hpp"

namespace {

constexpr int kMostPixels = 1 << 16;

template <class Reader, class Read>
void decode(Reader& reader, std::span<const std::byte> bytes, const Read& read) {
  if (!reader.open(bytes)) return;
  if (reader.width() <= 0 || reader.height() <= 0) return;  // the caller refuses them
  if (reader.width() > kMostPixels / reader.height()) return;
  read(static_cast<std::size_t>(reader.width()) * static_cast<std::size_t>(reader.height()));
}

std::uint32_t big_endian(const std::byte* at) {
  std::uint32_t value = 0;
  for (int k = 0; k < 4; ++k) value = value << 8 | static_cast<std::uint32_t>(at[k]);
  return value;
}

// Of a PNG's chunks. Few mutations keep one: without this, what stands behind it is hardly reached.
void mend_checksums(std::vector<std::byte>& bytes) {
  constexpr std::size_t kSignature = 8;
  constexpr std::size_t kFrame = 12;  // a length, a type and a checksum
  for (std::size_t at = kSignature; at + kFrame <= bytes.size();) {
    const std::size_t length = big_endian(&bytes[at]);
    if (length > bytes.size() - at - kFrame) return;
    const auto crc =
        ::crc32(0, reinterpret_cast<const Bytef*>(&bytes[at + 4]), static_cast<uInt>(length + 4));
    for (std::size_t k = 0; k < 4; ++k)
      bytes[at + 8 + length + k] = static_cast<std::byte>(crc >> (24 - 8 * k));
    at += kFrame + length;
  }
}

}  // namespace

// libheif 1.15 and libdav1d 1.0 leak some memory where an AVIF is damaged.
extern "C" __attribute__((visibility("default"))) const char*
__lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libheif.so\nleak:libdav1d.so\n";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::transform;
  std::vector<std::byte> bytes(size);
  std::copy_n(reinterpret_cast<const std::byte*>(data), size, bytes.begin());
  if (size > 0 && data[size / 2] % 8 != 0) mend_checksums(bytes);
  // Of the exact size, for the sanitizer to watch its end.
  if (const auto made = reader_for(bytes)) {
    ImageReader& reader = **made;
    decode(reader, bytes, [&](std::size_t pixels) {
      std::vector<std::uint8_t> out(4 * pixels);
      (void)reader.read(out.data());
    });
  }
  PngReader numbers;
  decode(numbers, bytes, [&](std::size_t pixels) {
    std::vector<std::uint8_t> out(pixels);
    (void)numbers.read_numbers(out.data());
  });
  for (const int channels : {1, 3}) {
    PngReader wide;
    decode(wide, bytes, [&](std::size_t pixels) {
      std::vector<std::uint16_t> out(static_cast<std::size_t>(channels) * pixels);
      (void)wide.read_wide(out.data(), channels);
    });
  }
  return 0;
}
