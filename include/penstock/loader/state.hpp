// loader/state: the position of a loader, small enough to lie beside every checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/digest.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

namespace penstock {

/// A call of Loader::set_weights.
struct WeightChange {
  std::uint64_t step = 0;
  std::vector<double> weights;

  friend bool operator==(const WeightChange&, const WeightChange&) = default;
};

/// What Loader::state() returns and Loader::restore() takes. It counts what was delivered, not what
/// was prefetched. The position is the same in every process.
struct LoaderState {
  std::uint64_t step = 0;                         ///< the next step to be delivered
  std::uint64_t samples = 0;                      ///< delivered so far, over all processes
  std::uint64_t seed = 0;                         ///< the plan's seed, drawn or given
  std::uint32_t random_version = kRandomVersion;  ///< of the random numbers
  /// The operations that decide which bytes come out, with the fingerprints of the data: JSON, so
  /// that an error can say which of them differs.
  std::string plan = "[]";
  std::string world;                  ///< who has orders of their own; empty for InputMode::one
  std::vector<WeightChange> weights;  ///< of a mix, in order of their steps
  // This process's own; those of all processes add up. Who restores a state of another world gives
  // the sum to one process, and zero to the others.
  std::uint64_t fault_count = 0;
  std::vector<Fault> faults;  ///< the first 100
  Digest digest;              ///< of everything delivered, where LoaderOptions::digest asked for it
  Digest transformed_digest;  ///< likewise, LoaderOptions::digest_transformed

  [[nodiscard]] std::string to_json() const;
  /// Numbers that are negative, fractional or too large, and unknown fields, are refused by name.
  ///
  /// Errors  Error  not such a text, or one of another format; says what to do
  [[nodiscard]] static LoaderState from_json(std::string_view text);
};

}  // namespace penstock
