#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <penstock/transform/crop.hpp>

#include "src/core/call_text.hpp"
#include "src/core/exact_math.hpp"
#include "src/core/json_fields.hpp"
#include "src/transform/color.hpp"
#include "src/transform/crops.hpp"

namespace penstock {

namespace {

constexpr int kAttempts = 10;  // torchvision's

void check_size(const char* crop, ImageSize size) {
  if (size.height < 1 || size.width < 1)
    throw std::invalid_argument(fmt::format("{}: a crop has at least 1x1 pixels, found {}x{}", crop,
                                            size.height, size.width));
}

void check_range(const char* crop, const char* name, const Range& range, double most) {
  constexpr double kLeast = 1e-9;
  if (!(range.low >= kLeast && range.low <= range.high && range.high <= most))
    throw std::invalid_argument(fmt::format("{}: {} must be a range above 0{}, found [{}, {}]",
                                            crop, name, most < 1e9 ? " up to 1" : "", range.low,
                                            range.high));
}

void check_probability(const char* crop, const char* name, double value) {
  if (!(value >= 0 && value <= 1))
    throw std::invalid_argument(
        fmt::format("{}: {} is a probability from 0 to 1, found {}", crop, name, value));
}

void check_pixels(const char* crop, const char* name, const Range& range) {
  constexpr double kMostPixels = 1 << 20;
  if (range.low >= 1 && range.low <= range.high && range.high <= kMostPixels &&
      std::floor(range.low) == range.low && std::floor(range.high) == range.high)
    return;
  throw std::invalid_argument(
      fmt::format("{}: {} are two numbers of pixels, such as [480, 800], "
                  "found [{}, {}]",
                  crop, name, range.low, range.high));
}

double round_half_up(double value) { return std::floor(value + 0.5); }

// As Python's round().
double round_half_even(double value) {
  const double below = std::floor(value);
  const double part = value - below;
  if (part != 0.5) return part < 0.5 ? below : below + 1;
  return std::fmod(below, 2) == 0 ? below : below + 1;
}

// One direction of an image, and of a sample.
struct Side {
  int image = 0;
  int sample = 0;
};

// The image resized to `resized` pixels, of which the sample shows those from `at` on. Negative: the
// sample begins before the image.
struct Shown {
  std::int64_t resized = 0;
  std::int64_t at = 0;
};

Placement place(const Side& width, const Shown& across, const Side& height, const Shown& down) {
  Placement placement;
  const auto fit = [](const Side& side, const Shown& shown, double& from, double& extent,
                      int& place_from, int& place_extent) {
    const std::int64_t begin = std::max<std::int64_t>(shown.at, 0);
    const std::int64_t end = std::min(shown.at + side.sample, shown.resized);
    const auto source = [&](std::int64_t pixels) {
      return static_cast<double>(pixels) * side.image / static_cast<double>(shown.resized);
    };
    from = source(begin);
    extent = source(end - begin);
    place_from = static_cast<int>(begin - shown.at);
    place_extent = static_cast<int>(end - begin);
  };
  fit(width, across, placement.region.x, placement.region.width, placement.place.x,
      placement.place.width);
  fit(height, down, placement.region.y, placement.region.height, placement.place.y,
      placement.place.height);
  return placement;
}

Placement fill_sample(const Region& region, ImageSize size) {
  return {.region = region, .place = {0, 0, size.width, size.height}, .cut = region};
}

Region centered(double width, double height, double image_width, double image_height) {
  return {.x = std::floor((image_width - width) / 2),
          .y = std::floor((image_height - height) / 2),
          .width = width,
          .height = height};
}

Region random_region(const Range& scale, const Range& ratio, double image_width,
                     double image_height, Random& random) {
  const double log_low = core::exact_log2(ratio.low);
  const double log_high = core::exact_log2(ratio.high);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double area = image_width * image_height * random.uniform(scale.low, scale.high);
    const double aspect = core::exact_exp2(random.uniform(log_low, log_high));
    const double width = round_half_up(std::sqrt(area * aspect));
    const double height = round_half_up(std::sqrt(area / aspect));
    if (width < 1 || width > image_width || height < 1 || height > image_height) continue;
    const auto below = [&](double places) {
      return static_cast<double>(random.below(static_cast<std::uint64_t>(places)));
    };
    const double y = below(image_height - height + 1);
    const double x = below(image_width - width + 1);
    return {.x = x, .y = y, .width = width, .height = height};
  }
  const double aspect = image_width / image_height;
  double width = image_width;
  double height = image_height;
  if (aspect < ratio.low) height = std::clamp(round_half_up(width / ratio.low), 1.0, image_height);
  if (aspect > ratio.high) width = std::clamp(round_half_up(height * ratio.high), 1.0, image_width);
  return centered(width, height, image_width, image_height);
}

// In the middle of as many pixels.
Shown middle(std::int64_t resized, const Side& side) {
  const double margin = static_cast<double>(resized - side.sample) / 2;
  return {.resized = resized, .at = static_cast<std::int64_t>(round_half_even(margin))};
}

// The longer side is what its exact quotient is cut to.
Shown center(const Side& side, int resize, int shorter) {
  return middle(std::int64_t{resize} * side.image / shorter, side);
}

// The middle, or a corner of that image.
Shown five(const Side& side, int resize, int shorter, bool is_middle, bool is_last) {
  Shown shown = center(side, resize, shorter);
  if (!is_middle) shown.at = is_last ? shown.resized - side.sample : 0;
  return shown;
}

// Of the mirrored image, what lies on the right in the image as it is lies on the left.
Placement place_five_crops(int resize, const Side& width, const Side& height, int part) {
  constexpr int kCrops = 5;
  constexpr int kMiddle = 4;
  const int shorter = std::min(width.image, height.image);
  const int of_five = part % kCrops;
  const bool is_middle = of_five == kMiddle;
  Shown across = five(width, resize, shorter, is_middle, of_five % 2 == 1);
  const bool mirrored = part >= kCrops;
  if (mirrored) across.at = across.resized - width.sample - across.at;
  Placement placement =
      place(width, across, height, five(height, resize, shorter, is_middle, of_five >= 2));
  placement.mirrored = mirrored;
  return placement;
}

// The largest scale at which the whole image fits.
double largest_fit(const Side& width, const Side& height) {
  return std::min(static_cast<double>(height.sample) / height.image,
                  static_cast<double>(width.sample) / width.image);
}

// What the other side's scale makes of one that has to be as long as the sample at the least.
std::int64_t scaled_with(const Side& other, const Side& side) {
  return std::max<std::int64_t>(std::int64_t{other.sample} * side.image / other.image, side.sample);
}

// The direction that covers the sample exactly is scaled more; the other becomes longer than the sample, or as long.
Placement place_cover(CropPosition position, const Side& width, const Side& height,
                      Random& random) {
  const std::int64_t across = scaled_with(height, width);
  const std::int64_t down = scaled_with(width, height);
  const auto shown = [&](std::int64_t resized, const Side& side) -> Shown {
    if (position == CropPosition::center) return middle(resized, side);
    const auto offsets = static_cast<std::uint64_t>(resized - side.sample + 1);
    return {.resized = resized, .at = static_cast<std::int64_t>(random.below(offsets))};
  };
  const Shown rows = shown(down, height);
  return place(width, shown(across, width), height, rows);
}

Shown box(const Side& side, double scale) {
  const auto resized =
      std::max<std::int64_t>(static_cast<std::int64_t>(round_half_even(side.image * scale)), 1);
  return {.resized = resized, .at = -((side.sample - resized) / 2)};
}

// The image as it is, from a random offset on; it lies behind `padding` pixels.
Shown slide(const Side& side, int padding, Random& random) {
  const std::int64_t padded = std::int64_t{side.image} + 2 * std::int64_t{padding};
  const std::uint64_t offsets = static_cast<std::uint64_t>(padded - side.sample + 1);
  return {.resized = side.image, .at = static_cast<std::int64_t>(random.below(offsets)) - padding};
}

Result<Placement> place_random_crop(const RandomCropOptions& options, const Side& width,
                                    const Side& height, Random& random) {
  const auto padding = [&](const Side& side) {
    const std::int64_t missing = side.sample - side.image - 2 * std::int64_t{options.padding};
    return options.pad_if_needed && missing > 0 ? options.padding + static_cast<int>(missing)
                                                : options.padding;
  };
  for (const Side& side : {height, width})
    if (side.image + 2 * std::int64_t{padding(side)} < side.sample)
      return Fault{
          .reason = fmt::format(
              "the image of {}x{} pixels (height x width) is smaller than the crop of {}x{}{}: "
              "set pad_if_needed",
              height.image, width.image, height.sample, width.sample,
              options.padding == 0 ? "" : fmt::format(" with {} of padding", options.padding))};
  const Shown down = slide(height, padding(height), random);
  return place(width, slide(width, padding(width), random), height, down);
}

Placement place_scale_jitter(const Range& range, const Side& width, const Side& height,
                             Random& random) {
  const double scale = largest_fit(width, height) * random.uniform(range.low, range.high);
  const double offset = random.uniform();
  const auto shown = [&](const Side& side) -> Shown {
    const auto resized = std::max<std::int64_t>(static_cast<std::int64_t>(side.image * scale), 1);
    const double spare = static_cast<double>(std::max<std::int64_t>(resized - side.sample, 0));
    return {.resized = resized, .at = static_cast<std::int64_t>(spare * offset)};
  };
  return place(width, shown(width), height, shown(height));
}

// An image's sides.
struct Sides {
  std::int64_t width = 0;
  std::int64_t height = 0;
};

// As torchvision's Resize(shorter, max_size=longest); 0: no limit.
Sides resized_to(const Sides& sides, std::int64_t shorter, std::int64_t longest) {
  const bool is_upright = sides.width <= sides.height;
  const std::int64_t given = std::min(sides.width, sides.height);
  std::int64_t longer =
      std::max<std::int64_t>(shorter * (sides.width + sides.height - given) / given, 1);
  if (longest > 0 && longer > longest) {
    shorter = std::max<std::int64_t>(longest * shorter / longer, 1);
    longer = longest;
  }
  return is_upright ? Sides{shorter, longer} : Sides{longer, shorter};
}

// One of low, low + step and so on.
std::int64_t draw_pixels(const Range& range, int step, Random& random) {
  const auto low = static_cast<std::int64_t>(range.low);
  const std::int64_t steps = (static_cast<std::int64_t>(range.high) - low) / step;
  return low +
         step * static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(steps) + 1));
}

// What is cut out of an image: its sides in pixels of the image that was resized for it, and where it lies in the image.
struct Cut {
  Sides part;
  Region region;
};

Cut draw_cut(const ResizeShortestOptions& options, const Sides& image, Random& random) {
  const Sides whole =
      resized_to(image, draw_pixels(options.cut_sides, options.cut_step, random), 0);
  const auto length = [&](std::int64_t side) {
    const Range& sizes = options.cut_size;
    const double most = std::min(sizes.high, static_cast<double>(side));
    return draw_pixels({std::min(sizes.low, most), most}, 1, random);
  };
  Cut cut;
  cut.part.width = length(whole.width);
  cut.part.height = length(whole.height);
  // In whole pixels of the image.
  const auto fit = [&](std::int64_t part, std::int64_t resized, std::int64_t side, double& from,
                       double& extent) {
    const double scale = static_cast<double>(side) / static_cast<double>(resized);
    const auto spare = static_cast<std::uint64_t>(resized - part);
    from = std::min(round_half_up(static_cast<double>(random.below(spare + 1)) * scale),
                    static_cast<double>(side - 1));
    extent = std::clamp(round_half_up(static_cast<double>(part) * scale), 1.0,
                        static_cast<double>(side) - from);
  };
  fit(cut.part.height, whole.height, image.height, cut.region.y, cut.region.height);
  fit(cut.part.width, whole.width, image.width, cut.region.x, cut.region.width);
  return cut;
}

Placement place_resize_shortest(const ResizeShortestOptions& options, const Side& width,
                                const Side& height, Random& random) {
  const Sides image{width.image, height.image};
  Cut cut{.part = image,
          .region = {0, 0, static_cast<double>(width.image), static_cast<double>(height.image)}};
  if (options.cut > 0 && random.uniform() < options.cut) cut = draw_cut(options, image, random);
  const Sides resized =
      resized_to(cut.part, draw_pixels(options.sides, options.step, random), options.longest);
  const auto shown = [&](std::int64_t pixels, const Side& side) -> Shown {
    const std::int64_t spare = std::max<std::int64_t>(pixels - side.sample, 0);
    return {.resized = pixels,
            .at = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(spare) + 1))};
  };
  const Shown down = shown(resized.height, height);
  const Shown across = shown(resized.width, width);
  Placement placement = place({static_cast<int>(cut.region.width), width.sample}, across,
                              {static_cast<int>(cut.region.height), height.sample}, down);
  placement.region.x += cut.region.x;
  placement.region.y += cut.region.y;
  placement.cut = cut.region;
  return placement;
}

// Part of one direction of an image.
struct Span {
  double begin = 0;
  double end = 0;
};

// Around `kept`, which is part of an image's side.
Span draw_around(const Span& kept, double side, Random& random) {
  const double begin = std::floor(kept.begin * random.uniform());
  const double end = std::ceil(kept.end + (side - kept.end) * random.uniform());
  return {begin, std::max(end, begin + 1)};
}

Region draw_safe_part(double erosion, const Side& width, const Side& height,
                      std::span<const Region> boxes, Random& random) {
  const double across = width.image;
  const double down = height.image;
  if (boxes.empty() || erosion >= 1) {
    const double part = random.uniform(1 - erosion, 1);
    const double rows = std::max(std::floor(down * part + 0.5), 1.0);
    const double columns = std::max(std::floor(rows * across / down + 0.5), 1.0);
    const double y = std::floor((down - rows + 1) * random.uniform());
    const double x = std::floor((across - columns + 1) * random.uniform());
    return {.x = x, .y = y, .width = columns, .height = rows};
  }
  Span columns{across, 0};
  Span rows{down, 0};
  for (const Region& box : boxes) {
    columns = {std::min(columns.begin, box.x), std::max(columns.end, box.x + box.width)};
    rows = {std::min(rows.begin, box.y), std::max(rows.end, box.y + box.height)};
  }
  for (Span* const span : {&columns, &rows}) {
    const double margin = (span->end - span->begin) * erosion / 2;
    *span = {span->begin + margin, span->end - margin};
  }
  const Span x = draw_around(columns, across, random);
  const Span y = draw_around(rows, down, random);
  return {.x = x.begin, .y = y.begin, .width = x.end - x.begin, .height = y.end - y.begin};
}

// The sample shows all of `frame`, which lies on the plane of the image and has a part of it at least.
Placement place_frame(const Region& frame, const Side& width, const Side& height) {
  Placement placement;
  const auto fit = [](const Side& side, double at, double extent, double& from, double& length,
                      int& place_from, int& place_extent) {
    from = std::max(at, 0.0);
    length = std::min(at + extent, static_cast<double>(side.image)) - from;
    const double scale = side.sample / extent;
    place_from = std::min(static_cast<int>(round_half_up((from - at) * scale)), side.sample - 1);
    const auto end = static_cast<int>(round_half_up((from + length - at) * scale));
    place_extent = std::max(end - place_from, 1);
  };
  fit(width, frame.x, frame.width, placement.region.x, placement.region.width, placement.place.x,
      placement.place.width);
  fit(height, frame.y, frame.height, placement.region.y, placement.region.height, placement.place.y,
      placement.place.height);
  placement.cut = placement.region;
  return placement;
}

// Where an image lies on a canvas: from there the canvas is seen as part of the image's plane.
Region draw_canvas(const RandomIouCropOptions& options, int width, int height, Random& random) {
  const bool zooms = random.uniform() < options.zoom_out;
  if (!zooms) return {0, 0, static_cast<double>(width), static_cast<double>(height)};
  const double zoom = random.uniform(options.zoom.low, options.zoom.high);
  const double across = std::floor(width * zoom);
  const double down = std::floor(height * zoom);
  const double left = std::floor((across - width) * random.uniform());
  const double top = std::floor((down - height) * random.uniform());
  return {.x = -left, .y = -top, .width = across, .height = down};
}

// One direction of a canvas of twice the sample's size, in pixels of the sample.
struct CanvasLine {
  std::int64_t begin = 0;
  std::int64_t meeting = 0;  // where the images meet
  std::int64_t end = 0;
};

CanvasLine draw_canvas_line(const MosaicOptions& options, double scale, const Side& side,
                            Random& random) {
  const double sample = side.sample;
  const double meeting = sample * random.uniform(0.5, 1.5);
  const double middle = sample * random.uniform(0.5 - options.translate, 0.5 + options.translate);
  const auto shown = [&](double place) {
    return static_cast<std::int64_t>(round_half_even((place - sample) * scale + middle));
  };
  return {.begin = shown(0), .meeting = shown(meeting), .end = shown(2 * sample)};
}

// All images of a sample draw the same numbers.
Placement place_mosaic(const MosaicOptions& options, const Side& width, const Side& height,
                       int number, int images, Random& random) {
  const double scale = random.uniform(options.scale.low, options.scale.high);
  const CanvasLine across = draw_canvas_line(options, scale, width, random);
  const CanvasLine down = draw_canvas_line(options, scale, height, random);
  const double enlarged = largest_fit(width, height) * scale;
  Placement placement;
  // False where the sample shows nothing of it.
  const auto fit = [&](const Side& side, const CanvasLine& line, bool is_last, double& from,
                       double& extent, int& place_from, int& place_extent) {
    const auto resized = std::max<std::int64_t>(
        static_cast<std::int64_t>(round_half_even(side.image * enlarged)), 1);
    std::int64_t at = is_last ? line.meeting : line.meeting - resized;
    if (images == 1) at = (line.begin + line.end - resized) / 2;
    const std::int64_t begin = std::max({at, line.begin, std::int64_t{0}});
    const std::int64_t end = std::min({at + resized, line.end, std::int64_t{side.sample}});
    if (end <= begin) return false;
    const auto source = [&](std::int64_t pixels) {
      return static_cast<double>(pixels) * side.image / static_cast<double>(resized);
    };
    from = source(begin - at);
    extent = source(end - begin);
    place_from = static_cast<int>(begin);
    place_extent = static_cast<int>(end - begin);
    return true;
  };
  const bool shows = fit(width, across, number % 2 == 1, placement.region.x, placement.region.width,
                         placement.place.x, placement.place.width) &&
                     fit(height, down, number / 2 == 1, placement.region.y, placement.region.height,
                         placement.place.y, placement.place.height);
  return shows ? placement : Placement{};
}

double overlap_of(const Region& a, const Region& b) {
  const double width = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
  const double height = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
  if (width <= 0 || height <= 0) return 0;
  const double both = width * height;
  return both / (a.width * a.height + b.width * b.height - both);
}

// The most that a box overlaps whose middle is in the part; below 0: there is none.
double most_overlap(const Region& part, std::span<const Region> boxes) {
  double most = -1;
  for (const Region& box : boxes) {
    const double x = box.x + box.width / 2;
    const double y = box.y + box.height / 2;
    if (x > part.x && x < part.x + part.width && y > part.y && y < part.y + part.height)
      most = std::max(most, overlap_of(box, part));
  }
  return most;
}

Region draw_part(const RandomIouCropOptions& options, const Region& canvas,
                 std::span<const Region> boxes, Random& random) {
  constexpr int kDraws = 100;
  constexpr int kParts = 40;  // torchvision's
  if (boxes.empty()) return canvas;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double least = options.overlaps[random.below(options.overlaps.size())];
    if (least >= 1) return canvas;
    for (int tried = 0; tried < kParts; ++tried) {
      const Range& scale = options.scale;
      const double width = std::floor(canvas.width * random.uniform(scale.low, scale.high));
      const double height = std::floor(canvas.height * random.uniform(scale.low, scale.high));
      if (width < 1 || height < 1) continue;
      if (width < options.ratio.low * height || width > options.ratio.high * height) continue;
      const double x = canvas.x + std::floor((canvas.width - width) * random.uniform());
      const double y = canvas.y + std::floor((canvas.height - height) * random.uniform());
      const Region part{.x = x, .y = y, .width = width, .height = height};
      const double most = most_overlap(part, boxes);
      if (most >= 0 && most >= least) return part;
    }
  }
  return canvas;
}

// ---- what the options may be ----

struct CheckCrop {
  void operator()(const transform::RandomResizedCrop& crop) const {
    check_range(crop.kName, "scale", crop.options.scale, 1);
    check_range(crop.kName, "ratio", crop.options.ratio, 1e9);
  }
  template <class Kind>
  requires std::is_same_v<decltype(Kind::options), CenterCropOptions>
  void operator()(const Kind& crop) const {
    const int resize = crop.options.resize;
    if (resize < std::max(crop.size.height, crop.size.width))
      throw std::invalid_argument(
          fmt::format("{}: the shorter side is resized to {}, which is less than the crop of "
                      "{}x{}: raise resize",
                      crop.kName, resize, crop.size.height, crop.size.width));
  }
  void operator()(const transform::ResizeTo&) const {}
  void operator()(const transform::CoverCrop&) const {}
  void operator()(const transform::Letterbox& crop) const { check_fill_color(crop); }
  void operator()(const transform::RandomCrop& crop) const {
    check_fill_color(crop);
    const int padding = crop.options.padding;
    if (padding < 0 || padding >= std::min(crop.size.height, crop.size.width))
      throw std::invalid_argument(
          fmt::format("random_crop: the padding is 0 or more, and less than the crop of {}x{}, "
                      "which could lie in it altogether, found {}",
                      crop.size.height, crop.size.width, padding));
  }
  void operator()(const transform::ScaleJitter& crop) const {
    check_range(crop.kName, "scale", crop.options.scale, 1e9);
    check_fill_color(crop);
  }
  void operator()(const transform::ResizeShortest& crop) const {
    const ResizeShortestOptions& options = crop.options;
    for (const auto& [name, range] :
         {std::pair("sides", options.sides), std::pair("cut_sides", options.cut_sides),
          std::pair("cut_size", options.cut_size)})
      check_pixels(crop.kName, name, range);
    for (const auto& [name, step] :
         {std::pair("step", options.step), std::pair("cut_step", options.cut_step)})
      if (step < 1)
        throw std::invalid_argument(
            fmt::format("{}: {} is 1 pixel or more, found {}", crop.kName, name, step));
    if (options.longest < 0)
      throw std::invalid_argument(
          fmt::format("{}: longest is a number of pixels, or 0 for any, found {}", crop.kName,
                      options.longest));
    check_probability(crop.kName, "cut", options.cut);
    check_fill_color(crop);
  }
  void operator()(const transform::BoxSafeCrop& crop) const {
    if (!(crop.options.erosion >= 0 && crop.options.erosion <= 1))
      throw std::invalid_argument(fmt::format("{}: erosion is a fraction from 0 to 1, found {}",
                                              crop.kName, crop.options.erosion));
  }
  void operator()(const transform::CopyPaste& crop) const {
    check_range(crop.kName, "scale", crop.options.scale, 1e9);
    check_probability(crop.kName, "share", crop.options.share);
    check_fill_color(crop);
  }
  void operator()(const transform::Mosaic& crop) const {
    check_range(crop.kName, "scale", crop.options.scale, 1e9);
    if (!(crop.options.translate >= 0 && crop.options.translate <= 1))
      throw std::invalid_argument(
          fmt::format("{}: translate is a fraction of the sample's size from 0 to 1, found {}",
                      crop.kName, crop.options.translate));
    check_probability(crop.kName, "mixup", crop.options.mixup);
    check_fill_color(crop);
  }
  void operator()(const transform::RandomIouCrop& crop) const {
    const RandomIouCropOptions& options = crop.options;
    const auto refuse = [&](const std::string& what) {
      throw std::invalid_argument(fmt::format("{}: {}", crop.kName, what));
    };
    if (options.overlaps.empty()) refuse("overlaps needs a number, such as 0.5, and found none");
    for (const double overlap : options.overlaps)
      if (!(overlap >= 0 && overlap <= 1))
        refuse(fmt::format("overlaps are fractions from 0 to 1, found {}", overlap));
    check_range(crop.kName, "scale", options.scale, 1);
    check_range(crop.kName, "ratio", options.ratio, 1e9);
    check_range(crop.kName, "zoom", options.zoom, 1e9);
    if (options.zoom.low < 1)
      refuse(fmt::format("the canvas of zoom is no smaller than the image: 1 at least, found {}",
                         options.zoom.low));
    check_probability(crop.kName, "zoom_out", options.zoom_out);
    check_fill_color(crop);
  }

 private:
  template <class Kind>
  static void check_fill_color(const Kind& crop) {
    transform::check_color(fmt::format("{}: fill", crop.kName), crop.options.fill);
  }
};

// ---- where each kind lies ----

struct PlaceCrop {
  Side width;
  Side height;
  Random& random;
  int part = 0;
  std::span<const Region> boxes{};
  int images = 1;

  Result<Placement> operator()(const transform::RandomResizedCrop& crop) const {
    return fill_sample(
        random_region(crop.options.scale, crop.options.ratio, width.image, height.image, random),
        crop.size);
  }
  Result<Placement> operator()(const transform::CenterCrop& crop) const {
    const int shorter = std::min(width.image, height.image);
    return place(width, center(width, crop.options.resize, shorter), height,
                 center(height, crop.options.resize, shorter));
  }
  Result<Placement> operator()(const transform::FiveCrops& crop) const {
    return place_five_crops(crop.options.resize, width, height, part);
  }
  Result<Placement> operator()(const transform::TenCrops& crop) const {
    return place_five_crops(crop.options.resize, width, height, part);
  }
  Result<Placement> operator()(const transform::ResizeTo& crop) const {
    return Placement{
        .region = {0, 0, static_cast<double>(width.image), static_cast<double>(height.image)},
        .place = {0, 0, crop.size.width, crop.size.height}};
  }
  Result<Placement> operator()(const transform::Letterbox&) const {
    const double scale = largest_fit(width, height);
    return place(width, box(width, scale), height, box(height, scale));
  }
  Result<Placement> operator()(const transform::CoverCrop& crop) const {
    return place_cover(crop.options.position, width, height, random);
  }
  Result<Placement> operator()(const transform::RandomCrop& crop) const {
    return place_random_crop(crop.options, width, height, random);
  }
  Result<Placement> operator()(const transform::ScaleJitter& crop) const {
    return place_scale_jitter(crop.options.scale, width, height, random);
  }
  Result<Placement> operator()(const transform::CopyPaste& crop) const {
    return place_scale_jitter(crop.options.scale, width, height, random);
  }
  Result<Placement> operator()(const transform::ResizeShortest& crop) const {
    return place_resize_shortest(crop.options, width, height, random);
  }
  Result<Placement> operator()(const transform::BoxSafeCrop& crop) const {
    return fill_sample(draw_safe_part(crop.options.erosion, width, height, boxes, random),
                       crop.size);
  }
  Result<Placement> operator()(const transform::RandomIouCrop& crop) const {
    const Region canvas = draw_canvas(crop.options, width.image, height.image, random);
    return place_frame(draw_part(crop.options, canvas, boxes, random), width, height);
  }
  Result<Placement> operator()(const transform::Mosaic& crop) const {
    return place_mosaic(crop.options, width, height, part, images, random);
  }
};

}  // namespace

Region Placement::frame(ImageSize size) const noexcept {
  const double across = static_cast<double>(size.width) / place.width;
  const double down = static_cast<double>(size.height) / place.height;
  return {.x = region.x - region.width * place.x / place.width,
          .y = region.y - region.height * place.y / place.height,
          .width = region.width * across,
          .height = region.height * down};
}
Result<Placement> choose_placement(const Crop& crop, int image_width, int image_height,
                                   Random& random, int part, std::span<const Region> boxes,
                                   int images) {
  if (crop.is_empty())
    throw std::invalid_argument("there is no crop: give one, such as random_resized_crop(224)");
  if (images != 1 &&
      (images != transform::Mosaic::kImages || transform::mosaic_of(crop) == nullptr))
    throw std::invalid_argument(
        fmt::format("{} is not made of {} images", crop.to_string(), images));
  if (part < 0 || part >= std::max({crop.parts(), images, 1}))
    throw std::invalid_argument(fmt::format("{} has no part {}", crop.to_string(), part));
  if (image_width < 1 || image_height < 1)
    throw std::invalid_argument(
        fmt::format("an image has at least 1x1 pixels, found {}x{}", image_width, image_height));
  return std::visit(PlaceCrop{.width = {.image = image_width, .sample = crop.size().width},
                              .height = {.image = image_height, .sample = crop.size().height},
                              .random = random,
                              .part = part,
                              .boxes = boxes,
                              .images = images},
                    crop.kind()->value);
}

// ---- crops as values ----

Crop transform::make_crop(AnyCrop kind) {
  std::visit(
      [](const auto& crop) {
        check_size(crop.kName, crop.size);
        CheckCrop{}(crop);
      },
      kind);
  return Crop(std::make_shared<const CropKind>(CropKind{std::move(kind)}));
}

bool transform::is_random(const Crop& crop) noexcept {
  if (crop.is_empty()) return false;
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.is_random(); }) return kind.is_random();
        return false;
      },
      crop.kind()->value);
}

bool transform::is_in_corner(const Crop& crop) noexcept {
  if (crop.is_empty()) return false;
  return std::visit(
      [](const auto& kind) {
        return requires { kind.kIsInCorner; };
      },
      crop.kind()->value);
}

bool transform::needs_boxes(const Crop& crop) noexcept {
  if (crop.is_empty()) return false;
  return std::visit(
      [](const auto& kind) {
        return requires { kind.kNeedsBoxes; };
      },
      crop.kind()->value);
}

int transform::images_of(const Crop& crop) noexcept {
  if (crop.is_empty()) return 1;
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.images(); }) return kind.images();
        return 1;
      },
      crop.kind()->value);
}

const MosaicOptions* transform::mosaic_of(const Crop& crop) noexcept {
  const auto* const kind = crop.is_empty() ? nullptr : std::get_if<Mosaic>(&crop.kind()->value);
  return kind == nullptr ? nullptr : &kind->options;
}

const CopyPasteOptions* transform::copy_paste_of(const Crop& crop) noexcept {
  const auto* const kind = crop.is_empty() ? nullptr : std::get_if<CopyPaste>(&crop.kind()->value);
  return kind == nullptr ? nullptr : &kind->options;
}

Color transform::fill_of(const Crop& crop) noexcept {
  if (crop.is_empty()) return {};
  return std::visit(
      [](const auto& kind) -> Color {
        if constexpr (requires { kind.options.fill; }) return kind.options.fill;
        return {};
      },
      crop.kind()->value);
}

ImageSize Crop::size() const noexcept {
  if (is_empty()) return {};
  return std::visit([](const auto& kind) { return kind.size; }, kind_->value);
}

int Crop::parts() const noexcept {
  if (is_empty()) return 0;
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.kParts; }) return kind.kParts;
        return 0;
      },
      kind_->value);
}

std::string Crop::to_string() const { return is_empty() ? "no crop" : core::value_text(*this); }

std::string Crop::to_json() const { return core::dump_json(core::write_json(*this)); }

Crop Crop::from_json(std::string_view json) {
  constexpr const char* kWhere = "the crop";
  Crop crop;
  core::read_json(core::parse_json(json, kWhere), crop, kWhere);
  return crop;
}

bool operator==(const Crop& a, const Crop& b) {
  return a.kind_ == b.kind_ || core::write_json(a) == core::write_json(b);
}

Crop random_resized_crop(ImageSize size, RandomResizedCropOptions options) {
  return transform::make_crop(transform::RandomResizedCrop{size, options});
}
Crop center_crop(ImageSize size, CenterCropOptions options) {
  return transform::make_crop(transform::CenterCrop{size, options});
}
Crop five_crops(ImageSize size, CenterCropOptions options) {
  return transform::make_crop(transform::FiveCrops{size, options});
}
Crop ten_crops(ImageSize size, CenterCropOptions options) {
  return transform::make_crop(transform::TenCrops{size, options});
}
Crop resize_to(ImageSize size) { return transform::make_crop(transform::ResizeTo{size}); }
Crop letterbox(ImageSize size, LetterboxOptions options) {
  return transform::make_crop(transform::Letterbox{size, options});
}
Crop cover_crop(ImageSize size, CoverCropOptions options) {
  return transform::make_crop(transform::CoverCrop{size, options});
}
Crop random_crop(ImageSize size, RandomCropOptions options) {
  return transform::make_crop(transform::RandomCrop{size, options});
}
Crop scale_jitter(ImageSize size, ScaleJitterOptions options) {
  return transform::make_crop(transform::ScaleJitter{size, options});
}
Crop random_iou_crop(ImageSize size, RandomIouCropOptions options) {
  return transform::make_crop(transform::RandomIouCrop{size, std::move(options)});
}
Crop resize_shortest(ImageSize size, ResizeShortestOptions options) {
  return transform::make_crop(transform::ResizeShortest{size, options});
}
Crop box_safe_crop(ImageSize size, BoxSafeCropOptions options) {
  return transform::make_crop(transform::BoxSafeCrop{size, options});
}
Crop copy_paste(ImageSize size, CopyPasteOptions options) {
  return transform::make_crop(transform::CopyPaste{size, options});
}
Crop mosaic(ImageSize size, MosaicOptions options) {
  return transform::make_crop(transform::Mosaic{size, options});
}

}  // namespace penstock
