// jpeg/pixels/exif: the EXIF orientation of an image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <penstock/core/export.hpp>
#include <penstock/core/tensor.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace jpeg {

/// The orientation tag of an APP1 segment's payload, 1 to 8; 0 where there is none that is valid.
///
/// Source  Exif 2.3, 4.6.2 and 4.6.4 A
[[nodiscard]] int exif_orientation(std::span<const std::uint8_t> app1) noexcept;
/// The same of the EXIF chunk of a PNG or WebP, in which some programs leave out the name that an APP1 segment begins with.
[[nodiscard]] int exif_chunk_orientation(std::span<const std::uint8_t> chunk) noexcept;

/// How a stored image becomes upright: each of its pixels (x, y) is first mirrored, then, if
/// transposed, moved to (y, x).
struct Orientation {
  bool mirror_x = false;
  bool mirror_y = false;
  bool transposed = false;

  Orientation() = default;
  /// `exif` is 1 to 8.
  explicit Orientation(int exif) noexcept;

  /// Where the pixels of a region of the upright image are in the stored one.
  [[nodiscard]] Region stored(const Region& upright, int stored_width,
                              int stored_height) const noexcept;
};

}  // namespace jpeg
}  // namespace penstock
