// transform/decode_views: several crops of one encoded image, which is decoded once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/transform/crop.hpp>
#include <penstock/transform/decode_image.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock {

/// One field that is made of an image: a crop of it, or several crops that are drawn alike.
struct ImageView {
  std::string field;  ///< the name of the field that it makes
  Crop crop{};        ///< the part of the image, and the size of the sample
  /// crops in the field, which is its first dimension; 0 for one crop without that dimension, or for those of five_crops
  /// and ten_crops
  int count = 0;
  float flip = 0;  ///< probability of mirroring left to right, drawn for each crop
  ResizeFilter filter = ResizeFilter::bilinear;  ///< as in DecodeImageOptions
  /// name of one more field, as DecodeImageOptions::geometry; i32 [count,8], or [8]
  std::string geometry{};
};

template <class Visitor>
void visit_fields(Visitor& visit, ImageView& view) {
  visit.required("field", view.field);
  visit.required("crop", view.crop);
  visit("count", view.count);
  visit("flip", view.flip);
  visit("filter", view.filter);
  visit("geometry", view.geometry);
}

struct DecodeViewsOptions {
  static constexpr const char* kName = "decode_views";  ///< in plans

  std::string field = "image";     ///< the field of the encoded bytes
  std::vector<ImageView> views{};  ///< the fields that replace it, in order
  double max_megapixels = 200;     ///< as in DecodeImageOptions, here and below
  bool exif = true;
  int channels = 3;
  DType dtype = DType::u8;
  bool tolerant = false;
  std::optional<Color> background{};
  JpegDecoder decoder = JpegDecoder::reference;
  bool scaled =
      false;  ///< whether JPEGs are decoded at the largest of the scales that suit all crops
  std::shared_ptr<JpegIndexStore> index{};  ///< as in DecodeImageOptions, here and below
  std::shared_ptr<JpegStats> stats{};
};

template <class Visitor>
void visit_fields(Visitor& visit, DecodeViewsOptions& options) {
  visit("field", options.field);
  visit.required("views", options.views);
  visit.template as<transform::ChromaAndDecoder>("decoder", options.decoder);
  visit("scaled", options.scaled);
  visit("exif", options.exif);
  visit("background", options.background);
  visit.later("channels", options.channels);
  visit.later("dtype", options.dtype);
  visit.later("tolerant", options.tolerant);
  visit("max_megapixels", options.max_megapixels);
  visit.object("index", options.index);
  visit.object("stats", options.stats);
}

/// Makes several crops of one image: those of SimCLR or DINO, or a training and an evaluation crop
/// side by side. The image is decoded once, row by row, as far as its crops reach; the crops are
/// resized as the rows arrive.
///
/// Each crop draws from a sequence of random numbers of its own: crop i of the view at position k has
/// number 256 k + i. So a view that is added at the end, or a larger count, changes no other crop,
/// and the first crop is the one that decode_image would make.
///
/// The pixels are those of decode_image, bit for bit, for the same region (with `scaled`, at the
/// same scale), and the same images are faults; of a JPEG, data below the last of the crops are not
/// looked at.
///
/// Shapes   in: `field` u8 [?]; out, for each view: `dtype` [count,H,W,channels] or [H,W,channels], and its
///          geometry, i32 [count,8] or [8], if asked for.
/// Threads  any number at the same time. As decode_image, and for each crop some rows of scratch memory.
/// Errors   std::invalid_argument  no views or more than 256, or 1,024 crops; an empty crop or name, or a name twice;
///          a count outside [0,256]; flip outside [0,1]; a limit that is not positive; a level of
///          the background outside [0,255]; as decode_image for channels and dtype
[[nodiscard]] TransformPtr decode_views(DecodeViewsOptions options);

}  // namespace penstock
