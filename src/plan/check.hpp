// plan/check: which operation may follow which.
#pragma once

#include "src/plan/plan.hpp"

namespace penstock::plan {

/// A plan that is an input and nothing else.
///
/// Errors  std::invalid_argument  it cannot work; says why and what to do. So all of these
void check_input(const Plan& plan);
/// Whether `operation` may come behind `plan`.
void check_before(const Plan& plan, const Operation& operation);
/// Whether a plan's last operation works on what those before it make: tries it out.
void check_after(const Plan& plan);

/// The source of a plan that is nothing else, for `verb`, which makes another source of it.
[[nodiscard]] SourcePtr documents_of(const Plan& plan, const char* verb);
/// The same, of any source, for rename.
[[nodiscard]] SourcePtr source_to_rename(const Plan& plan);

}  // namespace penstock::plan
