// core/agreement: what all processes of a run must have in common, checked before the first step.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace penstock {

/// Gives every process the texts of all, in the order of their ranks: a collective call. exchange_over() makes one of a
/// Communicator; MPI's or torch's all_gather does as well.
using Exchange = std::function<std::vector<std::string>(const std::string& own)>;

/// Something that must be the same in all processes: "seed" and "7".
struct Fact {
  std::string name;
  std::string value;

  friend bool operator==(const Fact&, const Fact&) = default;
};

/// Compares the facts of all processes; the names may be in any order. Ranks that differ would train on other data, or wait
/// for each other for ever.
///
/// Errors  Error  in every process: each fact that differs, with its values and who has them
void require_agreement(const Exchange& exchange, const std::vector<Fact>& facts);

}  // namespace penstock
