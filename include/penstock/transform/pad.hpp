// transform/pad: rows of different lengths made one length.
#pragma once

#include <cstdint>
#include <string>

#include <penstock/transform/transform.hpp>

namespace penstock {

struct PadOptions {
  static constexpr const char* kName = "pad";  ///< in plans

  std::string
      field;  ///< a field of shape [?, ...]: only its first extent differs from record to record
  std::int64_t to = 0;    ///< that extent afterwards
  double value = 0;       ///< the value of the elements that are added; f16 and bf16 take 0 only
  bool truncate = false;  ///< whether longer records are cut, or are faults
  /// name of one more field, i64 [], of the length before padding, at most `to`; without a name there is no such field
  std::string lengths{};
};

template <class Visitor>
void visit_fields(Visitor& visit, PadOptions& options) {
  visit.required("field", options.field);
  visit.required("to", options.to);
  visit("value", options.value);
  visit("truncate", options.truncate);
  visit("lengths", options.lengths);
}

/// Makes a field of shape [?, ...] one of shape [to, ...]: tokens of texts, steps of trajectories, boxes of images.
///
/// Errors  std::invalid_argument  `to` below 1; at bind: no such field, or another shape; a value that its type
///                                has not; a name of `lengths` that is taken
[[nodiscard]] TransformPtr pad(PadOptions options);

}  // namespace penstock
