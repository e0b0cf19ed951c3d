// sequence/running_lengths: which document stands at which place when all lie one behind the other.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace penstock::sequence {

/// Lengths of documents [first, first + lengths.size()), in the order in which they are taken.
using ReadLengths = std::function<void(std::uint64_t first, std::span<std::uint64_t> lengths)>;

/// Sums of lengths, one for every 64 documents; what lies between is added up again.
///
/// Threads  const, any number at once.
class RunningLengths {
 public:
  /// Asks for every length once, from many threads.
  ///
  /// Errors  Error  more than 2^63 - 1 tokens in all
  RunningLengths(std::uint64_t documents, ReadLengths read);

  [[nodiscard]] std::uint64_t total() const noexcept { return sums_.back(); }
  /// Of all lengths.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

  struct Place {
    std::uint64_t document;
    std::uint64_t offset;  ///< within it
  };
  /// Where token `position` < total() stands.
  [[nodiscard]] Place find(std::uint64_t position) const;

  static constexpr std::uint64_t kGroup = 64;

 private:
  std::uint64_t documents_;
  ReadLengths read_;
  std::uint64_t hash_ = 0;
  std::vector<std::uint64_t> sums_;  // of the documents before each group; the last is of all
};

}  // namespace penstock::sequence
