#include "src/loader/run/validation.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::loader {

namespace {

// The operations of a plan one by one: what differs is easier to see than in the whole.
std::string difference(const std::string& saved, const std::string& found) {
  std::size_t at = 0;
  while (at < std::min(saved.size(), found.size()) && saved[at] == found[at]) ++at;
  const auto rest = [&](const std::string& text) {
    const std::size_t point = text.rfind(").", at);
    return text.substr(point == std::string::npos ? 0 : point + 2);
  };
  return fmt::format("saved with '{}', and here it is '{}'", rest(saved), rest(found));
}

}  // namespace

void refuse_foreign(const LoaderState& state, const Plan& plan, const Topology& topology) {
  const auto refuse = [](const char* what, const std::string& how, const char* remedy) {
    throw Error(fmt::format("this state belongs to another {}: it was {}: {}", what, how, remedy));
  };
  if (const std::string found = plan.fingerprint(); state.source != found)
    refuse("dataset", fmt::format("saved with '{}', and here it is '{}'", state.source, found),
           "give the loader the same files, or begin anew without the state");
  if (const std::string found = plan.describe(); state.plan != found)
    refuse("plan", difference(state.plan, found),
           "make the plan the same, or begin anew without the state");
  if (plan.seed && state.seed != *plan.seed)
    refuse("seed", fmt::format("saved with {}, and here it is {}", state.seed, *plan.seed),
           "give the plan the saved seed, or none");
  if (const std::string found = topology.describe(); state.world != found) {
    const auto name = [](const std::string& world) {
      return world.empty() ? std::string("one order for all") : world;
    };
    refuse("world", fmt::format("saved with {}, and here it is {}", name(state.world), name(found)),
           "only InputMode::one with scatter or round_robin can go on with other numbers of "
           "processes and devices");
  }
}

void refuse_stream(const Plan& plan, const char* what) {
  if (const Stream* stream = plan.stream())
    throw Error(fmt::format("{}: {} is a stream, whose samples come once: it cannot be resumed",
                            what, stream->fingerprint()));
}

void check_stream(const Stream& stream, const EngineConfig& config, const LoaderOptions& options) {
  if (options.faults.policy == OnFault::replace)
    throw std::invalid_argument(
        "OnFault::replace takes another sample of the same source, and a stream's come once: take "
        "OnFault::mask or raise");
  if (options.context->num_input_pipelines > 1 &&
      (options.mode != InputMode::per_worker || options.shards != ShardPolicy::off))
    throw std::invalid_argument(
        "each of several processes has a stream of its own: choose InputMode::per_worker with "
        "ShardPolicy::off");
  stream.require_capacity(config.plan->window + config.topology.slicing.global_batch());
}

void refuse_weights(const Plan& plan) {
  if (plan.mix_weights.empty() || plan.batches)
    throw std::logic_error(
        "set_weights: only a mix that batch follows at once has weights that can change at a step: "
        "put shuffle, repeat and the like into the datasets that are mixed");
}

}  // namespace penstock::loader
