// sequence/by_aspect: batches of images of similar aspects, each batch of one shape.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <penstock/core/enum_names.hpp>
#include <penstock/core/geometry.hpp>
#include <penstock/core/range.hpp>

namespace penstock {

/// What becomes of an image that ByAspectOptions::most_cut and most_enlarged leave no bucket for.
enum class UnfitImages : std::uint8_t {
  refuse,  ///< there may be none: the call that makes the plan says which one it is
  drop,    ///< it is in no batch
};
template <>
struct EnumNames<UnfitImages> {
  static constexpr std::pair<UnfitImages, const char*> kNames[] = {{UnfitImages::refuse, "refuse"},
                                                                   {UnfitImages::drop, "drop"}};
};

/// For Dataset::batch_by_aspect.
struct ByAspectOptions {
  /// Of the images of a batch, one for each bucket, 1 to 4096 of them: aspect_shapes() makes the usual ones. An image
  /// is in the bucket whose shape cuts the least of it away, where it is resized so that it just covers the shape: that
  /// of the nearest aspect, by the quotient of the two. Of several the first.
  std::vector<ImageSize> shapes;
  /// Pixels of a global batch at the most: a batch of bucket k has as many rows as its shape goes into that, rounded
  /// down to a multiple of `multiple`.
  std::optional<std::uint64_t> pixels{};
  /// Instead of `pixels`: rows of a global batch, one number a bucket.
  std::vector<std::uint64_t> rows{};
  std::uint64_t multiple = 1;  ///< as in ByLengthOptions
  /// Height and width of each record of the source, upright: what image_sizes() reads. One of 0x0 is in no batch.
  std::vector<ImageSize> sizes{};

  /// The most share of an image's pixels that may be cut away, 0 to 1.
  std::optional<double> most_cut{};
  /// The most that an image may be enlarged to cover its shape, in each direction: with 1 none is. A shape for which it
  /// would be enlarged more is not its bucket, also where its aspect is the nearest: smaller shapes behind the others
  /// take small images.
  std::optional<double> most_enlarged{};
  UnfitImages unfit = UnfitImages::refuse;

  /// A random order of the samples within each bucket, and of the batches of all buckets. False: by bucket.
  bool shuffle = true;
  std::optional<std::uint64_t> seed{};  ///< as in ShuffleOptions
  bool reshuffle_each_epoch = true;     ///< new batches each epoch, or the same
};

template <class Visitor>
void visit_fields(Visitor& visit, ByAspectOptions& options) {
  // The sizes are a list of the plan: a long one lies beside it.
  visit.required("shapes", options.shapes);
  visit("pixels", options.pixels);
  visit("rows", options.rows);
  visit("multiple", options.multiple);
  visit("most_cut", options.most_cut);
  visit("most_enlarged", options.most_enlarged);
  visit("unfit", options.unfit);
  visit("shuffle", options.shuffle);
  visit("seed", options.seed);
  visit("reshuffle_each_epoch", options.reshuffle_each_epoch);
}

/// What came of sorting images by aspect.
struct ByAspectSummary {
  struct Bucket {
    ImageSize shape;
    std::uint64_t rows = 0;  ///< of a full global batch
    std::uint64_t samples = 0;
    double cut_share = 0;  ///< of the pixels of its images
  };
  std::vector<Bucket> buckets;
  std::uint64_t batches = 0;  ///< of an epoch
  std::uint64_t samples = 0;  ///< in them
  std::uint64_t dropped =
      0;  ///< samples in none: of 0x0, or by UnfitImages::drop, and in each epoch others by Remainder::drop
  double cut_share =
      0;  ///< of the pixels of all sorted images, cut away where they cover their shapes
};

struct AspectShapesOptions {
  std::uint64_t pixels = 1024 * 1024;  ///< of a shape at the most
  int multiple = 64;                   ///< of which height and width are multiples
  Range ratio{0.5, 2};                 ///< width over height
};

/// Shapes of about the same number of pixels, from the highest to the widest: for each width, and for each height, the
/// largest other side.
///
/// Errors  std::invalid_argument  no such shape, or more than 4096 of them; a range that is empty or not positive
/// Source  the buckets of NovelAI's diffusion (2022), as kohya's sd-scripts makes them (make_bucket_resolutions)
[[nodiscard]] std::vector<ImageSize> aspect_shapes(const AspectShapesOptions& options = {});

}  // namespace penstock
