// transform/image_packer: a packer takes an image in place of its pixels, to have it decoded elsewhere.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <penstock/core/tensor.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/transform/crop.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock::transform {

/// One crop of a JPEG: what Resize makes of `box`, at `size`, mirrored or not.
struct PackRequest {
  std::span<const std::byte> bytes;
  const JpegIndex& index;  ///< of these bytes (JpegKey::of): all that the crop needs is valid then
  Region box;              ///< of the stored image, within it
  bool mirror = false;
  ImageSize size;
  ResizeFilter filter = ResizeFilter::bilinear;  ///< bilinear or bicubic
  jpeg::Chroma chroma = jpeg::Chroma::smooth;
};

/// Threads  one caller at a time.
class ImagePacker {
 public:
  virtual ~ImagePacker() = default;
  /// Writes into `place`, of which the image's pixels are to be made later. False where it is none for the packer, or too large
  /// for the place: `place` is unchanged then.
  [[nodiscard]] virtual bool pack(const PackRequest& request, std::span<std::byte> place) = 0;
};

/// A transform whose first output may be packed.
class PackingTransform : public Transform {
 public:
  /// Why none of its images ever is; empty: some may be.
  [[nodiscard]] virtual std::string why_not_packed() const = 0;
  /// As apply(); but where the packer takes the image, the first output is what it wrote, and `packed` becomes true.
  virtual Result<void> apply_or_pack(std::span<const ConstTensorView> in, Outputs out,
                                     Random& random, ImagePacker& packer, bool& packed) const = 0;
};

}  // namespace penstock::transform
