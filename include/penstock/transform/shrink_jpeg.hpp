// transform/shrink_jpeg: a photograph of many megapixels as a smaller JPEG.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

struct ShrinkJpegOptions {
  int longest_side = 0;  ///< of the result, in pixels
  int quality = 90;      ///< libjpeg's, 1 to 100
};

struct ShrunkJpeg {
  std::vector<std::byte> bytes;  ///< the whole file; the given one where it is small enough
  bool kept = false;             ///< it is
  int width = 0;                 ///< as stored
  int height = 0;
};

/// Makes a JPEG smaller by the antialiased bilinear resize of decode_image, and encodes it again,
/// at the given quality and with the chroma subsampling of the original. Grey stays grey; CMYK
/// becomes YCbCr. EXIF orientation is kept as a tag, not applied; the colour profile of a grey or
/// RGB image is kept; other markers (the rest of EXIF with its thumbnail, comments) are not.
///
/// Threads  any number
/// Errors   Fault                  no JPEG, or one that libjpeg finds an error or has a warning in
///          std::invalid_argument  no longest side, or a quality outside 1 to 100
[[nodiscard]] Result<ShrunkJpeg> shrink_jpeg(std::span<const std::byte> jpeg,
                                             const ShrinkJpegOptions& options);

}  // namespace penstock
