#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/transform/decode_image.hpp>

#include "src/jpeg/pixels/rows.hpp"
#include "src/transform/catalog.hpp"
#include "src/transform/crops.hpp"
#include "src/transform/find_field.hpp"
#include "src/transform/moved_fields.hpp"
#include "src/transform/view.hpp"
#include "src/transform/wide_resize.hpp"

namespace penstock {

namespace {

using transform::StoredImage;
using transform::View;

// What a thread keeps between images.
struct Scratch {
  std::vector<View> views;           // one for each part of the crop
  std::vector<std::uint8_t> pixels;  // the part that is needed, four bytes a pixel
  transform::WideResize wide;

  static Scratch& of_this_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }
};

// Pixels of three channels, or of one, become R, G, B and a byte that is not used.
void spread(const std::uint8_t* from, int channels, int width, std::uint8_t* to) {
  const bool color = channels == 3;
  for (int x = 0; x < width; ++x, from += channels, to += jpeg::kPixelBytes) {
    to[0] = from[0];
    to[1] = from[color ? 1 : 0];
    to[2] = from[color ? 2 : 0];
  }
}

class CropImage final : public Transform {
 public:
  CropImage(ImageView view, Description description, transform::MovedFields moved)
      : view_(std::move(view)),
        description_(std::move(description)),
        moved_(std::move(moved)),
        first_moved_(view_.geometry.empty() ? 1 : 2) {}

  [[nodiscard]] Binding bind(std::span<const FieldSpec> fields) const override {
    const std::size_t input =
        transform::find_field(fields, view_.field, CropImageOptions::kName, transform::is_decoded);
    const FieldSpec& field = fields[input];
    const auto extents = field.shape.extents();
    const bool is_wide = field.dtype == DType::u16;
    if (!transform::is_decoded(field))
      throw std::invalid_argument(fmt::format(
          "crop_image needs a decoded image, u8 or u16 [H,W,3] or [H,W,1], and found {}{}",
          field.to_string(),
          transform::is_encoded(field)
              ? fmt::format(
                    ": {} decodes and crops it",
                    transform::call_with_field("decode_image", field.name, "crop=resize_to(224)"))
          : field.dtype == DType::u8 && extents.size() == 2
              ? std::string(": a grey image has the shape [?,?,1]; in Python fields={\"image\": "
                            "(\"u8\", (None, None, 1)), ...} of Dataset(items) says so")
              : transform::name_another(fields, input, transform::is_decoded)));
    if (is_wide) transform::check_wide_filter(CropImageOptions::kName, view_.filter);
    transform::check_fill(fmt::format("crop_image: '{}'", field.to_string()), view_.crop,
                          static_cast<int>(extents[2]));
    Binding binding{.inputs = {input}, .outputs = {}};
    transform::add_outputs(view_, field.dtype, static_cast<int>(extents[2]), binding.outputs);
    moved_.bind(fields, view_.crop.size(), binding);
    return binding;
  }

  Result<void> apply(std::span<const ConstTensorView> in, Outputs out,
                     Random& random) const override {
    const auto extents = in[0].shape().extents();
    if (extents[0] < 1 || extents[1] < 1 || std::max(extents[0], extents[1]) > INT32_MAX)
      return Fault{.reason = fmt::format("an image of {}x{} pixels cannot be cropped", extents[0],
                                         extents[1])};
    const StoredImage image{.width = static_cast<int>(extents[1]),
                            .height = static_cast<int>(extents[0])};
    Scratch& scratch = Scratch::of_this_thread();
    const auto parts = static_cast<std::size_t>(std::max(view_.crop.parts(), 1));
    if (scratch.views.size() < parts) scratch.views.resize(parts);
    const std::span views = std::span(scratch.views).first(parts);
    const auto boxes = moved_.boxes(view_.crop, in.subspan(1), image.upright());
    if (!boxes) return boxes.fault();
    for (std::size_t i = 0; i < parts; ++i) {
      Random other = random.of_stream(static_cast<std::uint16_t>(i));
      if (auto chosen =
              views[i].choose(view_, image, i == 0 ? random : other, static_cast<int>(i), *boxes);
          !chosen)
        return chosen;
    }
    if (in[0].dtype() == DType::u16)
      crop_wide(in[0], views, scratch, out);
    else
      crop_pixels(in[0], image, views, scratch, out);
    for (std::size_t i = 0; i < parts && !view_.geometry.empty(); ++i)
      views[i].write_geometry(out[1].data<std::int32_t>() + i * transform::kGeometryNumbers);
    return moved_.crop(in.subspan(1), out, first_moved_, views.front().window());
  }

  [[nodiscard]] bool is_random() const noexcept override { return transform::is_random(view_); }
  [[nodiscard]] std::optional<ImageMove> image_move() const override {
    return moved_.image_move(view_.field, view_.field, view_.flip > 0);
  }
  [[nodiscard]] Description description() const override { return description_; }

 private:
  void crop_wide(const ConstTensorView& in, std::span<View> views, Scratch& scratch,
                 Outputs out) const {
    const std::size_t levels = out[0].byte_size() / sizeof(std::uint16_t) / views.size();
    for (std::size_t i = 0; i < views.size(); ++i)
      scratch.wide.run({in.data<std::uint16_t>(), static_cast<int>(in.shape()[2])},
                       views[i].window(), view_.filter, transform::fill_of(view_.crop),
                       out[0].data<std::uint16_t>() + i * levels);
    scratch.wide.trim();
  }

  static void crop_pixels(const ConstTensorView& in, const StoredImage& image,
                          std::span<View> views, Scratch& scratch, Outputs out) {
    const int channels = static_cast<int>(in.shape()[2]);
    for (View& view : views) view.plan(image);
    const PixelRect rect = transform::source_of(views);
    const std::size_t stride = static_cast<std::size_t>(rect.width) * jpeg::kPixelBytes;
    const std::size_t size = stride * static_cast<std::size_t>(rect.height) + jpeg::kRowSlack;
    if (scratch.pixels.size() < size) scratch.pixels.resize(size);
    const auto* pixels = in.data<std::uint8_t>();
    for (int y = 0; y < rect.height; ++y)
      spread(pixels + ((std::int64_t{rect.y} + y) * image.width + rect.x) * channels, channels,
             rect.width, scratch.pixels.data() + static_cast<std::size_t>(y) * stride);

    Part rows(scratch.pixels.data(), stride, rect.y);
    const std::size_t levels = out[0].byte_size() / views.size();
    for (std::size_t i = 0; i < views.size(); ++i)
      views[i].begin(out[0].data<std::uint8_t>() + i * levels, channels);
    (void)transform::run_views(views, rows, rect.x);  // these rows are there
    for (View& view : views) view.trim();
    jpeg::trim(scratch.pixels);
  }

  // Rows in memory, of which the first is row `top` of the image.
  class Part final : public jpeg::RowSource {
   public:
    Part(const std::uint8_t* pixels, std::size_t stride, int top)
        : rows_(pixels, stride, 0), top_(top) {}
    const std::uint8_t* const* rows(int first, int last) override {
      return rows_.rows(first - top_, last - top_);
    }

   private:
    jpeg::MemoryRows rows_;
    int top_;
  };

  ImageView view_;
  Description description_;
  transform::MovedFields moved_;
  std::size_t first_moved_;  // of the outputs
};

}  // namespace

TransformPtr crop_image(CropImageOptions options) {
  Description description = transform::describe(options);
  std::vector<std::string> taken = options.masks;
  taken.insert(taken.end(), {options.field, options.geometry});
  transform::MovedInstances instances(CropImageOptions::kName, std::move(options.instances),
                                      options.crop, taken);
  transform::Masks masks(CropImageOptions::kName, std::move(options.masks), options.mask_fill,
                         options.mask_dtype, options.crop,
                         std::array{options.field, options.geometry});
  ImageView view{.field = std::move(options.field),
                 .crop = options.crop,
                 .flip = options.flip,
                 .filter = options.filter,
                 .geometry = std::move(options.geometry)};
  transform::check_view(CropImageOptions::kName, view);
  if (transform::images_of(view.crop) != 1)
    throw std::invalid_argument(
        fmt::format("{}: {} is made of images that are not decoded yet: decode_image takes it",
                    CropImageOptions::kName, view.crop.to_string()));
  if (view.field.empty())
    throw std::invalid_argument("crop_image: name the field that holds the image");
  return std::make_shared<CropImage>(
      std::move(view), std::move(description),
      transform::MovedFields(std::move(masks), std::move(instances)));
}

}  // namespace penstock
