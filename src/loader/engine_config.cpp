#include "src/loader/engine_config.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/process.hpp>

#include "src/core/enum_check.hpp"
#include "src/plan/branches.hpp"
#include "src/plan/buckets.hpp"
#include "src/plan/order.hpp"
#include "src/sequence/sorted.hpp"

namespace penstock::loader {

namespace {

// Of each group, those of each branch.
using Candidates = std::vector<std::vector<order::OrderPtr>>;

Candidates find_candidates(const plan::Plan& plan, const Topology& topology, std::uint64_t seed) {
  Candidates candidates;
  for (std::uint32_t group = 0; group < topology.groups; ++group)
    candidates.push_back(candidates_of(
        plan,
        {.seed = seed, .group = group, .groups = topology.groups, .shards = topology.shards}));
  return candidates;
}

std::vector<BranchRecipe> make_branches(const plan::Plan& plan, const Candidates& candidates,
                                        std::uint64_t seed, std::size_t bucket) {
  std::vector<BranchRecipe> recipes;
  for (const plan::Branch& branch : branches_of(plan, bucket)) {
    const auto number = static_cast<std::uint32_t>(recipes.size());
    const std::uint64_t own_seed = branch.seed.value_or(seed);
    BranchRecipe recipe{
        .source = branch.source,
        .chain = transform::TransformChain(branch.source->fields(), branch.transforms, own_seed,
                                           plan::kFirstTransform, number),
        .candidates = {},
        .replacement_key = RandomKey(own_seed, plan::kReplacement, number),
        .read_key = RandomKey(own_seed, plan::kReading, number)};
    for (const auto& of_group : candidates) recipe.candidates.push_back(of_group[number]);
    recipes.push_back(std::move(recipe));
  }
  return recipes;
}

std::shared_ptr<const BatchForm> make_form(const plan::Plan& plan, const Topology& topology,
                                           const LoaderOptions& options, std::uint64_t seed,
                                           std::size_t bucket, const BranchRecipe& branch,
                                           bool on_gpus, DigestOnDevice digest,
                                           std::vector<std::size_t> packable) {
  const auto made = branch.chain.fields();
  const bool masks =
      plan.batch().options.remainder == Remainder::pad || options.on_fault == OnFault::mask;
  return std::make_shared<const BatchForm>(
      std::vector<FieldSpec>(made.begin(), made.end()), masks, device_transforms_of(plan, bucket),
      RandomKey(seed, plan::kDeviceTransform), topology.slicings[bucket].max_rows(), on_gpus,
      digest, std::move(packable));
}

// Fields that GPUs may decode, of some of the branches at the least.
std::vector<std::size_t> find_packable(std::span<const BranchRecipe> branches) {
  std::vector<std::size_t> packable;
  std::string reasons;
  for (const BranchRecipe& branch : branches)
    for (const transform::DecodedField& decoded : branch.chain.decoded())
      if (!decoded.why_not_packed.empty())
        reasons += fmt::format("{}'{}': {}", reasons.empty() ? "" : "; ", decoded.name,
                               decoded.why_not_packed);
      else if (std::ranges::count(packable, decoded.field) == 0)
        packable.push_back(decoded.field);
  if (packable.empty())
    throw std::invalid_argument(
        fmt::format("decode_on_gpu: no image of this plan can be decoded on a GPU: {}",
                    reasons.empty() ? "it has no decode_image" : reasons));
  return packable;
}

}  // namespace

EngineConfig configure(plan::PlanPtr plan, const LoaderOptions& options, std::uint64_t seed,
                       const std::vector<WeightChange>& weights) {
  core::check_enums("loader", options);
  const InputContext& context = *options.context;
  const Topology topology(*plan, options);
  if (plan->stream() != nullptr && context.num_input_pipelines > 1 &&
      (options.mode != InputMode::per_worker || options.shards != ShardPolicy::off))
    throw std::invalid_argument(
        "each of several processes has a stream of its own: choose the mode per_worker with the "
        "shard policy off");
  const bool draws = options.on_fault == OnFault::replace || is_random(*plan);
  if (context.num_input_pipelines > 1 && draws && !plan->seed())
    throw std::invalid_argument(
        "several processes need one seed, since this plan is random: give it one, .seed(7), the "
        "same in all of them");
  constexpr int kMostThreads = 4096;
  if (options.threads < 0 || options.threads > kMostThreads)
    throw std::invalid_argument(fmt::format("threads must be 1 to {}, or 0 for all cores, found {}",
                                            kMostThreads, options.threads));
  if (const int threads = options.io_threads.value_or(0); threads < 0 || threads > kMostThreads)
    throw std::invalid_argument(fmt::format("io_threads must be 0 to {}, or not be given, found {}",
                                            kMostThreads, threads));
  constexpr std::chrono::hours kLongestBackoff{1};
  if (options.retry.attempts < 1 || options.retry.initial_backoff.count() < 0 ||
      options.retry.initial_backoff > kLongestBackoff)
    throw std::invalid_argument(
        fmt::format("retry: expected 1 or more attempts, and an initial_backoff of 0 s to 1 h, "
                    "found {} and {} ms",
                    options.retry.attempts, options.retry.initial_backoff.count()));

  if (const auto rate = options.max_fault_rate; rate && !(*rate >= 0 && *rate <= 1))
    throw std::invalid_argument(
        fmt::format("max_fault_rate is a fraction of the samples, from 0 to 1, found {}", *rate));

  const std::vector<plan::Branch> sources = branches_of(*plan);
  const bool any_gpu = std::ranges::any_of(
      plan->devices(), [](const Device& device) { return device.kind == Device::Kind::cuda; });
  const DigestOnDevice digest{.slices = options.digest && any_gpu,
                              .transformed = options.digest_transformed};
  std::size_t reads_together = 1;
  int max_concurrent_reads = 0;
  auto named = std::make_shared<std::vector<SourcePtr>>();
  for (const plan::Branch& branch : sources) {
    named->push_back(branch.source);
    max_concurrent_reads = std::max(max_concurrent_reads, branch.source->max_concurrent_reads());
    reads_together = std::max(reads_together, branch.source->reads_together());
  }
  if (options.budget_bytes != 0) reads_together = 1;

  const Candidates candidates =
      options.on_fault == OnFault::replace ? find_candidates(*plan, topology, seed) : Candidates();
  RowRecipes recipes;
  std::vector<std::shared_ptr<const BatchForm>> forms;
  for (std::size_t bucket = 0; bucket < buckets_of(plan->batch()); ++bucket) {
    auto branches = make_branches(*plan, candidates, seed, bucket);
    std::vector<std::size_t> packable;
    if (options.decode_on_gpu) packable = find_packable(branches);
    if (!any_gpu) packable.clear();
    forms.push_back(make_form(*plan, topology, options, seed, bucket, branches.front(), any_gpu,
                              digest, std::move(packable)));
    recipes.push_back(std::make_shared<const RowRecipe>(RowRecipe{
        .branches = std::move(branches),
        .valid_field = forms.back()->valid_field(),
        .buckets = plan->batch().sorted ? plan->batch().sorted->table : nullptr,
        .bucket = bucket,
        .reads_together = reads_together,
        .on_fault = options.on_fault,
        .replicas_per_group = topology.replicas_per_group(),
        .retry = options.retry,
        .digest = options.digest,
        .packable = {forms.back()->packable().begin(), forms.back()->packable().end()},
        .jpeg_scratch = forms.back()->jpeg_scratch(),
        .jpeg_index = jpeg_index_of(*plan),
        .observer = options.observer,
    }));
  }
  const auto delivered = forms.front()->fields();
  std::vector<FieldSpec> fields(delivered.begin(), delivered.end());
  for (const auto& form : forms) plan::forget_differences(fields, form->fields());

  const int cores = options.thread_budget ? options.thread_budget->threads() : default_threads();
  std::vector<Device> devices = plan->devices();
  const std::size_t depth = static_cast<std::size_t>(plan->prefetch().depth);

  std::vector<order::MixWeights> mix_weights;
  if (!weights.empty()) {
    const auto first = changeable_weights(*plan);
    mix_weights.push_back({0, {first.begin(), first.end()}});
  }
  for (const WeightChange& change : weights)
    mix_weights.push_back({change.step * topology.slicings.front().global_batch(), change.weights});

  return {
      .plan = std::move(plan),
      .devices = std::move(devices),
      .recipes = std::move(recipes),
      .forms = std::move(forms),
      .fields = std::move(fields),
      .sources = std::move(named),
      .topology = topology,
      .seed = seed,
      .weights = std::move(mix_weights),
      .threads = options.threads == 0 ? cores : options.threads,
      .io_threads = options.io_threads.value_or(max_concurrent_reads),
      .depth = depth,
      .budget_bytes = options.budget_bytes,
      .observer = options.observer,
      .thread_budget = options.thread_budget,
  };
}

}  // namespace penstock::loader
