// loader/validation: rejects what a run cannot do with its plan, and says what to do instead.
#pragma once

#include <penstock/loader/loader.hpp>
#include <penstock/plan/options.hpp>

#include "src/loader/engine_config.hpp"

namespace penstock::loader {

/// Errors  Error  the state was saved by another dataset, plan, seed or world; says what differs
/// `identity` is that of `plan`.
void refuse_foreign(const LoaderState& state, const RestoreOptions& options,
                    const std::string& identity, const plan::Plan& plan, const Topology& topology);
/// What a user should know of a state that is restored here: where other versions of libraries decoded its images.
[[nodiscard]] std::vector<Notice> notices_of(const LoaderState& state);
/// For a plan whose loops would end at once.
///
/// Errors  std::invalid_argument  always; says which operation leaves nothing, and of what
[[noreturn]] void refuse_no_steps(const EngineConfig& config);
/// Errors  Error  the plan reads a stream, and `what` needs a past
void refuse_stream(const plan::Plan& plan, const char* what);
/// Errors  std::invalid_argument  options that a stream cannot be read with
void check_stream(Stream& stream, const EngineConfig& config, const LoaderOptions& options);
/// Errors  std::logic_error  the plan has no weights that can change at a step
void refuse_weights(const plan::Plan& plan);

}  // namespace penstock::loader
