// loader/plan/fields: the fields of the operations. Those of their options stand beside these, in the public headers.
#pragma once

#include "src/augment/operations.hpp"
#include "src/core/json_fields.hpp"
#include "src/loader/plan/operations.hpp"

namespace penstock::loader {

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
// Prefetch has its devices, Sample its weights and Mix its datasets besides, which are written and read by hand.
template <class Visitor>
void visit_fields(Visitor& visit, Prefetch& operation) {
  visit_fields(visit, operation.options);
}
template <class Visitor>
void visit_fields(Visitor& visit, Sample& operation) {
  visit_fields(visit, operation.options);
}
template <class Visitor>
void visit_fields(Visitor& visit, Mix& operation) {
  visit_fields(visit, operation.options);
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
