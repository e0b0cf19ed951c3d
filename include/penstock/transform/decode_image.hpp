// transform/decode_image: encoded or decoded images become crops of fixed size.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/transform/crop.hpp>
#include <penstock/transform/instances.hpp>
#include <penstock/transform/transform.hpp>

namespace PENSTOCK_EXPORT penstock {

// ---- a decoded image becomes a crop of fixed size ----

struct CropImageOptions {
  static constexpr const char* kName = "crop_image";  ///< in plans

  std::string field = "image";  ///< the field of the pixels, which the crop replaces
  Crop crop{};                  ///< as in DecodeImageOptions, here and below
  float flip = 0;
  ResizeFilter filter = ResizeFilter::bilinear;
  std::string geometry{};
  std::vector<std::string> masks{};
  int mask_fill = 255;
  DType mask_dtype = DType::u8;
  std::optional<Instances> instances{};
};

template <class Visitor>
void visit_fields(Visitor& visit, CropImageOptions& options) {
  visit("field", options.field);
  visit.required("crop", options.crop);
  visit("flip", options.flip);
  visit("filter", options.filter);
  visit("geometry", options.geometry);
  visit.later("masks", options.masks);
  visit.later("mask_fill", options.mask_fill);
  visit.later("mask_dtype", options.mask_dtype);
  visit.later("instances", options.instances);
}

/// decode_image for images that are decoded already, such as arrays of CIFAR's: the same crops,
/// the same random numbers, the same pixels, masks and instances.
///
/// A fault: an image without pixels, or smaller than a random_crop without pad_if_needed.
///
/// Shapes   in: `field` u8 or u16 [H,W,C], with C 1 or 3; H and W may differ from record to record. out:
///          `field` [H,W,C] of the crop's size and that type, `geometry` i32 [8] if asked for, and masks and instances as of
///          decode_image; with five_crops or ten_crops a first dimension of as many.
/// Threads  any number at the same time. While it works, a thread needs four bytes for each pixel that the crop reaches.
/// Errors   std::invalid_argument  an empty crop or field name, flip outside [0,1], or two fields of one
///          name; instances or masks with several crops; at bind: another type or shape, a fill of several levels for images
///          of one channel, or a mask whose type has no `mask_fill`; pillow_bicubic for u16
[[nodiscard]] TransformPtr crop_image(CropImageOptions options);

// ---- an encoded image becomes a crop of fixed size ----

namespace transform {
struct ChromaAndDecoder;
}

/// What decodes JPEGs, and how chroma is upsampled.
enum class JpegDecoder : std::uint8_t {
  fast,       ///< Penstock's own, which decodes little but the crop, and repeats chroma
  reference,  ///< the same with chroma smoothed, the default of libjpeg and Pillow
  libjpeg,    ///< libjpeg-turbo alone, for comparison, with the pixels of "fast"
};
template <>
struct EnumNames<JpegDecoder> {
  static constexpr std::pair<JpegDecoder, const char*> kNames[] = {
      {JpegDecoder::fast, "fast"},
      {JpegDecoder::reference, "reference"},
      {JpegDecoder::libjpeg, "libjpeg"}};
};

/// An optional library that decodes images in this build.
struct ImageLibrary {
  std::string name;     ///< "giflib", "libheif", "libjxl" or "libtiff"
  std::string version;  ///< such as "1.15.1"

  friend bool operator==(const ImageLibrary&, const ImageLibrary&) = default;
};

template <class Visitor>
void visit_fields(Visitor& visit, ImageLibrary& library) {
  visit.required("name", library.name);
  visit.required("version", library.version);
}

/// Those of this build, by name. The pixels of their images may differ from version to version; saved states have these
/// versions, and Loader::notices() says where a state was saved with others.
[[nodiscard]] std::vector<ImageLibrary> image_libraries();

struct DecodeImageOptions {
  static constexpr const char* kName = "decode_image";  ///< in plans

  std::string field = "image";  ///< the field of the encoded bytes, which the decoded crop replaces
  Crop crop{};                  ///< the part of the image, and the size of the sample
  float flip = 0;               ///< probability of mirroring left to right
  double max_megapixels = 200;  ///< an image whose header says that it is larger is a fault
  bool exif = true;  ///< whether images are turned upright as their EXIF orientation says
  /// 3 for RGB, or 1 for grey: (19595 red + 38470 green + 7471 blue + 32768) / 65536 of the crop's pixels, cut to an
  /// integer, as Pillow's convert("L"); a crop's fill then has one level
  int channels = 3;
  /// u8, or u16 for PNGs of 16 bits a level, grey or RGB, with all their bits (depth, medical images); other images are
  /// then faults, colours are faults for 1 channel, a grey level is repeated for 3, and a level f of a fill is 257 f
  DType dtype = DType::u8;
  /// whether JPEGs that libjpeg-turbo only warns about are decoded as Pillow decodes them (bytes between segments,
  /// damaged data; what is missing before a marker becomes grey) and counted by `stats`, or are faults; a file that ends
  /// too early is always a fault
  bool tolerant = false;
  /// the colour over which transparent images are composited; without one, their alpha is dropped
  std::optional<Color> background{};
  /// name of one more field, i32 [8]: x, y, width, height of what the whole sample covers of the upright image, fill
  /// included, rounded outwards, so that it may reach beyond the image; flipped (0 or 1); width and height of the upright
  /// image; EXIF orientation (1 to 8); without a name there is no such field
  std::string geometry{};
  /// fields that are cropped and flipped with the image and of which no two values are mixed: the classes of its pixels;
  /// each is a PNG with a palette or grey levels, or decoded, and as large as the upright image
  std::vector<std::string> masks{};
  int mask_fill = 255;  ///< the value of masks beside the image; most losses ignore 255
  /// type of masks that are PNGs: u16, i32 or larger for values of 16 bits (instances, say); torch's losses take i64
  DType mask_dtype = DType::u8;
  std::optional<Instances>
      instances{};  ///< boxes, keypoints and masks that are moved as the pixels are
  JpegDecoder decoder = JpegDecoder::reference;  ///< what decodes JPEGs
  ResizeFilter filter =
      ResizeFilter::bilinear;  ///< what resizes, antialiased where an image shrinks
  /// whether a JPEG is decoded at 1/2, 1/4 or 1/8 of its size where the region is then still at least as large as the
  /// sample in both directions: for photographs of many megapixels; the pixels are nearly the same
  bool scaled = false;
  /// an index that is filled when a JPEG is first decoded, or loaded from what penstock-prepare wrote, so that later only
  /// the crop is decoded; neither the pixels nor the faults depend on it
  std::shared_ptr<JpegIndexStore> index{};
  std::shared_ptr<JpegStats> stats{};  ///< counts which decoder decoded the JPEGs
};

template <class Visitor>
void visit_fields(Visitor& visit, DecodeImageOptions& options) {
  visit("field", options.field);
  visit.required("crop", options.crop);
  visit("flip", options.flip);
  visit.template as<transform::ChromaAndDecoder>("decoder", options.decoder);
  visit("filter", options.filter);
  visit("scaled", options.scaled);
  visit("exif", options.exif);
  visit("background", options.background);
  visit.later("channels", options.channels);
  visit.later("dtype", options.dtype);
  visit.later("tolerant", options.tolerant);
  visit("max_megapixels", options.max_megapixels);
  visit("geometry", options.geometry);
  visit.later("masks", options.masks);
  visit.later("mask_fill", options.mask_fill);
  visit.later("mask_dtype", options.mask_dtype);
  visit.later("instances", options.instances);
  visit.object("index", options.index);
  visit.object("stats", options.stats);
}

/// Decodes the part of an image that a crop needs, and resizes it into the sample's place.
///
/// The format is recognised by its signature: JPEG (baseline and progressive; grey, YCbCr, RGB,
/// CMYK and YCCK), PNG, WebP and BMP, and GIF, TIFF, HEIC, AVIF and JPEG XL where this build has the library
/// (image_libraries). Of several frames or pages it is the first. Alpha is dropped, or the image is composited over
/// `background` before the resize: each level is (level * alpha + background * (255 - alpha)) / 255, rounded, as Pillow's
/// alpha_composite. Colour profiles are ignored. The pixels of a JPEG are, bit for bit, those that
/// libjpeg-turbo decodes of the whole image with accurate DCT (at the same scale; by default with
/// smooth chroma, its fancy upsampling, which is what Pillow shows too); JPEGs that Penstock's own
/// decoder does not take (progressive, a scan for each component, CMYK and the like) go to
/// libjpeg-turbo. The resize is an antialiased filter in integers, so equal bytes in give
/// equal bytes out on every CPU; but for damaged JPEGs whose numbers overflow, of which
/// libjpeg-turbo makes other pixels on ARM than on x86.
///
/// A fault: an image of another kind, or of one whose library this build does not have; a truncated or corrupt one (whatever libjpeg-turbo has an
/// error or, unless `tolerant`, a warning for; a JPEG's data past the region's last rows are not looked at), one over
/// max_megapixels, or a JPEG of more than 100 scans; an image smaller than a random_crop without pad_if_needed. Every decoder finds the same faults.
///
/// Masks are resized as by Pillow's NEAREST, whatever the image's filter. A PNG's numbers are taken as they are stored,
/// entries of its palette or grey levels, also those of 1, 2 and 4 bits. A mask that is no such PNG, or has another
/// size than the image, is a fault.
///
/// Shapes   in: `field` u8 [?], each mask u8 [?], or decoded: integers [H,W] or [H,W,1]; out: `field` u8 or
///          u16 [H,W,channels], `geometry` i32 [8] if asked for, each mask [H,W] of mask_dtype or, if decoded, its type;
///          instances as Instances says. With five_crops or ten_crops, image and geometry have a first dimension of as many.
/// Threads  any number at the same time. A thread keeps at most a few MiB of scratch memory between images; while it
///          works, a baseline JPEG needs its encoded size and a band of rows, other images the
///          whole of them (4 bytes a pixel; 8 for a progressive JPEG).
/// Errors   std::invalid_argument  an empty crop or field name, flip outside [0,1], a limit that is
///          not positive, two fields of one name, masks or instances with several crops, limits of instances out of range,
///          channels other than 1 and 3, a fill of several levels for 1, a dtype other than u8 and u16, pillow_bicubic or a background with u16, or a level of
///          the background outside [0,255]; at bind: another type or shape, or a mask whose type has no `mask_fill`
/// Source   the filter is Pillow's resize(box=region, resample=BILINEAR), to within one level. Of 16 bits it is
///          computed in doubles and rounded once, and pillow_bilinear gives the levels of Pillow's "I;16".
[[nodiscard]] TransformPtr decode_image(DecodeImageOptions options);

// ---- several crops of one encoded image, which is decoded once ----

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
  visit.required("field", view.field, {.is_key = true});
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
