// plan/join: samples and the rows of a table that belong to them.
#pragma once

#include "src/plan/plan.hpp"

namespace penstock::plan {

/// Dataset::join, as a zip of both.
///
/// Errors  as Dataset::join
[[nodiscard]] Operation make_join(const PlanPtr& samples, const PlanPtr& table,
                                  const JoinOptions& options);

}  // namespace penstock::plan
