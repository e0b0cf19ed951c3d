// loader/plan/json: a plan as JSON and as text, and back.
//
//   {"penstock_plan": 1, "operations": [
//     {"op": "read", "source": {"image_folder": {"path": "/data/train", …}}, "fingerprint": …},
//     {"op": "shuffle", "seed": 7, "reshuffle_each_epoch": true},
//     {"op": "map", "transform": {"decode_image": {…}}},
//     {"op": "batch", "global_batch": 256, …}]}
//
// mix, concatenate and zip hold lists of operations: "datasets": [[…], […]].
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <penstock/loader/plan_json.hpp>

#include "src/loader/plan/plan.hpp"

namespace penstock::loader {

/// Goes up when a text of today cannot be read by an older version.
inline constexpr int kPlanVersion = 1;

/// The text of Dataset::to_json.
///
/// Errors  Error  something in it cannot travel; names the operation and what to do
[[nodiscard]] std::string to_json(const Plan& plan, const PlanJsonOptions& options);
/// Errors  Error  no plan, one of a newer version, an unknown operation or field, a source that is
///                not there or holds other data; names the operation
[[nodiscard]] PlanPtr plan_from_json(std::string_view text, const PlanJsonOptions& options);

/// What decides which bytes a plan delivers, for states: fingerprints in place of paths, hashes in
/// place of lists, nothing that changes speed only, and no devices. Every plan has it.
[[nodiscard]] std::string identity_of(const Plan& plan);
/// Where two of these differ.
struct Difference {
  bool is_data = false;  // in a source's data, not in an operation
  /// "operation 2: saved with shuffle(seed=8), and here it is shuffle(seed=7)".
  std::string text;
};
/// The first difference; none where there is none.
///
/// Errors  Error  `saved` is damaged
[[nodiscard]] std::optional<Difference> difference(std::string_view saved, std::string_view found);

/// "image_folder(/data/train, 400 records).shuffle(seed=7).batch(256).prefetch_to_devices(cuda:0)".
[[nodiscard]] std::string describe(const Plan& plan);

/// Without weights: all alike.
[[nodiscard]] Operation make_mix(std::vector<PlanPtr> datasets, MixOptions options);
/// Records side by side, of plans that are a source and maps.
///
/// Errors  std::invalid_argument  none, one with more in it, or a field name used twice
[[nodiscard]] Operation make_zip(std::vector<PlanPtr> datasets);

}  // namespace penstock::loader
