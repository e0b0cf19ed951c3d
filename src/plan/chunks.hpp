// plan/chunks: at which positions of a plan's samples the chunks of its sources begin.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/plan.hpp"

namespace penstock::plan {

/// Runs of positions whose samples are in one chunk of their source (Source::chunks): where these begin, ascending from 0. Those
/// of a source without chunks are one. Empty where the plan has no samples.
///
/// Errors  std::invalid_argument  no source has chunks; a stream; an operation that has another order in each epoch, or batch
[[nodiscard]] std::vector<std::uint64_t> find_chunks(const Plan& plan);

}  // namespace penstock::plan
