// transform/crop: which part of an image a sample shows, at what size, and what stands beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>

namespace PENSTOCK_EXPORT penstock {

namespace transform {
struct CropKind;
}

/// How pixels become fewer, or more. All but `nearest` are antialiased: where an image shrinks, the
/// filter is as much wider.
///
/// The two that are named after Pillow are for comparing accuracies: they give the bytes that torchvision makes of
/// Pillow's images, and are slower. Pillow until 12 is meant; 13 takes the vertical direction first
/// where that saves work, and then some levels differ by one; so it is, and by more with bicubic, for
/// images that EXIF turns on their side.
/// With them and with `nearest` a random_resized_crop is cut out before it is resized; of the other
/// crops, a part of the resized image is taken. `scaled` does nothing with them.
enum class ResizeFilter : std::uint8_t {
  bilinear,  ///< within one level of Pillow's; it also reads pixels beside the crop
  bicubic,  ///< sharper, Keys' cubic with a = -1/2, as Pillow's BICUBIC; it also reads pixels beside the crop
  pillow_bilinear,  ///< the bytes of torchvision's transforms on Pillow's images (before Pillow 13), slower
  pillow_bicubic,  ///< likewise
  nearest,         ///< Pillow's NEAREST: each pixel is one pixel of the image, so no two are mixed
};
template <>
struct EnumNames<ResizeFilter> {
  static constexpr std::pair<ResizeFilter, const char*> kNames[] = {
      {ResizeFilter::bilinear, "bilinear"},
      {ResizeFilter::bicubic, "bicubic"},
      {ResizeFilter::pillow_bilinear, "pillow_bilinear"},
      {ResizeFilter::pillow_bicubic, "pillow_bicubic"},
      {ResizeFilter::nearest, "nearest"}};
};

/// Levels of red, green and blue, 0 to 255; one number means a grey.
struct Color {
  int red = 0;
  int green = 0;
  int blue = 0;

  constexpr Color() = default;
  constexpr Color(int level)  // NOLINT(google-explicit-constructor)
      : red(level), green(level), blue(level) {}
  constexpr Color(int red_level, int green_level, int blue_level)
      : red(red_level), green(green_level), blue(blue_level) {}

  friend bool operator==(const Color&, const Color&) = default;
};

template <class Visitor>
void visit_elements(Visitor& visit, Color& color) {
  visit("red", color.red);
  visit("green", color.green);
  visit("blue", color.blue);
}

/// How to choose a region of an image, the size it is resized to, and where it then lies in the
/// sample. An immutable value; an empty one (default-constructed) is refused wherever a crop is needed.
class Crop {
 public:
  Crop() = default;
  explicit Crop(std::shared_ptr<const transform::CropKind> kind) noexcept
      : kind_(std::move(kind)) {}

  [[nodiscard]] bool is_empty() const noexcept { return kind_ == nullptr; }
  /// Size of the sample that it makes; 0x0 where it is empty.
  [[nodiscard]] ImageSize size() const noexcept;
  /// How many samples it makes of an image, as a field's first dimension: 5 and 10 of five_crops and ten_crops; 0: one,
  /// without a dimension.
  [[nodiscard]] int parts() const noexcept;
  /// "center_crop(size=224, resize=232)": what differs from the defaults.
  [[nodiscard]] std::string to_string() const;
  /// {"center_crop":{"size":[224,224],"resize":256}}: what plans hold.
  [[nodiscard]] std::string to_json() const;
  /// What to_json() wrote.
  ///
  /// Errors  Error  no such crop, or a field that is missing, unknown or of another type
  ///         std::invalid_argument  a number out of range
  [[nodiscard]] static Crop from_json(std::string_view json);

  /// Null where it is empty.
  [[nodiscard]] const transform::CropKind* kind() const noexcept { return kind_.get(); }
  friend bool operator==(const Crop& a, const Crop& b);

 private:
  std::shared_ptr<const transform::CropKind> kind_;
};

struct RandomResizedCropOptions {
  Range scale{0.08, 1};           ///< the region's fraction of the image's area
  Range ratio{3.0 / 4, 4.0 / 3};  ///< the region's width over its height
};

template <class Visitor>
void visit_fields(Visitor& visit, RandomResizedCropOptions& options) {
  visit("scale", options.scale);
  visit("ratio", options.ratio);
}

struct CenterCropOptions {
  int resize = 256;  ///< pixels to which the shorter side of the whole image is resized
};

template <class Visitor>
void visit_fields(Visitor& visit, CenterCropOptions& options) {
  visit("resize", options.resize);
}

struct LetterboxOptions {
  Color fill{114};  ///< the colour beside the image, by default YOLO's grey
};

template <class Visitor>
void visit_fields(Visitor& visit, LetterboxOptions& options) {
  visit("fill", options.fill);
}

struct CoverCropOptions {
  CropPosition position = CropPosition::center;  ///< position of the sample in the resized image
};

template <class Visitor>
void visit_fields(Visitor& visit, CoverCropOptions& options) {
  visit("position", options.position);
}

struct RandomCropOptions {
  int padding =
      0;  ///< pixels of `fill` on each side of the image, fewer than the crop's height and width
  Color fill{};  ///< the colour of the padding
  bool pad_if_needed =
      false;  ///< whether images smaller than the crop are padded to its size, equally on both sides
};

template <class Visitor>
void visit_fields(Visitor& visit, RandomCropOptions& options) {
  visit("padding", options.padding);
  visit("fill", options.fill);
  visit("pad_if_needed", options.pad_if_needed);
}

struct ScaleJitterOptions {
  Range scale{0.1,
              2};  ///< the image's size, as a multiple of the largest at which the whole image fits
  Color fill{};    ///< the colour beside the image
};

template <class Visitor>
void visit_fields(Visitor& visit, ScaleJitterOptions& options) {
  visit("scale", options.scale);
  visit("fill", options.fill);
}

struct ResizeShortestOptions {
  Range sides{480, 800};  ///< pixels of the shorter side: integers, of which one is drawn
  int step = 32;          ///< from one of them to the next; 1: each integer of the range
  int longest = 1333;     ///< pixels of the longer side at most; 0: any number
  Color fill{};           ///< the colour beside the image
  double cut = 0;         ///< probability of cutting out a part of the image first, as DETR does
  Range cut_sides{400,
                  600};  ///< pixels of the shorter side of the image that the part is cut out of
  int cut_step = 100;    ///< from one of these to the next
  Range cut_size{384, 600};  ///< pixels of the part's width and of its height
};

template <class Visitor>
void visit_fields(Visitor& visit, ResizeShortestOptions& options) {
  visit("sides", options.sides);
  visit("step", options.step);
  visit("longest", options.longest);
  visit("fill", options.fill);
  visit("cut", options.cut);
  visit("cut_sides", options.cut_sides);
  visit("cut_step", options.cut_step);
  visit("cut_size", options.cut_size);
}

struct BoxSafeCropOptions {
  /// how far the part may cut into what is around all boxes, as a fraction of its width and height; 0: all boxes are whole
  double erosion = 0;
};

template <class Visitor>
void visit_fields(Visitor& visit, BoxSafeCropOptions& options) {
  visit("erosion", options.erosion);
}

struct RandomIouCropOptions {
  /// of which one is drawn: the least overlap (intersection over union) of the part with the box of an instance; 1: the whole image
  std::vector<double> overlaps{0, 0.1, 0.3, 0.5, 0.7, 0.9, 1};
  Range scale{0.3, 1};  ///< the part's width and its height, as fractions of the image's
  Range ratio{0.5, 2};  ///< the part's width over its height
  double zoom_out =
      0;  ///< probability of putting the image on a larger canvas first, at a random place
  Range zoom{1, 4};  ///< the canvas's sides, as multiples of the image's
  Color fill{};      ///< the colour of the canvas
};

template <class Visitor>
void visit_fields(Visitor& visit, RandomIouCropOptions& options) {
  visit("overlaps", options.overlaps);
  visit("scale", options.scale);
  visit("ratio", options.ratio);
  visit("zoom_out", options.zoom_out);
  visit("zoom", options.zoom);
  visit("fill", options.fill);
}

struct MosaicOptions {
  Range scale{0.5, 1.5};  ///< how much larger the images are than where the whole of each fits
  double translate =
      0.1;           ///< how far the canvas is moved at most, as a fraction of the sample's size
  Color fill{114};   ///< the colour beside the images, by default YOLO's grey
  double mixup = 0;  ///< probability of mixing it with a second mosaic, of the partners 4 to 7
};

template <class Visitor>
void visit_fields(Visitor& visit, MosaicOptions& options) {
  visit("scale", options.scale);
  visit("translate", options.translate);
  visit("fill", options.fill);
  visit("mixup", options.mixup);
}

struct CopyPasteOptions {
  Range scale{0.1, 2};  ///< of both images, as ScaleJitterOptions::scale
  Color fill{};         ///< the colour beside the image
  double share = 0.5;   ///< probability with which each instance of the partner is pasted
};

template <class Visitor>
void visit_fields(Visitor& visit, CopyPasteOptions& options) {
  visit("scale", options.scale);
  visit("fill", options.fill);
  visit("share", options.share);
}

/// A random part of the image, resized: the crop of training.
///
/// Errors  std::invalid_argument  a size below 1, or a range that is empty or not positive
/// Source  torchvision's RandomResizedCrop: ten attempts with an area uniform in `scale` and a
///         ratio whose logarithm is uniform in that of `ratio`, then the largest centred crop that
///         fits.
[[nodiscard]] Crop random_resized_crop(ImageSize size, RandomResizedCropOptions options = {});

/// The middle of the image after resizing its shorter side to `resize`: the crop of validation.
/// Sides and offsets of the resized image are whole pixels, so width and height may be scaled a little differently. This is
/// one region and one resize; nothing outside the crop is decoded.
///
/// Errors  std::invalid_argument  a size below 1, or one larger than `resize`
/// Source  torchvision's Resize followed by CenterCrop, with their sizes and offsets: the longer
///         side is cut to an integer, an offset of a half is rounded to the even number.
[[nodiscard]] Crop center_crop(ImageSize size, CenterCropOptions options = {});

/// The four corners and the middle of the image after resizing its shorter side to `resize`, for testing: upper left,
/// upper right, lower left, lower right, middle. Makes a field [5,H,W,channels].
///
/// Errors  std::invalid_argument  a size below 1, or one larger than `resize`
/// Source  torchvision's Resize followed by FiveCrop, with their sizes and offsets.
[[nodiscard]] Crop five_crops(ImageSize size, CenterCropOptions options = {});

/// The five of five_crops, followed by the same five of the mirrored image: [10,H,W,channels].
///
/// Errors  std::invalid_argument  as five_crops
/// Source  torchvision's Resize followed by TenCrop, without its vertical_flip.
[[nodiscard]] Crop ten_crops(ImageSize size, CenterCropOptions options = {});

/// The whole image, stretched.
///
/// Errors  std::invalid_argument  a size below 1
[[nodiscard]] Crop resize_to(ImageSize size);

/// The whole image as large as it fits with its aspect kept, in the middle; the rest is filled.
/// Small images are enlarged.
///
/// Errors  std::invalid_argument  a size below 1, or a level outside [0, 255]
/// Source  YOLO's letterbox (ultralytics' LetterBox): sides are rounded, a half to the even number,
///         and are 1 at least; an odd row or column of fill stands below or on the right.
[[nodiscard]] Crop letterbox(ImageSize size, LetterboxOptions options = {});

/// The image resized, with its aspect kept, so that it just covers the sample; what is too much in one direction is cut
/// off, equally on both sides or at a random position. Small images are enlarged. One side of the resized image is the
/// sample's; the other is the exact quotient, cut to an integer, so it may be scaled a little differently. Nothing
/// outside the crop is decoded.
///
/// Errors  std::invalid_argument  a size below 1
/// Source  torchvision's Resize to those two sides, followed by CenterCrop (an offset of a half is rounded to the even
///         number) or RandomCrop. Diffusion models are trained on such crops: mosaicml's diffusion has this one, at a
///         random position, for its aspect buckets (RandomCropAspectRatioTransform).
[[nodiscard]] Crop cover_crop(ImageSize size, CoverCropOptions options = {});

/// A random part of the image as it is, not resized, after padding on all sides: the crop of CIFAR
/// (`random_crop(32, {.padding = 4})`). An image that is smaller than the crop even so is a fault.
///
/// Errors  std::invalid_argument  a size below 1; a padding below 0, or of the crop's height or
///         width and more; a level outside [0, 255]
/// Source  torchvision's RandomCrop.
[[nodiscard]] Crop random_crop(ImageSize size, RandomCropOptions options = {});

/// Large-scale jitter: the image at a random size with its aspect kept; a random part of that in the
/// directions in which it is larger than the sample. It lies in the upper left corner, and the rest
/// is filled.
///
/// Errors  std::invalid_argument  a size below 1; a range that is empty or not positive; a level
///         outside [0, 255]
/// Source  Ghiasi et al., Simple Copy-Paste (CVPR 2021), as torchvision's detection reference has
///         it: ScaleJitter and FixedSizeCrop.
[[nodiscard]] Crop scale_jitter(ImageSize size, ScaleJitterOptions options = {});

/// The image with its aspect kept, and its shorter side at a number of pixels that is drawn from `sides`, or fewer, so that the
/// longer one has no more than `longest`. It lies in the upper left corner of the sample, also where that is mirrored, and the rest is
/// filled; in a direction in which it is larger than the sample, a random part of it is shown.
///
/// Errors  std::invalid_argument  a size below 1; sides or a cut_size that are no integers, below 1, or end before they begin; a
///                                step below 1; a longest below 0; a probability or a level out of range
/// Source  torchvision's Resize(side, max_size) with its sizes: RandomShortestSize of references/detection, RandomResize and
///         RandomCrop of references/segmentation; Detectron2's ResizeShortestEdge. Carion et al., DETR (ECCV 2020), appendix
///         A.4: `cut`, with one resize in place of two
[[nodiscard]] Crop resize_shortest(ImageSize size, ResizeShortestOptions options = {});

/// A random part of the image that has the boxes of all instances in it, stretched to the sample. Its four edges are drawn, each
/// between those of the image and of what is around all boxes. Where no box has an area, and with an erosion of 1, it is a random
/// part of the image's aspect, of 1 - erosion of its height or more. The transform needs Instances with boxes.
///
/// Errors  std::invalid_argument  a size below 1; an erosion outside [0, 1]; in a transform without boxes
/// Source  Albumentations' RandomSizedBBoxSafeCrop; there the part's right and lower edges are rounded down, so that boxes may
///         lose a pixel, and one box alone is never cut into
[[nodiscard]] Crop box_safe_crop(ImageSize size, BoxSafeCropOptions options = {});

/// SSD's crop: a random part of the image that overlaps the box of an instance as much as a drawn number says and has the middle
/// of its box in it, stretched to the sample; or the whole image. 40 parts are tried for each overlap that is drawn, and after 100
/// draws, or where the image has no box with an area, it is the whole image. With `zoom_out` it may lie on a canvas first, on
/// which instances are smaller. The transform needs Instances with boxes; those of the part may leave out what SSD leaves out with
/// Instances::middle.
///
/// Errors  std::invalid_argument  a size below 1; no overlaps, or one outside [0, 1]; a range that is empty or not positive; a scale
///                                above 1; a zoom below 1; a probability or a level out of range; in a transform without boxes
/// Source  Liu et al., SSD: Single Shot MultiBox Detector (ECCV 2016), section 2.2, as torchvision's RandomIoUCrop behind
///         RandomZoomOut
[[nodiscard]] Crop random_iou_crop(ImageSize size, RandomIouCropOptions options = {});

/// Of the four images of a sample with its partners (Dataset::partners), the quarters of a canvas of twice the sample's size, of
/// which the sample shows a part: the crop of YOLO. Each image is scaled until it fits into the sample; the sample's own lies in
/// the upper left, its partners upper right, lower left and lower right. They meet in a random point of the middle half of the
/// canvas, up to which each is cut off at the canvas's edges. What the sample shows of all that is scaled, and moved, at random.
/// A sample without partners is one image in the middle, scaled and moved likewise. decode_image alone takes it.
///
/// With `mixup` each sample has seven partners. Of the last four a second mosaic is made, mirrored or not by itself; the levels of
/// both are added, with a weight from Beta(32, 32) and what it lacks of 1, and the instances of both are the sample's.
///
/// Errors  std::invalid_argument  a size below 1; a range that is empty or not positive; a translation or probability outside
///                                [0, 1]; a level outside [0, 255]; in a plan without partners({.count = 3}), or with mixup 7
/// Source  Bochkovskiy et al., YOLOv4 (2020), section 3.3, as Ultralytics' Mosaic (n = 4) and RandomPerspective have it without
///         rotation, shear and perspective. There the images are resized twice and not antialiased, here once. Zhang et al.,
///         mixup (ICLR 2018), as Ultralytics' MixUp
[[nodiscard]] Crop mosaic(ImageSize size, MosaicOptions options = {});

/// Simple Copy-Paste: two images, a sample's own and its partner's (Dataset::partners), each behind a scale_jitter and a flip of
/// its own. Some instances of the partner are pasted onto the sample, each with the probability `share`: the pixels of their masks
/// replace those of the sample, and their rows stand behind its own. Of the sample's own instances the masks lose these pixels. One
/// that loses some gets the box around what is left; it is removed if that is nothing, or less than Instances::min_size or, of its
/// mask's pixels, Instances::min_visible. A keypoint below what is pasted gets the visibility 1, if it had more. Areas and other
/// fields stay. The transform needs Instances with masks. A sample without a partner is that of scale_jitter. decode_image alone
/// takes it.
///
/// Errors  std::invalid_argument  a size below 1; a range that is empty or not positive; a level outside [0, 255]; a share outside
///                                [0, 1]; in a transform without masks, or a plan without partners({.count = 1})
/// Source  Ghiasi et al., Simple Copy-Paste (CVPR 2021), section 3, without blending of the edges, which made no difference there;
///         torchvision's references/detection pastes about 0.63 of the instances
[[nodiscard]] Crop copy_paste(ImageSize size, CopyPasteOptions options = {});

/// What a sample shows: `region` of the image, resized into `place` of the sample. What is beside
/// that is filled.
struct Placement {
  Region region;    ///< of the upright image, in its pixels
  PixelRect place;  ///< of the sample; empty only where a mosaic shows nothing of the image

  bool mirrored = false;  ///< of ten_crops: the sample is mirrored left to right

  /// Whole pixels that are cut out of the image before it is resized, so that Pillow's filters look at no other; empty: none.
  Region cut{};

  /// What the whole of a sample of `size` covers of the image and of the plane around it: its x, y,
  /// width and height may reach beyond the image. Not of an empty place.
  [[nodiscard]] Region frame(ImageSize size) const noexcept;

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// What `crop` takes from an image of this size; draws from `random` as much as it needs. The same
/// on every machine: only IEEE +, -, *, / and square roots are used. `part` says which of its parts(),
/// where it has several. `boxes` are those of the image's instances, for a random_iou_crop. Of a mosaic of `images`, 1 or 4, `part` is
/// the image's number, and each has the same random numbers.
///
/// Errors  Fault                  the image is smaller than a random_crop without pad_if_needed
///         std::invalid_argument  the crop is empty, the image has no pixels, or there is no such part
[[nodiscard]] Result<Placement> choose_placement(const Crop& crop, int image_width,
                                                 int image_height, Random& random, int part = 0,
                                                 std::span<const Region> boxes = {},
                                                 int images = 1);

}  // namespace penstock
