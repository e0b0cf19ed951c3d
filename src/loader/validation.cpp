#include "src/loader/validation.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include "src/core/printable.hpp"
#include "src/plan/describe.hpp"
#include "src/plan/order.hpp"

namespace penstock::loader {

void refuse_foreign(const LoaderState& state, const RestoreOptions& options,
                    const std::string& identity, const plan::Plan& plan, const Topology& topology) {
  const auto refuse = [](const char* what, const std::string& how, const char* remedy) {
    throw Error(fmt::format("this state belongs to another {}: it was {}: {}", what, how, remedy));
  };
  if (state.random_version != kRandomVersion)
    throw Error(fmt::format(
        "this state was saved with version {} of the random numbers, and this penstock "
        "has version {}: resume with the version that saved it, or start again without the "
        "state",
        state.random_version, kRandomVersion));
  const auto differs_in = [&](plan::Compare what) {
    return plan::difference(state.plan, identity, what);
  };
  if (const auto differs =
          differs_in(options.other_maps ? plan::Compare::all_but_maps : plan::Compare::all)) {
    const bool in_maps = !options.other_maps && !differs_in(plan::Compare::all_but_maps);
    throw Error(fmt::format(
        "this state belongs to another {}: {}: {}", differs->is_data ? "dataset" : "plan",
        differs->text,
        differs->is_data ? "give the loader the same files, or start again without the state"
        : in_maps        ? "make the plan the same, restore with other_maps = true to go on "
                           "with these, or start again without the state"
                         : "make the plan the same, or start again without the state"));
  }
  if (const auto seed = plan.seed(); seed && state.seed != *seed)
    refuse("seed", fmt::format("saved with {}, and here it is {}", state.seed, *seed),
           "give the plan the saved seed, or none");
  if (const std::string found = topology.describe(); state.world != found) {
    const auto name = [](const std::string& world) {
      return world.empty() ? std::string("one order for all") : world;
    };
    refuse("world", fmt::format("saved with {}, and here it is {}", name(state.world), name(found)),
           "only the mode one with scatter or round_robin can resume with another number of "
           "processes and devices");
  }
}

std::vector<Notice> notices_of(const LoaderState& state) {
  std::vector<Notice> notices;
  const std::vector<ImageLibrary> here = image_libraries();
  for (const ImageLibrary& saved : state.image_libraries) {
    const auto same = std::ranges::find(here, saved.name, &ImageLibrary::name);
    if (same != here.end() && same->version == saved.version) continue;
    notices.push_back(
        {.text = fmt::format("this state was saved with {} {}, and here {}",
                             core::printable(saved.name, 100), core::printable(saved.version, 100),
                             same == here.end()
                                 ? "there is none: images that it decodes are faults"
                                 : fmt::format("it is {}: images that it decodes may have other "
                                               "pixels than before",
                                               same->version)),
         .is_warning = true});
  }
  return notices;
}

namespace {

// The samples that `plan` has for each group, and with a batch its steps.
std::uint64_t count_of(const plan::Plan& plan, const EngineConfig& config) {
  const Topology& topology = config.topology;
  std::vector<std::optional<std::uint64_t>> sizes;
  for (std::uint32_t group = 0; group < topology.groups; ++group)
    sizes.push_back(sample_order(plan, {.seed = config.seed,
                                        .group = group,
                                        .groups = topology.groups,
                                        .shards = topology.shards})
                        ->size());
  if (plan.find<plan::Batch>() == nullptr) {
    // Batches are dropped with the group that falls short first, kept until the last one ends.
    const bool drops = config.plan->batch().options.remainder == Remainder::drop;
    return (drops ? std::ranges::min(sizes) : std::ranges::max(sizes)).value_or(UINT64_MAX);
  }
  const auto order = batch_order(plan, config.seed, batches_per_pass(plan, sizes));
  return plan::steps_of(*order).value_or(UINT64_MAX);
}

std::string counted(std::uint64_t count, bool batches) {
  return fmt::format(
      "{} {}", count,
      batches ? (count == 1 ? "batch" : "batches") : (count == 1 ? "sample" : "samples"));
}

// The first operation that leaves nothing, and of what.
std::string why_no_steps(const EngineConfig& config) {
  const std::uint32_t groups = config.topology.groups;
  plan::PlanPtr before = plan::Plan::starting_with(config.plan->input());
  std::uint64_t left = count_of(*before, config);
  if (left == 0)
    return fmt::format("{} has no samples{}; check the data", describe(config.plan->input()),
                       groups > 1 ? " for one of the orders" : "");
  bool batches = false;
  for (const plan::Operation& operation : config.plan->operations().subspan(1)) {
    const plan::PlanPtr plan = before->with(operation);
    const std::uint64_t count = count_of(*plan, config);
    const auto* const batch = std::get_if<plan::Batch>(&operation);
    if (count == 0 && batch != nullptr)
      return fmt::format(
          "{} {} no batch of {} with the remainder drop; make the batch smaller, or choose the "
          "remainder keep or pad",
          counted(left, batches), left == 1 ? "fills" : "fill",
          batch->has_buckets() ? "any bucket" : std::to_string(batch->global_batch / groups));
    if (count == 0)
      return left == UINT64_MAX
                 ? fmt::format("{} leaves nothing", describe(operation))
                 : fmt::format("{} leaves none of {}", describe(operation), counted(left, batches));
    batches = batches || batch != nullptr;
    before = plan;
    left = count;
  }
  return "it has no steps";
}

}  // namespace

void refuse_no_steps(const EngineConfig& config) {
  throw std::invalid_argument("a loop over this loader would deliver nothing: " +
                              why_no_steps(config));
}

void refuse_stream(const plan::Plan& plan, const char* what) {
  if (const Stream* stream = plan.stream())
    throw Error(
        fmt::format("{}: {} is a stream, whose samples come once, here: it cannot be resumed, or "
                    "read elsewhere",
                    what, stream->fingerprint()));
}

void check_stream(Stream& stream, const EngineConfig& config, const LoaderOptions& options) {
  if (options.on_fault == OnFault::replace)
    throw std::invalid_argument(
        "on_fault = replace takes another sample of the same source, and those of a stream come "
        "once: choose mask or raise");
  const Topology& topology = config.topology;
  if (topology.own_replicas * topology.groups > topology.replicas)
    throw std::invalid_argument(
        "each replica would have an order of its own, and the samples of a stream come once: "
        "choose "
        "another split than shard_early, and another mode than per_replica");
  stream.require_capacity(largest_window(*config.plan) +
                          config.plan->batch().global_batch / config.topology.groups);
}

void refuse_weights(const plan::Plan& plan) {
  if (changeable_weights(plan).empty())
    throw std::logic_error(
        "set_weights: only a mix that batch follows at once has weights that can change at a step: "
        "put shuffle, repeat and the like into the datasets that are mixed");
}

}  // namespace penstock::loader
