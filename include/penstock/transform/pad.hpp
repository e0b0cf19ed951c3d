// transform/pad: rows of different lengths made one length.
#pragma once

#include <cstdint>
#include <string>

#include <penstock/transform/transform.hpp>

namespace penstock {

struct PadOptions {
  static constexpr const char* kName = "pad";  ///< in plans

  std::string field;      ///< of shape [?, ...]: only its first extent differs
  std::int64_t to = 0;    ///< its length afterwards
  double value = 0;       ///< of the elements that are added; f16 and bf16 take 0 only
  bool truncate = false;  ///< cut what is longer; otherwise it is a Fault
  /// A field i64 [] for the length before padding, at most `to`; it stands behind the padded one. Empty: none.
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
