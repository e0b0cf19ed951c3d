#include "src/sync/rendezvous/stall_diagnosis.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/sync/rendezvous/tcp.hpp"

namespace penstock::sync {

namespace {

struct Waiting {
  std::uint32_t rank = 0;
  PendingCall call;
};

// Which way cannot be told: where acknowledgements are lost, so is what they would be for.
std::string lost_between(std::uint32_t one, std::uint32_t other) {
  return fmt::format(
      "what processes {} and {} send each other does not arrive: the network between them is cut, "
      "perhaps one way, or too slow for the timeout",
      std::min(one, other), std::max(one, other));
}

std::string crossed(const Waiting& one, const Waiting& other) {
  return fmt::format(
      "processes {} and {} wait for each other in calls of different communicators: process {} in "
      "{}, process {} in {}; every process must make the calls in the same order",
      one.rank, other.rank, one.rank, one.call.call, other.rank, other.call.call);
}

// Those that wait for each other, in a circle.
std::string conclude_circle(std::span<const Waiting> circle) {
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const Waiting& next = circle[(i + 1) % circle.size()];
    if (circle[i].call.communicator != next.call.communicator) return crossed(circle[i], next);
  }
  // The others have done what the last of them still waits for.
  const auto last = std::ranges::min_element(circle, {}, [](const Waiting& each) {
    return std::tuple(each.call.number, each.call.phase);
  });
  return lost_between(last->call.peer, last->rank);
}

}  // namespace

std::string conclude(std::uint32_t rank, const PendingCall& late, std::span<const Answer> answers,
                     std::span<const std::string> left) {
  std::vector<Waiting> path{{rank, late}};
  for (;;) {
    const Waiting here = path.back();
    const std::uint32_t peer = here.call.peer;
    if (peer < left.size() && !left[peer].empty()) return left[peer];
    if (peer >= answers.size() || !answers[peer]) return does_not_answer(peer);
    const std::vector<PendingCall>& calls = *answers[peer];
    if (calls.empty())
      return fmt::format(
          "process {} makes no call: it hangs, or is busy with something else; raise the timeout "
          "if it may take that long",
          peer);
    const auto same = std::ranges::find(calls, here.call.communicator, &PendingCall::communicator);
    const PendingCall& next = same != calls.end() ? *same : calls.front();
    if (same != calls.end() &&
        std::tie(next.number, next.phase) > std::tie(here.call.number, here.call.phase))
      return lost_between(peer, here.rank);
    if (next.peer == peer)
      return fmt::format("process {} is still busy in {}: its machine has too much to do", peer,
                         next.call);
    const auto seen = std::ranges::find(path, peer, &Waiting::rank);
    if (seen != path.end()) return conclude_circle(std::span(seen, path.end()));
    path.push_back({peer, next});
  }
}

std::string does_not_answer(std::uint32_t rank) {
  return fmt::format("process {} does not answer: it is stopped, or its machine cannot be reached",
                     rank);
}

std::vector<std::string> to_texts(std::span<const PendingCall> calls) {
  std::vector<std::string> texts;
  for (const PendingCall& call : calls) {
    texts.push_back(std::to_string(call.communicator));
    texts.push_back(std::to_string(call.number));
    texts.push_back(std::to_string(call.phase));
    texts.push_back(std::to_string(call.peer));
    texts.push_back(call.call);
  }
  return texts;
}

std::vector<PendingCall> calls_from(std::span<const std::string> texts) {
  constexpr std::size_t kTexts = 5;
  if (texts.size() % kTexts != 0) throw Error("not a rendezvous of penstock");
  std::vector<PendingCall> calls;
  for (std::size_t i = 0; i < texts.size(); i += kTexts)
    calls.push_back({.communicator = number_from<std::uint64_t>(texts[i]),
                     .number = number_from<std::uint64_t>(texts[i + 1]),
                     .phase = number_from<std::uint32_t>(texts[i + 2]),
                     .peer = number_from<std::uint32_t>(texts[i + 3]),
                     .call = texts[i + 4]});
  return calls;
}

}  // namespace penstock::sync
