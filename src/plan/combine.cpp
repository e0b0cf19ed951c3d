#include "src/plan/combine.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/plan/branches.hpp"
#include "src/plan/describe.hpp"
#include "src/source/zip.hpp"

namespace penstock::plan {

Operation make_mix(std::vector<PlanPtr> datasets, MixOptions options) {
  if (options.weights.empty()) options.weights.assign(datasets.size(), 1);
  return Mix{std::move(datasets), std::move(options)};
}

Operation make_zip(std::vector<PlanPtr> datasets) {
  std::vector<SourcePtr> sources;
  for (std::size_t k = 0; k < datasets.size(); ++k) {
    const Plan& plan = *datasets[k];
    const bool has_more = std::ranges::any_of(
        plan.operations().subspan(1),
        [](const Operation& operation) { return !std::holds_alternative<Map>(operation); });
    if (has_more || !plan.is_plain())
      throw std::invalid_argument(
          fmt::format("zip pairs records by their number, so its datasets are a source and maps, "
                      "and dataset {} "
                      "has more ({}): put filter, seed and all operations on positions after zip",
                      k, describe(plan)));
    if (const Stream* stream = plan.stream())
      throw std::invalid_argument(
          fmt::format("zip pairs records by their number, and {} is a stream: push both parts as "
                      "one record",
                      stream->location(0)));
    sources.push_back(branches_of(plan).front().source);
  }
  SourcePtr source = source::zip(std::move(sources));
  return Zip{std::move(datasets), std::move(source)};
}

}  // namespace penstock::plan
