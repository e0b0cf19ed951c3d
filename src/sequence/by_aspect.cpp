#include "src/sequence/by_aspect.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/order/bucket_sort.hpp"
#include "src/sequence/bucket_rows.hpp"
#include "src/sequence/row_table.hpp"

namespace penstock {

namespace {

constexpr const char* kVerb = "batch_by_aspect";

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", kVerb, what));
}

std::string text_of(ImageSize size) { return fmt::format("{}x{}", size.height, size.width); }

std::uint64_t pixels_of(ImageSize size) {
  return static_cast<std::uint64_t>(size.height) * static_cast<std::uint64_t>(size.width);
}

std::uint64_t pixels_of(ImageSize size, double share) {
  return static_cast<std::uint64_t>(static_cast<double>(pixels_of(size)) * share);
}

void check_shapes(const std::vector<ImageSize>& shapes) {
  if (shapes.empty())
    refuse(
        "it needs shapes, the sizes of the batches' images: aspect_shapes() makes the usual ones");
  if (shapes.size() > order::kMostBuckets)
    refuse(fmt::format("expected at most {} shapes, found {}", order::kMostBuckets, shapes.size()));
  std::set<std::pair<int, int>> seen;
  for (const ImageSize shape : shapes) {
    if (shape.height < 1 || shape.width < 1)
      refuse(fmt::format("a shape has at least 1x1 pixels, found {}", text_of(shape)));
    if (!seen.emplace(shape.height, shape.width).second)
      refuse(fmt::format("no two shapes are the same, found {} twice", text_of(shape)));
  }
}

void check_sizes(const Source& source, std::span<const ImageSize> sizes) {
  if (sizes.size() != source.size())
    refuse(
        fmt::format("sizes has height and width of each of the {} records of the source, found "
                    "{}: image_sizes() reads them",
                    source.size(), sizes.size()));
  const auto wrong = std::ranges::find_if(sizes, [](ImageSize size) {
    return (size.height < 1 || size.width < 1) && size != ImageSize();
  });
  if (wrong != sizes.end())
    refuse(fmt::format("sizes are 1x1 or more, or 0x0 where there is no image, found {} of {}",
                       text_of(*wrong),
                       source.location(static_cast<std::uint64_t>(wrong - sizes.begin()))));
}

sequence::BucketRows rows_asked(const ByAspectOptions& options) {
  sequence::BucketRows asked{.verb = kVerb,
                             .unit = "pixels",
                             .buckets = "shapes",
                             .most = options.pixels,
                             .rows = options.rows,
                             .multiple = options.multiple,
                             .costs = {}};
  for (const ImageSize shape : options.shapes) asked.costs.push_back(pixels_of(shape));
  return asked;
}

// What of an image is left where it just covers a shape.
double share_kept(ImageSize image, ImageSize shape) {
  const double wide = static_cast<double>(image.width) * shape.height;
  const double high = static_cast<double>(image.height) * shape.width;
  return std::min(wide, high) / std::max(wide, high);
}

double enlargement(ImageSize image, ImageSize shape) {
  return std::max(static_cast<double>(shape.width) / image.width,
                  static_cast<double>(shape.height) / image.height);
}

// The bucket of an image.
struct Choice {
  std::uint16_t bucket = order::kNoBucket;
  double kept = 0;
};

class Choosing {
 public:
  Choosing(const Source& source, const ByAspectOptions& options)
      : source_(source), options_(options) {}

  [[nodiscard]] Choice choose(std::uint64_t number, ImageSize image) const {
    if (image == ImageSize()) return {};
    Choice best;
    for (std::size_t k = 0; k < options_.shapes.size(); ++k) {
      const ImageSize shape = options_.shapes[k];
      if (options_.max_upscale && enlargement(image, shape) > *options_.max_upscale) continue;
      const double kept = share_kept(image, shape);
      if (kept > best.kept) best = {.bucket = static_cast<std::uint16_t>(k), .kept = kept};
    }
    const bool fits = best.kept > 0 &&
                      !(options_.max_crop_fraction && 1 - best.kept > *options_.max_crop_fraction);
    if (fits) return best;
    if (options_.unmatched == UnmatchedImages::drop) return {};
    throw Error(fmt::format(
        "{}: {} has {} pixels (height x width), {}, or let unmatched be drop", kVerb,
        source_.location(number), text_of(image),
        best.kept > 0
            ? fmt::format(
                  "of which {} cuts {:.3g} away, and max_crop_fraction is {}: add a shape, raise "
                  "max_crop_fraction",
                  text_of(options_.shapes[best.bucket]), 1 - best.kept, *options_.max_crop_fraction)
            : fmt::format("which every shape enlarges more than {} times: add a smaller shape, "
                          "raise max_upscale",
                          *options_.max_upscale)));
  }

 private:
  const Source& source_;
  const ByAspectOptions& options_;
};

// Pixels of the images of a bucket, and of what is left of them.
struct Pixels {
  std::atomic<std::uint64_t> all = 0;
  std::atomic<std::uint64_t> kept = 0;
};

double share_cut(std::uint64_t all, std::uint64_t kept) {
  return all == 0 ? 0 : 1 - static_cast<double>(kept) / static_cast<double>(all);
}

BucketSummary summary_of(const ByAspectOptions& options, const order::BucketTable& table,
                         std::uint64_t all_samples, const std::vector<Pixels>& pixels) {
  BucketSummary summary{.buckets = {},
                        .batches = table.batches(),
                        .samples = table.samples(),
                        .dropped = all_samples - table.samples()};
  std::uint64_t all = 0;
  std::uint64_t kept = 0;
  for (std::size_t k = 0; k < options.shapes.size(); ++k) {
    summary.buckets.push_back({.shape = options.shapes[k],
                               .rows = table.rows(k),
                               .samples = table.size(k),
                               .crop_fraction = share_cut(pixels[k].all, pixels[k].kept)});
    all += pixels[k].all;
    kept += pixels[k].kept;
  }
  summary.crop_fraction = share_cut(all, kept);
  return summary;
}

}  // namespace

namespace sequence {

void check(const ByAspectOptions& options) {
  check_shapes(options.shapes);
  check(rows_asked(options));
  if (options.max_crop_fraction &&
      !(*options.max_crop_fraction >= 0 && *options.max_crop_fraction <= 1))
    refuse(fmt::format("max_crop_fraction is a fraction of an image, from 0 to 1, found {}",
                       *options.max_crop_fraction));
  if (options.max_upscale && !(*options.max_upscale > 0 && std::isfinite(*options.max_upscale)))
    refuse(fmt::format("max_upscale is a factor above 0, such as 1 or 1.5, found {}",
                       *options.max_upscale));
}

std::vector<std::uint64_t> rows_of(const ByAspectOptions& options) {
  return rows_of(rows_asked(options));
}

Sorted sort_by_aspect(const Source& source, const order::Order& order,
                      const ByAspectOptions& options, std::span<const ImageSize> sizes,
                      bool drops_last) {
  check(options);
  check_sizes(source, sizes);
  const Choosing choosing(source, options);
  std::vector<Pixels> pixels(options.shapes.size());
  std::atomic<std::uint64_t> hash = 0;
  const auto find = [&](std::uint64_t first, std::span<const SampleId> samples,
                        std::span<std::uint16_t> buckets) {
    std::vector<std::uint64_t> packed(samples.size());
    for (std::size_t k = 0; k < samples.size(); ++k) {
      const ImageSize image = sizes[samples[k].number];
      packed[k] =
          static_cast<std::uint64_t>(image.height) << 32 | static_cast<std::uint64_t>(image.width);
      const Choice choice = choosing.choose(samples[k].number, image);
      buckets[k] = choice.bucket;
      if (choice.bucket == order::kNoBucket) continue;
      pixels[choice.bucket].all += pixels_of(image);
      pixels[choice.bucket].kept += pixels_of(image, choice.kept);
    }
    hash += hash_lengths(first, packed);
  };
  auto table = order::sort_into_buckets(order, rows_of(options), drops_last, find);
  BucketSummary summary = summary_of(options, *table, order.size().value(), pixels);
  return {.table = std::move(table), .summary = std::move(summary), .hash = hash};
}

}  // namespace sequence

std::vector<ImageSize> aspect_shapes(const AspectShapesOptions& options) {
  const auto refuse_shapes = [](const std::string& what) {
    throw std::invalid_argument("aspect_shapes: " + what);
  };
  const std::uint64_t pixels = options.pixels;
  const auto multiple = options.multiple;
  const Range& ratio = options.ratio;
  if (multiple < 1) refuse_shapes(fmt::format("multiple is 1 or more, found {}", multiple));
  if (!(ratio.low > 0 && ratio.low <= ratio.high && std::isfinite(ratio.high)))
    refuse_shapes(fmt::format("ratio is a range above 0, width over height, found [{}, {}]",
                              ratio.low, ratio.high));
  constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 26;
  const auto unit = static_cast<std::uint64_t>(multiple);
  if (pixels > kMostPixels || pixels / unit < unit)
    refuse_shapes(fmt::format("pixels are those of a shape, from {0}x{0} to {1} of them, found {2}",
                              multiple, kMostPixels, pixels));
  const auto is_higher = [](ImageSize a, ImageSize b) {
    const auto left = static_cast<std::int64_t>(a.width) * b.height;
    const auto right = static_cast<std::int64_t>(b.width) * a.height;
    return left != right ? left < right : a.width < b.width;
  };
  std::set<ImageSize, decltype(is_higher)> shapes(is_higher);
  const auto add = [&](ImageSize shape) {
    const double aspect = static_cast<double>(shape.width) / shape.height;
    if (aspect >= ratio.low && aspect <= ratio.high) shapes.insert(shape);
  };
  for (std::uint64_t side = unit; side <= pixels / unit; side += unit) {
    const int other = static_cast<int>(pixels / side / unit * unit);
    add({static_cast<int>(side), other});
    add({other, static_cast<int>(side)});
    if (shapes.size() > order::kMostBuckets)
      refuse_shapes(
          fmt::format("there are more than {} such shapes: raise multiple, or narrow ratio",
                      order::kMostBuckets));
  }
  if (shapes.empty())
    refuse_shapes(
        fmt::format("no shape of multiples of {} has a ratio from {} to {}: widen it, or "
                    "lower multiple",
                    multiple, ratio.low, ratio.high));
  return {shapes.begin(), shapes.end()};
}

}  // namespace penstock
