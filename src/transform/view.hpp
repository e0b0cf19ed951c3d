// transform/view: one crop of one image, on its way from the image's rows to the sample.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/transform/crop.hpp>
#include <penstock/transform/decode_image.hpp>

#include "src/jpeg/pixels/exif.hpp"
#include "src/jpeg/pixels/rows.hpp"
#include "src/transform/nearest.hpp"
#include "src/transform/pillow_resize.hpp"
#include "src/transform/resize.hpp"
#include "src/transform/window.hpp"

namespace penstock::transform {

/// In DecodeImageOptions::geometry.
inline constexpr int kGeometryNumbers = 8;

/// An image as it is stored: mirrored or on its side, perhaps.
struct StoredImage {
  int width = 0;
  int height = 0;
  int exif = 1;   ///< the orientation, 1 to 8
  int scale = 1;  ///< its rows are those of the image at 1/scale of its size, rounded up

  [[nodiscard]] ImageSize upright() const noexcept;
};

/// Whether what it shows of an image is drawn.
[[nodiscard]] bool is_random(const ImageView& view) noexcept;

/// Usage    choose, plan, begin, step until is_done, finish; then the next image, or begin again.
/// Threads  one caller at a time; keeps scratch memory between images.
class View {
 public:
  /// Draws what `view` shows of `image`; in its field's crop number `copy`, or in a mosaic of `images` image number `copy`. `boxes`
  /// as for choose_placement().
  ///
  /// Errors  Fault  the image is too small for the crop
  [[nodiscard]] Result<void> choose(const ImageView& view, const StoredImage& image, Random& random,
                                    int copy, std::span<const Region> boxes = {}, int images = 1);
  /// Whether the sample shows nothing of it: then there is nothing more to do.
  [[nodiscard]] bool is_empty() const noexcept {
    return placement_.place.width == 0 || placement_.place.height == 0;
  }
  /// At which no pixel of the sample is made of less than one of the image's: 1, 2, 4 or 8.
  [[nodiscard]] int largest_scale() const noexcept;

  /// Gets ready for the rows of `image`.
  void plan(const StoredImage& image);
  /// The pixels that are needed, of the stored image at its scale.
  [[nodiscard]] PixelRect source() const noexcept { return resize().source(); }
  /// The most rows that are asked for at once.
  [[nodiscard]] int row_span() const noexcept { return resize().row_span(); }

  /// `out` has room for the sample: u8 [H,W,channels], with 3 channels, or 1 of their luma. Without `fills` what is beside the image
  /// stays as it is.
  void begin(std::uint8_t* out, int channels, bool fills = true);
  [[nodiscard]] bool is_done() const noexcept { return resize().is_done(); }
  /// The first row that the next step asks for; those of later steps do not lie above it.
  [[nodiscard]] int next_row() const noexcept { return resize().next_row(); }
  /// `rows` begin at column `left`. False where there are none.
  [[nodiscard]] bool step(jpeg::RowSource& rows, int left);
  void finish();

  /// The 8 numbers of DecodeImageOptions::geometry.
  void write_geometry(std::int32_t* out) const;
  /// What was chosen, for the fields that are cropped with the image.
  [[nodiscard]] Window window() const;
  /// Gives large scratch memory back.
  void trim();

 private:
  [[nodiscard]] int place_left() const noexcept;
  [[nodiscard]] std::ptrdiff_t out_stride() const noexcept;
  [[nodiscard]] const RowResize& resize() const noexcept {
    switch (filter_) {
      case ResizeFilter::bilinear:
      case ResizeFilter::bicubic:
        break;
      case ResizeFilter::pillow_bilinear:
      case ResizeFilter::pillow_bicubic:
        return pillow_;
      case ResizeFilter::nearest:
        return nearest_;
    }
    return quick_;
  }
  [[nodiscard]] RowResize& resize() noexcept {
    return const_cast<RowResize&>(std::as_const(*this).resize());
  }
  void plan_pillow(const StoredImage& image, const Region& region, ImageSize size, bool mirror);
  void plan_nearest(const StoredImage& image, bool mirror);

  Crop crop_;
  ResizeFilter filter_ = ResizeFilter::bilinear;
  Placement placement_;
  bool flipped_ = false;
  StoredImage image_;
  jpeg::Orientation turn_;
  Resize quick_;
  PillowResize pillow_;
  NearestResize nearest_;
  std::uint8_t* out_ = nullptr;
  int channels_ = 3;
  // RGB pixels that are not yet as they belong in the sample: on their side, or of three channels.
  std::vector<std::uint8_t> aside_;
  std::vector<const std::uint8_t*> pointers_;
};

/// The whole sample of a crop in its fill: u8 [H,W,channels].
void fill_sample(const Crop& crop, int channels, std::uint8_t* out);

/// What all of `views` need together, which are at least one.
[[nodiscard]] PixelRect source_of(std::span<const View> views) noexcept;
[[nodiscard]] int row_span_of(std::span<const View> views) noexcept;

/// Has all views that have begun take the rows that they need, each row once, and finishes them.
/// `rows` begin at column `left`. False where there are none.
[[nodiscard]] bool run_views(std::span<View> views, jpeg::RowSource& rows, int left);

/// Crops in a view's field, as its first dimension; 0: one, without a dimension.
[[nodiscard]] inline int crops_of(const ImageView& view) noexcept {
  return std::max(view.count, view.crop.parts());
}

/// Shape and type of what a view puts out, one after the other: its pixels, then its geometry.
void add_outputs(const ImageView& view, DType dtype, int channels, std::vector<FieldSpec>& outputs);

/// Errors  std::invalid_argument  no crop, no name, or options out of range; begins with `caller`
void check_view(std::string_view caller, const ImageView& view);

/// A crop's fill has as many levels as the images have channels, or one for all.
///
/// Errors  std::invalid_argument  several levels for images of one channel; begins with `caller`
void check_fill(std::string_view caller, const Crop& crop, int channels);

}  // namespace penstock::transform
