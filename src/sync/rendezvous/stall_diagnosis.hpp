// sync/rendezvous/stall_diagnosis: finds the process that blocks a call of all, from what each of their calls waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/sync/rendezvous.hpp>

namespace penstock::sync {

/// A process's calls, none where it makes none; nothing at all where it did not answer.
using Answer = std::optional<std::vector<PendingCall>>;

/// Follows which process waits for which, from `late` of process `rank` on: to a process that does not answer, or makes
/// no call; to two that wait for each other in calls of different communicators; or to a message that was sent and did
/// not come. Of those that are gone `left` holds what was said of them.
[[nodiscard]] std::string conclude(std::uint32_t rank, const PendingCall& late,
                                   std::span<const Answer> answers,
                                   std::span<const std::string> left = {});

/// What is said of a process that is asked and says nothing.
[[nodiscard]] std::string does_not_answer(std::uint32_t rank);

[[nodiscard]] std::vector<std::string> to_texts(std::span<const PendingCall> calls);
/// Errors  Error  these are no calls
[[nodiscard]] std::vector<PendingCall> calls_from(std::span<const std::string> texts);

}  // namespace penstock::sync
