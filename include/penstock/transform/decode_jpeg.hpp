// transform/decode_jpeg: an encoded image becomes a crop of fixed size.
#pragma once

#include <string>

#include <penstock/transform/crop.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock {

struct DecodeJpegOptions {
  std::string field = "image";  ///< the encoded bytes, and the name of what is put in their place
  Crop crop;                    ///< which part, and the size of the sample
  float flip = 0;               ///< probability of mirroring left to right
  double max_megapixels = 200;  ///< a header that claims more is a fault
  bool exif = true;             ///< turn JPEGs upright as their EXIF orientation says
  /// When not empty: the name of one more field, i32 [8]: x, y, width, height of the region,
  /// rounded outwards; flipped (0 or 1); width and height of the upright image; EXIF orientation (1
  /// to 8).
  std::string geometry;
};

/// Decodes the part of an image that a crop needs, and resizes it into the sample's place.
///
/// The format is recognised by its signature: JPEG (baseline and progressive; grey, YCbCr, RGB,
/// CMYK and YCCK), PNG and WebP (still images). Alpha is dropped, not composited. Colour profiles,
/// and orientations outside JPEG, are ignored. Of a JPEG only the region is decoded, as
/// libjpeg-turbo does with accurate DCT and plain chroma upsampling; the resize is an antialiased
/// bilinear filter in integers, so equal bytes in give equal bytes out on every CPU.
///
/// A fault: an image of another kind, a truncated or corrupt one (a JPEG's data past the region's
/// last rows are not looked at), one over max_megapixels, or a JPEG of more than 100 scans.
///
/// Shapes   in: `field` u8 [?]; out: `field` u8 [H,W,3] RGB, and `geometry` i32 [8] if asked for.
/// Threads  const. A thread keeps at most a few MiB of scratch memory between images; while it
///          works, a baseline JPEG needs a band of rows, other images the whole of them (4 bytes a
///          pixel; 8 for a progressive JPEG).
/// Errors   std::invalid_argument  an empty crop or field name, flip outside [0,1], a limit that is
///          not positive, or `geometry` named like `field`
/// Source   the filter is Pillow's resize(box=region, resample=BILINEAR), to within one level.
[[nodiscard]] TransformPtr decode_jpeg(DecodeJpegOptions options);

}  // namespace penstock
