// Datasets made from several: mix, concatenate, zip.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/loader/dataset.hpp>

#include "src/loader/plan/plan.hpp"
#include "src/order/operations.hpp"
#include "src/source/zip.hpp"

namespace penstock {

namespace {

using loader::OrderContext;
using loader::Plan;

std::string list(const std::vector<FieldSpec>& fields) {
  std::string text;
  for (const FieldSpec& field : fields) text += (text.empty() ? "" : ", ") + field.to_string();
  return text;
}

std::string describe_all(const std::vector<Dataset>& datasets) {
  std::string text;
  for (const Dataset& dataset : datasets)
    text +=
        (text.empty() ? "" : ", ") + (dataset.describe().empty() ? "dataset" : dataset.describe());
  return text;
}

void check_alike(const char* verb, const std::vector<Dataset>& datasets) {
  const std::vector<FieldSpec> fields = datasets.front().fields();
  for (std::size_t k = 1; k < datasets.size(); ++k)
    if (datasets[k].fields() != fields)
      throw std::invalid_argument(
          fmt::format("{}: the samples of dataset 0 are ({}), those of dataset {} are ({}): give "
                      "each its own map, so that they become alike",
                      verb, list(fields), k, list(datasets[k].fields())));
}

// The branches of all `plans`, one behind the other, and the orders that read them.
struct Joined {
  std::shared_ptr<Plan> plan = std::make_shared<Plan>();
  std::vector<loader::MakeOrder> orders;
};

Joined join(const char* verb, const std::vector<std::shared_ptr<const Plan>>& plans) {
  if (plans.empty())
    throw std::invalid_argument(fmt::format("{} needs a dataset, found none", verb));
  Joined joined;
  Plan& plan = *joined.plan;
  for (const auto& part : plans) {
    if (part->batch)
      throw std::invalid_argument(fmt::format(
          "{} joins samples, and one of the datasets has a batch already: put batch behind {}",
          verb, verb));
    const auto first = static_cast<std::uint32_t>(plan.branches.size());
    const std::optional<std::uint64_t> seed = part->seed_given ? part->seed : std::nullopt;
    // A dataset that is part of another keeps its own seed, and counts its sources from `first`.
    const auto within = [first, seed](const loader::MakeOrder& make) {
      return [=](OrderContext context) {
        context.branch += first;
        context.seed = seed.value_or(context.seed);
        context.weights = {};
        return make(context);
      };
    };
    for (loader::Branch branch : part->branches) {
      if (!branch.seed) branch.seed = seed;
      branch.candidates = within(branch.candidates);
      plan.branches.push_back(std::move(branch));
    }
    joined.orders.push_back(within(part->samples));
    plan.operations = std::max(plan.operations, part->operations);
    plan.shards.insert(plan.shards.end(), part->shards.begin(), part->shards.end());
    if (!plan.seed) plan.seed = part->seed;
  }
  plan.plain = false;
  plan.selecting = false;
  return joined;
}

std::vector<OrderPtr> make_all(const std::vector<loader::MakeOrder>& makers,
                               const OrderContext& context) {
  std::vector<OrderPtr> orders;
  for (const loader::MakeOrder& make : makers) orders.push_back(make(context));
  return orders;
}

std::vector<std::shared_ptr<const Plan>> plans_of(
    const std::vector<Dataset>& datasets,
    const std::shared_ptr<const Plan>& (*plan)(const Dataset&)) {
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const Dataset& dataset : datasets) plans.push_back(plan(dataset));
  return plans;
}

}  // namespace

Dataset mix(const std::vector<Dataset>& datasets, const MixOptions& options) {
  Joined joined = join("mix", plans_of(
                                  datasets, [](const Dataset& one) -> auto& { return one.plan_; }));
  check_alike("mix", datasets);
  std::vector<double> weights = options.weights;
  if (weights.empty()) weights.assign(datasets.size(), 1);

  Plan& plan = *joined.plan;
  std::string text =
      fmt::format("mix({}, weights=[{}]", describe_all(datasets), fmt::join(weights, ", "));
  if (options.seed) text += fmt::format(", seed={}", *options.seed);
  if (options.until == MixUntil::all) text += ", until=all";
  plan.texts = {text + ")"};
  if (options.seed) plan.seed = options.seed;
  plan.mix_weights = weights;
  plan.samples = [orders = std::move(joined.orders), options, operation = plan.operations++,
                  weights](const OrderContext& context) {
    std::vector<MixWeights> changes(context.weights.begin(), context.weights.end());
    if (changes.empty()) changes.push_back({0, weights});
    return order::mix(make_all(orders, context), std::move(changes),
                      context.key(operation, options.seed), options.until);
  };
  (void)plan.sample_order();
  return Dataset(std::move(joined.plan));
}

Dataset concatenate(const std::vector<Dataset>& datasets) {
  Joined joined =
      join("concatenate", plans_of(
                              datasets, [](const Dataset& one) -> auto& { return one.plan_; }));
  check_alike("concatenate", datasets);
  Plan& plan = *joined.plan;
  plan.texts = {fmt::format("concatenate({})", describe_all(datasets))};
  plan.samples = [orders = std::move(joined.orders)](const OrderContext& context) {
    return order::concatenate(make_all(orders, context));
  };
  (void)plan.sample_order();
  return Dataset(std::move(joined.plan));
}

Dataset zip(const std::vector<Dataset>& datasets) {
  std::vector<SourcePtr> sources;
  std::vector<TransformPtr> transforms;
  for (std::size_t k = 0; k < datasets.size(); ++k) {
    const Plan& plan = *datasets[k].plan_;
    if (!plan.plain || plan.branches.size() != 1)
      throw std::invalid_argument(
          fmt::format("zip pairs records by their number, so its datasets are a source and maps, "
                      "and dataset {} has more ({}): put filter and all "
                      "operations on positions behind zip",
                      k, plan.describe()));
    const loader::Branch& branch = plan.branches.front();
    sources.push_back(branch.source);
    transforms.insert(transforms.end(), branch.transforms.begin(), branch.transforms.end());
  }
  Dataset zipped(source::zip(std::move(sources)));
  auto plan = std::make_shared<Plan>(*zipped.plan_);
  plan->branches.front().transforms = std::move(transforms);
  plan->texts = {fmt::format("zip({})", describe_all(datasets))};
  Dataset result(std::move(plan));
  (void)result.fields();
  return result;
}

}  // namespace penstock
