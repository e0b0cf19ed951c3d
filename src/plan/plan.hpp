// plan/plan: what a Dataset holds: a list of operations. Everything else is derived from it:
// the order (order.hpp), the sources and their transforms (branches.hpp), texts (describe.hpp)
// and JSON (json.hpp). Immutable once made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/batch/slicing.hpp"
#include "src/order/mix.hpp"
#include "src/order/order.hpp"
#include "src/plan/operations.hpp"

namespace penstock::plan {

/// Threads  immutable; any number of threads.
class Plan {
 public:
  /// Errors  std::invalid_argument  no input; see check()
  [[nodiscard]] static PlanPtr starting_with(Operation input);
  /// This plan and one more operation.
  ///
  /// Errors  std::invalid_argument  it does not fit; says why and what to do
  [[nodiscard]] PlanPtr with(Operation operation) const;

  [[nodiscard]] std::span<const Operation> operations() const noexcept { return operations_; }
  [[nodiscard]] const Operation& input() const noexcept { return operations_.front(); }
  /// The first operation of this kind; null where there is none.
  template <class T>
  [[nodiscard]] const T* find() const noexcept {
    for (const Operation& operation : operations_)
      if (const T* found = std::get_if<T>(&operation)) return found;
    return nullptr;
  }

  /// The plans that a mix, concatenate, zip or partners begins with; empty for others.
  [[nodiscard]] std::span<const PlanPtr> parts() const noexcept;
  /// The plan's stream; null where it reads sources. A stream is the only input.
  [[nodiscard]] Stream* stream() const noexcept;
  /// Those of prefetch_to_devices, else host:0.
  [[nodiscard]] std::vector<Device> devices() const;
  /// Those of prefetch_to_devices, else the defaults.
  [[nodiscard]] PrefetchOptions prefetch() const;
  /// Errors  std::invalid_argument  there is no batch
  [[nodiscard]] const Batch& batch() const;

  /// The seed of everything random that has none of its own: that of Dataset::seed, else the first
  /// operation's that has one; none: it is drawn.
  [[nodiscard]] std::optional<std::uint64_t> seed() const;
  /// That of Dataset::seed alone, which a plan keeps when it becomes a part of another.
  [[nodiscard]] std::optional<std::uint64_t> given_seed() const;
  /// A source and maps, nothing on positions.
  [[nodiscard]] bool is_plain() const noexcept;
  /// Operations on positions, those of the longest part included.
  [[nodiscard]] std::uint32_t operations_on_positions() const noexcept;
  /// Of the operations that shard() made, those of the parts included.
  [[nodiscard]] std::vector<Shard> shards() const;

 private:
  std::vector<Operation> operations_;
};

}  // namespace penstock::plan
