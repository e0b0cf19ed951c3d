// loader/engine_config: a plan and its loader's options made concrete: what an engine runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <penstock/loader/loader.hpp>
#include <penstock/plan/options.hpp>

#include "src/loader/batch_form.hpp"
#include "src/loader/row_worker.hpp"
#include "src/loader/topology.hpp"
#include "src/plan/plan.hpp"

namespace penstock::loader {

/// How to run; everything is known and checked.
struct EngineConfig {
  plan::PlanPtr plan;
  std::vector<Device> devices;
  // One for each bucket, or one.
  RowRecipes recipes;
  std::vector<std::shared_ptr<const BatchForm>> forms;
  std::vector<FieldSpec> fields;                          // delivered, in all forms
  std::shared_ptr<const std::vector<SourcePtr>> sources;  // by SampleId::source
  Topology topology;
  std::uint64_t seed = 0;
  std::vector<order::MixWeights> weights;  // where they are not the plan's
  int threads = 1;
  int io_threads = 0;
  std::size_t depth = 2;
  std::size_t budget_bytes = 0;
  StageObserver* observer = nullptr;
  std::shared_ptr<ThreadBudget> thread_budget;
};

/// `options.context` is set; `weights` are those of Loader::set_weights.
///
/// Errors  std::invalid_argument  the options do not fit the plan or each other
[[nodiscard]] EngineConfig configure(plan::PlanPtr plan, const LoaderOptions& options,
                                     std::uint64_t seed, const std::vector<WeightChange>& weights);

}  // namespace penstock::loader
