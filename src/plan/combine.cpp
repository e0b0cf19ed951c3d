#include "src/plan/combine.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/plan/branches.hpp"
#include "src/plan/describe.hpp"
#include "src/plan/split.hpp"
#include "src/source/partners.hpp"
#include "src/source/picked.hpp"
#include "src/source/zip.hpp"
#include "src/transform/catalog.hpp"

namespace penstock::plan {

Operation make_mix(std::vector<PlanPtr> datasets, MixOptions options) {
  if (options.weights.empty()) options.weights.assign(datasets.size(), 1);
  return Mix{std::move(datasets), std::move(options)};
}

namespace {

bool chooses(const Operation& operation) {
  return std::holds_alternative<Filter>(operation) || traits_of(operation).selects;
}

// The plan's records as those of a source.
SourcePtr records_of(const Plan& plan, const char* verb) {
  SourcePtr source = branches_of(plan).front().source;
  if (std::ranges::none_of(plan.operations(), chooses)) return source;
  auto numbers = std::make_shared<std::vector<std::uint64_t>>();
  numbers->reserve(count_fixed_samples(plan, verb));
  see_fixed_samples(plan, verb,
                    [&](const Source&, std::uint64_t number) { numbers->push_back(number); });
  return source::picked(std::move(source), std::move(numbers));
}

}  // namespace

void require_pairable(const Plan& plan, const char* verb, std::size_t dataset) {
  if (const Stream* stream = plan.stream())
    throw std::invalid_argument(
        fmt::format("{} pairs records by their number, and {} is a stream: push both parts as "
                    "one record",
                    verb, stream->location(0)));
  const bool has_more =
      std::ranges::any_of(plan.operations().subspan(1), [](const Operation& operation) {
        return !std::holds_alternative<Map>(operation) && !chooses(operation);
      });
  const bool is_single = plan.parts().empty() || makes_one_source(plan.input());
  if (has_more || !is_single)
    throw std::invalid_argument(fmt::format(
        "{0} pairs records by their number, so its datasets are a source, operations that choose "
        "among its records (filter, take, skip, shard, select) and maps, and dataset {1} has more "
        "({2}): put seed and all operations on positions after {0}",
        verb, dataset, describe(plan)));
}

Operation make_zip(std::vector<PlanPtr> datasets) {
  std::vector<SourcePtr> sources;
  for (std::size_t k = 0; k < datasets.size(); ++k) {
    require_pairable(*datasets[k], Zip::kName, k);
    sources.push_back(records_of(*datasets[k], Zip::kName));
  }
  SourcePtr source = source::zip(std::move(sources));
  return Zip{std::move(datasets), std::move(source)};
}

PlanPtr without_seed(const PlanPtr& plan) {
  if (!plan->given_seed()) return plan;
  PlanPtr made = Plan::starting_with(plan->input());
  for (const Operation& operation : plan->operations().subspan(1))
    if (!std::holds_alternative<Seed>(operation)) made = made->with(operation);
  return made;
}

Operation make_partners(PlanPtr dataset, const PartnersOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument(fmt::format("{}: {}", Partners::kName, what));
  };
  if (const Stream* stream = dataset->stream())
    refuse(fmt::format("{} is a stream, whose records come once: none can come with another one",
                       stream->location(0)));
  if (!dataset->parts().empty() && !makes_one_source(dataset->input()))
    refuse(
        fmt::format("they are records of one source, and the plan begins with {}: give each of "
                    "its data sets its own",
                    name_of(dataset->input())));
  for (const Operation& operation : dataset->operations().subspan(1))
    if (!chooses(operation) && !std::holds_alternative<Map>(operation))
      refuse(
          fmt::format("put {} behind it: before it stand only the source and operations that "
                      "choose among its records (where, filter, take, skip, shard, select, split)",
                      describe(operation)));
  // Those of the data sets that are paired.
  if (const auto maps = branches_of(*dataset).front().transforms; !maps.empty())
    refuse(
        fmt::format("put map({}) behind the transform that takes the partners, such as "
                    "decode_image(crop=mosaic(640)): before it stand only sources and operations "
                    "that choose among their records",
                    transform::describe(*maps.front())));
  SourcePtr source = source::partners(records_of(*dataset, Partners::kName), options);
  return Partners{{std::move(dataset)}, options, std::move(source)};
}

}  // namespace penstock::plan
