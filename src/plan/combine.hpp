// plan/combine: several plans as the input of one.
#pragma once

#include <cstddef>
#include <vector>

#include "src/plan/plan.hpp"

namespace penstock::plan {

/// Without weights: all alike.
[[nodiscard]] Operation make_mix(std::vector<PlanPtr> datasets, MixOptions options);
/// Records side by side, of plans that are a source, operations that choose among its records, and maps.
///
/// Errors  std::invalid_argument  none, one with more in it, or a field name used twice
[[nodiscard]] Operation make_zip(std::vector<PlanPtr> datasets);

/// Each record of a plan with others of it. The plan is a source and operations that choose among its records.
///
/// Errors  std::invalid_argument  it has more in it; as source::partners()
[[nodiscard]] Operation make_partners(PlanPtr dataset, const PartnersOptions& options);
/// The plan without its Seed operations.
[[nodiscard]] PlanPtr without_seed(const PlanPtr& plan);

/// Errors  std::invalid_argument  the plan has more in it than make_zip() takes; begins with `verb`
void require_pairable(const Plan& plan, const char* verb, std::size_t dataset);

}  // namespace penstock::plan
