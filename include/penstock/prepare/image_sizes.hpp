// prepare/image_sizes: how large the images of a source are, from their headers.
#pragma once

#include <string>
#include <vector>

#include <penstock/core/geometry.hpp>
#include <penstock/source/source.hpp>

namespace penstock {

struct ImageSizesOptions {
  std::string field = "image";  ///< the encoded bytes, u8 [?]
  bool exif = true;             ///< as decode_image has it: of the image after turning it upright
  /// An image that cannot be read, or has no header, has the size 0x0, and is in no batch of batch_by_aspect. False:
  /// the first one is an Error. Memory that is out is an Error in either case.
  bool zero_if_damaged = false;
};

/// Height and width of each record's image, as decode_image shows it upright: for ByAspectOptions::sizes. Headers of
/// JPEGs, PNGs and WebPs are read, by all cores at once; of files in folders and of objects the first 64 KiB, and all
/// of one whose header is longer. Save the result beside the data set: it is the same until the files change.
///
/// Memory  8 bytes a record
/// Errors  std::invalid_argument  no such field, or one that does not hold encoded images
///         Error                  an image that cannot be read, or has no header; names the first one
[[nodiscard]] std::vector<ImageSize> image_sizes(const Source& source,
                                                 const ImageSizesOptions& options = {});

}  // namespace penstock
