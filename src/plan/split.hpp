// plan/split: which positions go to which part of a split.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <penstock/plan/options.hpp>
#include <penstock/source/source.hpp>

#include "src/plan/plan.hpp"

namespace penstock::plan {

/// The positions of each part, ascending. `by` and `group` are lists.
///
/// Errors  std::invalid_argument  fractions or options that do not fit; a part without positions
[[nodiscard]] std::vector<std::vector<std::uint64_t>> split_positions(
    std::uint64_t count, std::span<const double> fractions, const SplitOptions& options);

/// For a split without groups, which keep the copies of a sample in one part if they have the same.
///
/// Errors  std::invalid_argument  data sets that are concatenated have a sample in common
void require_no_copies(const Plan& plan);

/// The samples of a plan that are the same, in the same order, in every epoch: their number.
///
/// Errors  std::invalid_argument  they are not; begins with `verb`, and says what to do
[[nodiscard]] std::uint64_t count_fixed_samples(const Plan& plan, const char* verb);

/// Calls `see` with each of them, in the order of their positions.
void see_fixed_sample_ids(const Plan& plan, const char* verb,
                          const std::function<void(const SampleId& sample)>& see);

/// Calls `see` with the source and the number of each of them, in the order of their positions.
void see_fixed_samples(const Plan& plan, const char* verb,
                       const std::function<void(const Source& source, std::uint64_t number)>& see);

}  // namespace penstock::plan
