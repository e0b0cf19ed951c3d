// plan/describe: a plan as a text for people, what identifies it, and where two plans differ.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/plan/plan.hpp"

namespace penstock::plan {

/// What decides which bytes a plan delivers, for states: fingerprints in place of paths, hashes in
/// place of lists, nothing that changes speed only, and no devices. Every plan has it.
[[nodiscard]] std::string identity_of(const Plan& plan);
/// Where two of these differ.
struct Difference {
  bool is_data = false;  // in a source's data, not in an operation
  /// "operation 2: saved with shuffle(seed=8), and here it is shuffle(seed=7)"; as JSON has them, not as describe().
  std::string text;
};
/// What is compared of them; maps include device transforms.
enum class Compare : std::uint8_t { all, all_but_maps };
/// The first difference; none where there is none.
///
/// Errors  Error  `saved` is damaged
[[nodiscard]] std::optional<Difference> difference(std::string_view saved, std::string_view found,
                                                   Compare what = Compare::all);

/// As Dataset::describe().
[[nodiscard]] std::string describe(const Plan& plan);
/// A source as the call that makes it; its fingerprint where it has no description.
[[nodiscard]] std::string describe(const Source& source);
/// One operation as the call that makes it: "take(3)".
[[nodiscard]] std::string describe(const Operation& operation);

}  // namespace penstock::plan
