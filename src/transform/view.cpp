#include "src/transform/view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/jpeg/decoder/plan.hpp"
#include "src/transform/color.hpp"
#include "src/transform/crops.hpp"

namespace penstock::transform {

namespace {

constexpr std::ptrdiff_t kRgb = 3;
constexpr int kMostCrops = 256;  // of a view; each has a sequence of random numbers

// Pillow's, of convert("L"); of a pixel whose levels are equal, that level.
std::uint8_t luma(const std::uint8_t* pixel) {
  return static_cast<std::uint8_t>(
      (19595U * pixel[0] + 38470U * pixel[1] + 7471U * pixel[2] + 32768U) >> 16);
}

// The rows of another source from a column on.
class FromColumn final : public jpeg::RowSource {
 public:
  FromColumn(jpeg::RowSource& rows, int column, std::vector<const std::uint8_t*>& pointers)
      : rows_(rows),
        skipped_(static_cast<std::size_t>(column) * jpeg::kPixelBytes),
        pointers_(pointers) {}

  const std::uint8_t* const* rows(int first, int last) override {
    const std::uint8_t* const* all = rows_.rows(first, last);
    if (all == nullptr || skipped_ == 0) return all;
    pointers_.assign(all, all + (last - first));
    for (const std::uint8_t*& row : pointers_) row += skipped_;
    return pointers_.data();
  }

 private:
  jpeg::RowSource& rows_;
  std::size_t skipped_;
  std::vector<const std::uint8_t*>& pointers_;
};

// `first` and `extent` of what is cut out become so many outputs as a part of a whole line.
PillowLine line(double cut, double cut_extent, double first, double extent, int outputs) {
  const double stretch = outputs / extent;  // the whole line may be longer than an int counts
  return {static_cast<int>(std::lround(cut)), static_cast<int>(std::lround(cut_extent)),
          std::llround(cut_extent * stretch), std::llround((first - cut) * stretch), outputs};
}

Region cut_of(const Placement& placement, ImageSize image) {
  if (placement.cut.width > 0) return placement.cut;
  return {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)};
}

}  // namespace

ImageSize StoredImage::upright() const noexcept {
  return jpeg::Orientation(exif).transposed ? ImageSize(width, height) : ImageSize(height, width);
}

bool is_random(const ImageView& view) noexcept {
  return is_random(view.crop) || (view.flip > 0 && view.flip < 1);
}

Result<void> View::choose(const ImageView& view, const StoredImage& image, Random& random, int copy,
                          std::span<const Region> boxes, int images) {
  crop_ = view.crop;
  filter_ = view.filter;
  image_ = image;
  const ImageSize upright = image.upright();
  const bool has_parts = crop_.parts() != 0 || images != 1;
  auto placement = choose_placement(crop_, upright.width, upright.height, random,
                                    has_parts ? copy : 0, boxes, images);
  if (!placement) return std::move(placement.fault());
  placement_ = *placement;
  // Drawn whatever the probability: the crops of a run do not depend on it.
  flipped_ = (random.uniform() < view.flip) != placement_.mirrored;
  PixelRect& place = placement_.place;
  if (flipped_ && is_in_corner(crop_)) place.x = crop_.size().width - place.x - place.width;
  return {};
}

int View::largest_scale() const noexcept {
  int scale = 1;
  if (filter_ != ResizeFilter::bilinear && filter_ != ResizeFilter::bicubic) return scale;
  while (scale < 8 && placement_.region.width >= 2.0 * scale * placement_.place.width &&
         placement_.region.height >= 2.0 * scale * placement_.place.height)
    scale *= 2;
  return scale;
}

// The stored image's pixels are resized as they lie, on their side where that is how they lie.
void View::plan(const StoredImage& image) {
  image_ = image;
  turn_ = jpeg::Orientation(image.exif);
  ImageSize size(placement_.place.height, placement_.place.width);
  if (turn_.transposed) std::swap(size.height, size.width);
  const bool mirror = turn_.mirror_x != (flipped_ && !turn_.transposed);
  const double scale = image.scale;
  Region region = turn_.stored(placement_.region, image.width, image.height);
  switch (filter_) {
    case ResizeFilter::pillow_bilinear:
    case ResizeFilter::pillow_bicubic:
      return plan_pillow(image, region, size, mirror);
    case ResizeFilter::nearest:
      return plan_nearest(image, mirror);
    case ResizeFilter::bilinear:
    case ResizeFilter::bicubic:
      break;
  }
  region = {region.x / scale, region.y / scale, region.width / scale, region.height / scale};
  quick_.plan(jpeg::scaled_down(image.width, image.scale),
              jpeg::scaled_down(image.height, image.scale), region, size, mirror, filter_);
}

void View::plan_pillow(const StoredImage& image, const Region& region, ImageSize size,
                       bool mirror) {
  const Region cut = turn_.stored(cut_of(placement_, image.upright()), image.width, image.height);
  pillow_.plan(line(cut.x, cut.width, region.x, region.width, size.width),
               line(cut.y, cut.height, region.y, region.height, size.height), mirror, filter_);
}

// A middle that lies between two pixels goes to the right or lower one of the upright image.
void View::plan_nearest(const StoredImage& image, bool mirror) {
  const Window upright = window();
  nearest_.plan({turn_.transposed ? upright.down : upright.across, image.width, turn_.mirror_x},
                {turn_.transposed ? upright.across : upright.down, image.height, turn_.mirror_y},
                mirror);
}

Window View::window() const {
  const ImageSize image = image_.upright();
  const Region& region = placement_.region;
  const PixelRect& place = placement_.place;
  const Region cut = cut_of(placement_, image);
  return {.image = image,
          .sample = crop_.size(),
          .region = region,
          .place = place,
          .across = line(cut.x, cut.width, region.x, region.width, place.width),
          .down = line(cut.y, cut.height, region.y, region.height, place.height),
          .flipped = flipped_,
          .turned = turn_.transposed};
}

int View::place_left() const noexcept {
  const PixelRect& place = placement_.place;
  return flipped_ ? crop_.size().width - place.x - place.width : place.x;
}

std::ptrdiff_t View::out_stride() const noexcept {
  return std::ptrdiff_t{channels_} * crop_.size().width;
}

void fill_sample(const Crop& crop, int channels, std::uint8_t* out) {
  const ImageSize size = crop.size();
  const auto levels = levels_of(fill_of(crop));
  const std::ptrdiff_t stride = std::ptrdiff_t{channels} * size.width;
  for (int x = 0; x < size.width; ++x)
    std::copy_n(levels.data(), channels, out + std::ptrdiff_t{channels} * x);
  for (int y = 1; y < size.height; ++y) std::copy_n(out, stride, out + y * stride);
}

void View::begin(std::uint8_t* out, int channels, bool fills) {
  out_ = out;
  channels_ = channels;
  const PixelRect& place = placement_.place;
  if (fills && ImageSize(place.height, place.width) != crop_.size())
    fill_sample(crop_, channels, out);
  std::uint8_t* first = out + place.y * out_stride() + std::ptrdiff_t{channels} * place_left();
  std::ptrdiff_t stride = out_stride();
  int rows = place.height;
  if (turn_.transposed || channels != kRgb) {
    rows = turn_.transposed ? place.width : place.height;
    stride = kRgb * (turn_.transposed ? place.height : place.width);
    aside_.resize(static_cast<std::size_t>(stride * rows));
    first = aside_.data();
  }
  if (turn_.mirror_y)
    resize().begin(first + (rows - 1) * stride, -stride);
  else
    resize().begin(first, stride);
}

bool View::step(jpeg::RowSource& rows, int left) {
  FromColumn own(rows, source().x - left, pointers_);
  return resize().step(own);
}

void View::finish() {
  if (!turn_.transposed && channels_ == kRgb) return;
  const PixelRect& place = placement_.place;
  const std::ptrdiff_t along = kRgb * (turn_.transposed ? place.height : place.width);
  for (int y = 0; y < place.height; ++y) {
    std::uint8_t* out =
        out_ + (place.y + y) * out_stride() + std::ptrdiff_t{channels_} * place_left();
    for (int x = 0; x < place.width; ++x, out += channels_) {
      // Of pixels on their side, the resize mirrors the other direction only.
      const int from = turn_.transposed && flipped_ ? place.width - 1 - x : x;
      const std::uint8_t* pixel =
          aside_.data() + (turn_.transposed ? from * along + kRgb * y : y * along + kRgb * from);
      if (channels_ == kRgb)
        std::copy_n(pixel, kRgb, out);
      else
        *out = luma(pixel);
    }
  }
}

void View::write_geometry(std::int32_t* out) const {
  const Region frame = placement_.frame(crop_.size());
  const ImageSize upright = image_.upright();
  const double left = std::floor(frame.x);
  const double top = std::floor(frame.y);
  const std::array<double, std::size_t{kGeometryNumbers}> numbers{
      left,
      top,
      std::ceil(frame.x + frame.width) - left,
      std::ceil(frame.y + frame.height) - top,
      flipped_ ? 1.0 : 0.0,
      static_cast<double>(upright.width),
      static_cast<double>(upright.height),
      static_cast<double>(image_.exif)};
  for (const double number : numbers) *out++ = static_cast<std::int32_t>(number);
}

void View::trim() {
  quick_.trim();
  pillow_.trim();
  jpeg::trim(aside_);
}

PixelRect source_of(std::span<const View> views) noexcept {
  PixelRect all = views.front().source();
  for (const View& view : views.subspan(1)) {
    const PixelRect one = view.source();
    const int right = std::max(all.x + all.width, one.x + one.width);
    const int bottom = std::max(all.y + all.height, one.y + one.height);
    all.x = std::min(all.x, one.x);
    all.y = std::min(all.y, one.y);
    all.width = right - all.x;
    all.height = bottom - all.y;
  }
  return all;
}

int row_span_of(std::span<const View> views) noexcept {
  int span = 1;
  for (const View& view : views) span = std::max(span, view.row_span());
  return span;
}

bool run_views(std::span<View> views, jpeg::RowSource& rows, int left) {
  // Rows above the first that is asked for are gone: the view whose next one is uppermost goes on.
  while (true) {
    View* next = nullptr;
    for (View& view : views)
      if (!view.is_done() && (next == nullptr || view.next_row() < next->next_row())) next = &view;
    if (next == nullptr) break;
    if (!next->step(rows, left)) return false;
  }
  for (View& view : views) view.finish();
  return true;
}

void add_outputs(const ImageView& view, DType dtype, int channels,
                 std::vector<FieldSpec>& outputs) {
  std::vector<std::int64_t> extents;
  if (const int crops = crops_of(view); crops > 0) extents.push_back(crops);
  const auto add = [&](const std::string& name, DType type,
                       std::initializer_list<std::int64_t> inner) {
    std::vector<std::int64_t> all = extents;
    all.insert(all.end(), inner);
    outputs.push_back({name, type, Shape(all)});
  };
  add(view.field, dtype, {view.crop.size().height, view.crop.size().width, channels});
  if (!view.geometry.empty()) add(view.geometry, DType::i32, {kGeometryNumbers});
}

void check_view(std::string_view caller, const ImageView& view) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("{}: {}", caller, what));
  };
  if (view.crop.is_empty())
    refuse("there is no crop: give one, such as crop = random_resized_crop(224)");
  if (view.count < 0 || view.count > kMostCrops)
    refuse(fmt::format("count is 0, or up to {} crops, found {}", kMostCrops, view.count));
  if (view.count != 0 && view.crop.parts() != 0)
    refuse(fmt::format("{} makes {} crops: leave out the count", view.crop.to_string(),
                       view.crop.parts()));
  if (!(view.flip >= 0 && view.flip <= 1))
    refuse(fmt::format("flip is a probability between 0 and 1, found {}", view.flip));
  if (!view.geometry.empty() && view.geometry == view.field)
    refuse(fmt::format("geometry cannot be named '{}' like the image: choose another name",
                       view.geometry));
}

void check_fill(std::string_view caller, const Crop& crop, int channels) {
  const Color fill = fill_of(crop);
  if (channels == 1 && fill != Color(fill.red))
    throw std::invalid_argument(
        fmt::format("{}: images of one channel cannot have a fill of three levels, ({}, {}, {}): "
                    "give one, as in fill = 114",
                    caller, fill.red, fill.green, fill.blue));
}

}  // namespace penstock::transform
