// sequence/by_length: batches of samples of similar lengths, each padded to the same length only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/enum_names.hpp>

namespace penstock {

/// What becomes of a sample that is longer than the last bucket.
enum class LongSamples : std::uint8_t {
  refuse,    ///< there may be none: the call that makes the plan says which one is too long
  truncate,  ///< it is in the last bucket, and loses what is behind its edge, in all padded fields
  drop,      ///< it is in no batch
};
template <>
struct EnumNames<LongSamples> {
  static constexpr std::pair<LongSamples, const char*> kNames[] = {
      {LongSamples::refuse, "refuse"},
      {LongSamples::truncate, "truncate"},
      {LongSamples::drop, "drop"}};
};

/// For Dataset::batch_by_length.
struct ByLengthOptions {
  /// Bucket k has the samples that are longer than edges[k - 1] and at most as long as edges[k]; those of a batch are
  /// padded to edges[k].
  std::vector<std::int64_t> edges;
  /// Tokens of a global batch at the most, padding counted: a batch of bucket k has tokens / edges[k] rows, rounded down
  /// to a multiple of `multiple`.
  std::optional<std::uint64_t> tokens{};
  /// Instead of `tokens`: rows of a global batch, one number a bucket.
  std::vector<std::uint64_t> rows{};
  /// The number of replicas, or a multiple of it, so that each has as many rows of a full batch as the others. For runs
  /// that are resumed on other numbers of them, a multiple of all: the batches follow from it. A bucket's last batch has
  /// what is left, and some replicas may have no row of it: Remainder::drop or pad where each must have as many.
  std::uint64_t multiple = 1;

  /// Fields of shape [?, ...] that are padded, and with what: all that differ in length. The first one's length is that of
  /// the sample: the one that its source says, before any map. Of a zip, the source that has the field.
  struct Field {
    std::string name;
    double value = 0;

    friend bool operator==(const Field&, const Field&) = default;
  };
  std::vector<Field> fields = {{.name = "tokens"}};
  /// A field i64 [] for the length before padding, behind the first padded one. Empty: none.
  std::string lengths = "lengths";
  LongSamples long_samples = LongSamples::refuse;

  /// A random order of the samples within each bucket, and of the batches of all buckets. False: by length, the shortest
  /// first.
  bool shuffle = true;
  std::optional<std::uint64_t> seed{};  ///< as in ShuffleOptions
  bool reshuffle_each_epoch = true;     ///< new batches each epoch, or the same
};

template <class Visitor>
void visit_fields(Visitor& visit, ByLengthOptions::Field& field) {
  visit.required("name", field.name);
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

/// What came of sorting samples by length.
struct ByLengthSummary {
  struct Bucket {
    std::int64_t edge = 0;   ///< what its batches are padded to
    std::uint64_t rows = 0;  ///< of a full global batch
    std::uint64_t samples = 0;
  };
  std::vector<Bucket> buckets;
  std::uint64_t batches = 0;  ///< of an epoch
  std::uint64_t samples = 0;  ///< in them
  std::uint64_t dropped =
      0;  ///< samples in none: LongSamples::drop, and in each epoch others by Remainder::drop
  double padding_share =
      0;  ///< of the tokens of all sorted samples, those that Remainder::drop leaves out among them
};

}  // namespace penstock
