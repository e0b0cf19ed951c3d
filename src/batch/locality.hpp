// batch/locality: rows of a global batch go to replicas on the machines that are the homes of their samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/batch/slicing.hpp"

namespace penstock::batch {

/// Every sample has a home among the machines, found by rendezvous hashing of (source, number): the machine whose hash with the
/// sample is largest. So of n machines each is the home of about 1/n of the samples, and one more or one less moves only the
/// samples that it gains or leaves.
///
/// Threads  const; any number of threads.
class Locality {
 public:
  /// `machines` has the machine of each replica: any numbers that stay with the machines.
  explicit Locality(std::span<const std::uint64_t> machines);

  [[nodiscard]] std::uint64_t home_of(const SampleId& sample) const noexcept {
    return machines_[best_of(sample, {}).place];
  }
  /// The rows of a global batch in the order of the replicas that get them: first those of replica 0. Each replica gets as many
  /// as its slice has samples, in ascending order. A machine that is the home of more rows than its replicas take keeps those
  /// whose hashes are largest; the others go, largest hash first, to the machine with room whose hash with them is largest. A
  /// machine's rows go to its replicas in turn. Costs a hash for each row and machine.
  ///
  /// Shapes  samples [rows], as many as the slices have together; slices [replicas]
  [[nodiscard]] std::vector<std::uint64_t> rows(std::span<const SampleId> samples,
                                                std::span<const Slice> slices) const;

 private:
  struct Home {
    std::size_t place = 0;  // of its machine, in machines_
    std::uint64_t hash = 0;
  };
  /// Among machines that have room; an empty list: among all.
  [[nodiscard]] Home best_of(const SampleId& sample,
                             std::span<const std::uint64_t> room) const noexcept;

  std::vector<std::uint64_t> machines_;               // ascending, each once
  std::vector<std::uint64_t> keys_;                   // their hashes
  std::vector<std::vector<std::uint32_t>> replicas_;  // of each
};

}  // namespace penstock::batch
