// plan/combine: several plans as the input of one.
#pragma once

#include <vector>

#include "src/plan/plan.hpp"

namespace penstock::plan {

/// Without weights: all alike.
[[nodiscard]] Operation make_mix(std::vector<PlanPtr> datasets, MixOptions options);
/// Records side by side, of plans that are a source and maps.
///
/// Errors  std::invalid_argument  none, one with more in it, or a field name used twice
[[nodiscard]] Operation make_zip(std::vector<PlanPtr> datasets);

}  // namespace penstock::plan
