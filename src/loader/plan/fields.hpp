// loader/plan/fields: the fields of the operations' options and the names of their values, once for
// JSON and texts.
#pragma once

#include "src/augment/json.hpp"
#include "src/core/json_fields.hpp"
#include "src/loader/plan/operations.hpp"

namespace penstock {

template <class Visitor>
void visit_fields(Visitor& visit, ShuffleOptions& options) {
  visit("buffer", options.buffer);
  visit("seed", options.seed);
  visit("reshuffle_each_epoch", options.reshuffle_each_epoch);
}

template <class Visitor>
void visit_fields(Visitor& visit, SampleOptions& options) {
  visit("count", options.count);
  visit("seed", options.seed);
  visit("reshuffle_each_epoch", options.reshuffle_each_epoch);
}

template <class Visitor>
void visit_fields(Visitor& visit, MixOptions& options) {
  visit("weights", options.weights);
  visit("seed", options.seed);
  visit("until", options.until);
}

template <class Visitor>
void visit_fields(Visitor& visit, BatchOptions& options) {
  visit("remainder", options.remainder);
  visit("uneven", options.uneven);
}

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

// The sizes are a long list of the plan.
template <class Visitor>
void visit_fields(Visitor& visit, ByAspectOptions& options) {
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

template <class Visitor>
void visit_fields(Visitor& visit, PrefetchOptions& options) {
  visit("split", options.split);
  visit.speed("depth", options.depth);
}

template <class Visitor>
void visit_fields(Visitor& visit, RandomErasing& options) {
  visit("probability", options.probability);
  visit("min_area", options.min_area);
  visit("max_area", options.max_area);
  visit("min_ratio", options.min_ratio);
  visit("max_ratio", options.max_ratio);
  visit("value", options.value);
}

template <class Visitor>
void visit_fields(Visitor& visit, DeviceTransformOptions& options) {
  visit("field", options.field);
  augment::visit_augmentations(visit, "augment", options.augment);
  visit("dtype", options.dtype);
  visit("layout", options.layout);
  visit("mean", options.mean);
  visit("stddev", options.stddev);
  visit("flip", options.flip);
  visit("mixup", options.mixup);
  visit("cutmix", options.cutmix);
  visit("mix_probability", options.mix_probability);
  visit("cutmix_share", options.cutmix_share);
  visit("classes", options.classes);
  visit("label_smoothing", options.label_smoothing);
  visit("label", options.label);
  visit("erase", options.erase);
  visit.speed("on_consumer_stream", options.on_consumer_stream);
}

}  // namespace penstock

namespace penstock::loader {

// The operations whose fields are not those of one struct of options.

template <class Visitor>
void visit_fields(Visitor& visit, Seed& operation) {
  visit.required("seed", operation.seed);
}
template <class Visitor>
void visit_fields(Visitor& visit, Shuffle& operation) {
  visit_fields(visit, operation.options);
}
template <class Visitor>
void visit_fields(Visitor& visit, Repeat& operation) {
  visit("times", operation.times);
}
template <class Visitor>
void visit_fields(Visitor& visit, RepeatEach& operation) {
  visit.required("times", operation.times);
}
template <class Visitor>
void visit_fields(Visitor& visit, Take& operation) {
  visit.required("count", operation.count);
}
template <class Visitor>
void visit_fields(Visitor& visit, Skip& operation) {
  visit.required("count", operation.count);
}
template <class Visitor>
void visit_fields(Visitor& visit, Shard& operation) {
  visit.required("shards", operation.shards);
  visit.required("index", operation.index);
}
// What batch_by_aspect was given has lists and transforms in it, which are written and read with the plan's.
template <class Visitor>
void visit_fields(Visitor& visit, Batch& operation) {
  visit.required("global_batch", operation.global_batch);
  visit_fields(visit, operation.options);
  std::optional<ByLengthOptions> by_length;
  if (const ByLengthOptions* const given = operation.by_length()) by_length = *given;
  visit("by_length", by_length);
  if (by_length) operation.buckets = *std::move(by_length);
}
template <class Visitor>
void visit_fields(Visitor& visit, TransformOnDevice& operation) {
  visit_fields(visit, operation.options);
}

}  // namespace penstock::loader
