// plan/json: a plan as JSON, and back.
//
//   {"penstock_plan": 1, "operations": [
//     {"op": "read", "source": {"image_folder": {"path": "/data/train", …}}, "fingerprint": …},
//     {"op": "shuffle", "seed": 7, "reshuffle_each_epoch": true},
//     {"op": "map", "transform": {"decode_image": {…}}},
//     {"op": "batch", "global_batch": 256, …}]}
//
// mix, concatenate, zip and partners hold lists of operations: "datasets": [[…], […]].
#pragma once

#include <string>
#include <string_view>

#include <penstock/plan/plan_json.hpp>

#include "src/plan/plan.hpp"

namespace penstock::plan {

/// Goes up when a text of today cannot be read by an older version.
inline constexpr int kPlanVersion = 2;

/// The text of Dataset::to_json.
///
/// Errors  Error  something in it cannot travel; names the operation and what to do
[[nodiscard]] std::string to_json(const Plan& plan, const PlanJsonOptions& options);
/// Errors  Error  no plan, one of a newer version, an unknown operation or field, a source that is
///                not there or holds other data; names the operation
[[nodiscard]] PlanPtr plan_from_json(std::string_view text, const PlanJsonOptions& options);

}  // namespace penstock::plan
