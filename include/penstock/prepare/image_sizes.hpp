// prepare/image_sizes: how large the images of a source are, from their headers.
#pragma once

#include <string>
#include <vector>

#include <penstock/core/geometry.hpp>
#include <penstock/source/source.hpp>

namespace penstock {

/// For image_sizes.
struct ImageSizesOptions {
  std::string field = "image";  ///< the field with the encoded bytes, u8 [?]
  bool exif = true;  ///< as decode_image has it: the size after turning it upright; else as stored
  /// whether an image that cannot be read, or has no header, has the size 0x0, and is in no batch of batch_by_aspect; else
  /// the first one is an error. Memory that is out is an error in either case
  bool zero_if_damaged = false;
};

template <class Visitor>
void visit_fields(Visitor& visit, ImageSizesOptions& options) {
  visit("field", options.field);
  visit("exif", options.exif);
  visit("zero_if_damaged", options.zero_if_damaged);
}

/// Height and width of each record's image, as decode_image shows it upright: for batch_by_aspect. Headers of
/// JPEGs, PNGs and WebPs are read, by all cores at once; of files in folders and of objects the first 64 KiB, and all
/// of one whose header is longer. Save the result beside the data set: it is the same until the files change.
///
/// Memory  8 bytes a record
/// Errors  std::invalid_argument  no such field, or one that does not hold encoded images
///         Error                  an image that cannot be read, or has no header; names the first one
[[nodiscard]] std::vector<ImageSize> image_sizes(const Source& source,
                                                 const ImageSizesOptions& options = {});

}  // namespace penstock
