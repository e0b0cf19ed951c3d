// plan/json_writer: the operations of a plan as JSON, for another process or a state.
#pragma once

#include "src/core/json_fields.hpp"
#include "src/plan/json.hpp"

namespace penstock::plan {

/// Fields of a batch with buckets.
inline constexpr const char* kByLength = "by_length";
inline constexpr const char* kByAspect = "by_aspect";
/// In the identity of one: of all that its buckets were made of.
inline constexpr const char* kLengthsHash = "lengths_hash";
inline constexpr const char* kSizesHash = "sizes_hash";

/// Of a filter or select that where() made: its expression, for people.
inline constexpr const char* kCondition = "condition";

enum class Purpose {
  travel,    // all that another process needs, or a refusal
  identity,  // what decides which bytes come out, short
};

/// `options` are needed for Purpose::travel only.
///
/// Errors  Error  travel: something cannot; names the operation and what to do
[[nodiscard]] core::Json write_operations(const Plan& plan, Purpose purpose,
                                          const PlanJsonOptions* options = nullptr);

}  // namespace penstock::plan
