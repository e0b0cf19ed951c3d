#include "src/jpeg/pixels/exif.hpp"

#include <algorithm>
#include <array>

namespace penstock::jpeg {
namespace {

// A TIFF file in either byte order; reading behind its end gives 0.
class Tiff {
 public:
  explicit Tiff(std::span<const std::uint8_t> bytes) noexcept
      : bytes_(bytes), big_(bytes.size() > 1 && bytes[0] == 'M') {}

  [[nodiscard]] std::uint32_t byte(std::size_t at) const noexcept {
    return at < bytes_.size() ? bytes_[at] : 0U;
  }
  [[nodiscard]] std::uint32_t u16(std::size_t at) const noexcept {
    return big_ ? byte(at) << 8 | byte(at + 1) : byte(at + 1) << 8 | byte(at);
  }
  [[nodiscard]] std::uint32_t u32(std::size_t at) const noexcept {
    return big_ ? u16(at) << 16 | u16(at + 2) : u16(at + 2) << 16 | u16(at);
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool big_;
};

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::array<std::uint8_t, 6> kExif{'E', 'x', 'i', 'f', 0, 0};

bool has_name(std::span<const std::uint8_t> bytes) noexcept {
  return bytes.size() >= kExif.size() && std::equal(kExif.begin(), kExif.end(), bytes.begin());
}

// Of an entry of a directory that has one integer, of whatever type: the standard wants a SHORT, and not all writers give it one. 0
// where it has another kind of value.
std::uint32_t integer_of(const Tiff& tiff, std::size_t entry) noexcept {
  constexpr std::uint32_t kByte = 1;
  constexpr std::uint32_t kShort = 3;
  constexpr std::uint32_t kLong = 4;
  constexpr std::uint32_t kSigned = 5;  // from an unsigned type to its signed one
  const std::size_t value = entry + 8;
  switch (tiff.u16(entry + 2)) {
    case kByte:
    case kByte + kSigned:
      return tiff.byte(value);
    case kShort:
    case kShort + kSigned:
      return tiff.u16(value);
    case kLong:
    case kLong + kSigned:
      return tiff.u32(value);
    default:
      return 0;
  }
}

int tiff_orientation(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() < 8 || bytes[0] != bytes[1] || (bytes[0] != 'I' && bytes[0] != 'M')) return 0;
  const Tiff tiff(bytes);
  if (tiff.u16(2) != 42) return 0;
  const std::size_t directory = tiff.u32(4);
  const std::uint32_t entries = tiff.u16(directory);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + std::size_t{12} * i;
    if (entry + 12 > bytes.size()) return 0;
    if (tiff.u16(entry) != kOrientationTag) continue;
    const std::uint32_t value = integer_of(tiff, entry);
    return value <= 8 ? static_cast<int>(value) : 0;
  }
  return 0;
}

}  // namespace

int exif_orientation(std::span<const std::uint8_t> app1) noexcept {
  return has_name(app1) ? tiff_orientation(app1.subspan(kExif.size())) : 0;
}

int exif_chunk_orientation(std::span<const std::uint8_t> chunk) noexcept {
  return has_name(chunk) ? exif_orientation(chunk) : tiff_orientation(chunk);
}

Orientation::Orientation(int exif) noexcept
    : mirror_x(exif == 2 || exif == 3 || exif == 7 || exif == 8),
      mirror_y(exif == 3 || exif == 4 || exif == 6 || exif == 7),
      transposed(exif >= 5) {}

Region Orientation::stored(const Region& upright, int stored_width,
                           int stored_height) const noexcept {
  Region region = upright;
  if (transposed) region = {upright.y, upright.x, upright.height, upright.width};
  if (mirror_x) region.x = stored_width - region.x - region.width;
  if (mirror_y) region.y = stored_height - region.y - region.height;
  return region;
}

}  // namespace penstock::jpeg
