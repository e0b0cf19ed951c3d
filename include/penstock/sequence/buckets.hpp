// sequence/buckets: batches of samples of similar lengths, each padded to one length, and of images of similar aspects, each
// of one shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>

namespace PENSTOCK_EXPORT penstock {

/// What is done with a sample that is longer than the last bucket.
enum class LongSamples : std::uint8_t {
  error,     ///< an Error that names the first one
  truncate,  ///< it is in the last bucket, and all padded fields are cut off at its edge
  drop,      ///< it is in no batch
};
template <>
struct EnumNames<LongSamples> {
  static constexpr std::pair<LongSamples, const char*> kNames[] = {
      {LongSamples::error, "error"},
      {LongSamples::truncate, "truncate"},
      {LongSamples::drop, "drop"}};
};

/// For Dataset::batch_by_length.
struct ByLengthOptions {
  /// bucket k has the samples that are longer than edges[k - 1] and at most as long as edges[k]; those of a batch are padded
  /// to edges[k]
  std::vector<std::int64_t> edges;
  /// at most so many tokens in a global batch, with its padding: a batch of bucket k has tokens / edges[k] rows, rounded down
  /// to a multiple of `multiple`
  std::optional<std::uint64_t> tokens{};
  /// instead of `tokens`: the rows of a global batch, one number for each bucket
  std::vector<std::uint64_t> rows{};
  /// the number of replicas, or a multiple of it, so that each has as many rows of a full batch as the others; for runs
  /// that are resumed with other numbers of replicas a multiple of all of them, since the batches depend on it; a bucket's
  /// last batch has the rest, and some replicas may have no row of it: where each must have as many, `remainder` is `drop` or
  /// `pad`
  std::uint64_t multiple = 1;

  /// A field that is padded.
  struct Field {
    std::string name;
    double value = 0;  ///< that it is padded with

    friend bool operator==(const Field&, const Field&) = default;
  };
  /// all fields of shape [?, ...], which are padded, with the numbers to pad with; the first one's length is that of the
  /// sample, as its source has it, before any map; of a zip the source that has the field
  std::vector<Field> fields = {{.name = "tokens"}};
  /// a field i64 [] after the first padded one, with the length before padding; "" for none
  std::string lengths = "lengths";
  /// what is done with a sample that is longer than the last edge
  LongSamples long_samples = LongSamples::error;

  /// a random order of the samples within each bucket, and of the batches of all buckets; otherwise by length, the shortest
  /// first
  bool shuffle = true;
  std::optional<std::uint64_t> seed{};  ///< as in ShuffleOptions, here and below
  bool reshuffle_each_epoch = true;
};

template <class Visitor>
void visit_fields(Visitor& visit, ByLengthOptions::Field& field) {
  visit.required("name", field.name, {.is_key = true});
  visit("value", field.value);
}

template <class Visitor>
void visit_fields(Visitor& visit, ByLengthOptions& options) {
  visit.required("edges", options.edges);
  visit("tokens", options.tokens);
  visit("rows", options.rows);
  visit("multiple", options.multiple);
  visit("fields", options.fields);
  visit("lengths", options.lengths);
  visit("long_samples", options.long_samples);
  visit("shuffle", options.shuffle);
  visit("seed", options.seed);
  visit("reshuffle_each_epoch", options.reshuffle_each_epoch);
}

/// What is done with an image that no bucket may have, by ByAspectOptions::max_crop_fraction and max_upscale.
enum class UnmatchedImages : std::uint8_t {
  error,  ///< an Error that names the first one
  drop,   ///< it is in no batch
};
template <>
struct EnumNames<UnmatchedImages> {
  static constexpr std::pair<UnmatchedImages, const char*> kNames[] = {
      {UnmatchedImages::error, "error"}, {UnmatchedImages::drop, "drop"}};
};

/// For Dataset::batch_by_aspect.
struct ByAspectOptions {
  /// (height, width) of the images of each bucket, 1 to 4096 of them; aspect_shapes() makes the usual ones; an image is in
  /// the bucket whose shape cuts the least of it away, where it is resized so that it just covers the shape: that of the
  /// nearest aspect, by the quotient of the two; of several the first
  std::vector<ImageSize> shapes;
  /// at most so many pixels in a global batch: a batch of bucket k has pixels / (height * width) rows, rounded down to a
  /// multiple of `multiple`
  std::optional<std::uint64_t> pixels{};
  /// instead of `pixels`: the rows of a global batch, one number for each bucket
  std::vector<std::uint64_t> rows{};
  std::uint64_t multiple = 1;  ///< as in ByLengthOptions
  /// (height, width) of each record of the source, upright, as image_sizes() reads them; one of (0, 0) is in no batch
  std::vector<ImageSize> sizes{};

  /// the largest fraction of an image's pixels that may be cut away, from 0 to 1
  std::optional<double> max_crop_fraction{};
  /// the largest factor by which an image may be enlarged to cover its shape, in each direction; with 1 none is; an image
  /// that would be enlarged more is in a bucket of a smaller shape, also where that has not the nearest aspect
  std::optional<double> max_upscale{};
  /// what is done with an image that these leave no bucket for
  UnmatchedImages unmatched = UnmatchedImages::error;

  /// a random order of the samples within each bucket, and of the batches of all buckets; otherwise by bucket
  bool shuffle = true;
  std::optional<std::uint64_t> seed{};  ///< as in ShuffleOptions, here and below
  bool reshuffle_each_epoch = true;
};

template <class Visitor>
void visit_fields(Visitor& visit, ByAspectOptions& options) {
  visit.required("shapes", options.shapes);
  visit.object("sizes", options.sizes,
               {.required = true});  // a list of the plan: a long one is a file
  visit("pixels", options.pixels);
  visit("rows", options.rows);
  visit("multiple", options.multiple);
  visit("max_crop_fraction", options.max_crop_fraction);
  visit("max_upscale", options.max_upscale);
  visit("unmatched", options.unmatched);
  visit("shuffle", options.shuffle);
  visit("seed", options.seed);
  visit("reshuffle_each_epoch", options.reshuffle_each_epoch);
}

/// The result of batch_by_length or batch_by_aspect.
struct BucketSummary {
  struct Bucket {
    std::int64_t edge = 0;   ///< the length that its samples are padded to; 0 of images
    ImageSize shape{0, 0};   ///< (height, width) of its images; (0, 0) of other samples
    std::uint64_t rows = 0;  ///< rows of a full global batch
    std::uint64_t samples = 0;
    double crop_fraction = 0;  ///< the fraction of its images' pixels that is cut away
  };
  std::vector<Bucket> buckets;
  std::uint64_t batches = 0;  ///< batches of an epoch
  std::uint64_t samples = 0;  ///< samples in them
  /// samples in no batch: those that long_samples or unmatched drop, images of size (0, 0), and in each epoch others where
  /// `remainder` is `drop`
  std::uint64_t dropped = 0;
  /// the fraction of all tokens that is padding, for batches by length: of all samples in a bucket, without the empty rows that
  /// `remainder` = pad adds, and without regard to which samples drop leaves out
  double padding_fraction = 0;
  /// the fraction of all pixels that is cut away where images cover their shapes, for batches by aspect
  double crop_fraction = 0;
};

struct AspectShapesOptions {
  std::uint64_t pixels = 1024 * 1024;  ///< at most so many pixels in a shape
  int multiple = 64;                   ///< height and width are multiples of it
  Range ratio{0.5, 2};                 ///< width / height
};

template <class Visitor>
void visit_fields(Visitor& visit, AspectShapesOptions& options) {
  visit("pixels", options.pixels);
  visit("multiple", options.multiple);
  visit("ratio", options.ratio);
}

/// (height, width) of shapes with about the same number of pixels, from the highest to the widest: for each width, and for
/// each height, the largest other side.
///
/// Errors  std::invalid_argument  no such shape, or more than 4096 of them; a range that is empty or not positive
/// Source  the buckets of NovelAI's diffusion (2022), as kohya's sd-scripts makes them (make_bucket_resolutions)
[[nodiscard]] std::vector<ImageSize> aspect_shapes(const AspectShapesOptions& options = {});

}  // namespace penstock
