// plan/field_values: what fields have in the samples of a plan, read before a loader runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <penstock/source/arrays.hpp>

#include "src/plan/plan.hpp"

namespace penstock::plan {

// Errors of all these:
//   std::invalid_argument  as count_fixed_samples(); no such field, or one of another type
//   Error                  a record that cannot be read; names it

/// Dataset::column.
[[nodiscard]] std::variant<Column, std::vector<std::string>> column_of(const Plan& plan,
                                                                       const std::string& name);

/// A field of integers or texts as classes: equal values have equal numbers.
[[nodiscard]] std::vector<std::int64_t> classes_in(const Plan& plan, const char* verb,
                                                   const std::string& name);

/// A field of integers or texts as texts: integers as decimals, none above 2^63-1.
[[nodiscard]] std::vector<std::string> keys_in(const Plan& plan, const char* verb,
                                               const std::string& name);

/// A field of numbers, none of them negative, infinite or NaN.
[[nodiscard]] std::vector<double> weights_in(const Plan& plan, const char* verb,
                                             const std::string& name);

/// The positions of the samples for which a condition holds, ascending.
///
/// Errors  std::invalid_argument  no such condition; it holds for none
[[nodiscard]] std::vector<std::uint64_t> positions_where(const Plan& plan,
                                                         std::string_view condition);

}  // namespace penstock::plan
