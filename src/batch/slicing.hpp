// batch/slicing: which replica gets which rows of a global batch.
#pragma once

#include <cstdint>
#include <vector>

#include <penstock/batch/slicing.hpp>

namespace penstock::batch {

/// One replica's contiguous share of a global batch.
struct Slice {
  std::uint64_t first = 0;    ///< its first row in the global batch
  std::uint64_t samples = 0;  ///< rows that hold a sample; they come first
  std::uint64_t rows = 0;     ///< rows delivered, padding included
};

/// Splits global batches of `global_batch` rows over `replicas`; docs/who-gets-which-sample.md
/// shows how. A step of round_robin is R batches in a row, so full steps are those of scatter; a
/// short one is filled from the front.
///
/// Threads  const; any number of threads.
class Slicing {
 public:
  /// Errors  std::invalid_argument  global_batch or replicas is 0; or global_batch is not divisible
  ///                                by replicas and `uneven` is not set, or cannot be with this split
  ///                                (the message says what to do)
  Slicing(std::uint64_t global_batch, std::uint64_t replicas, Remainder remainder, bool uneven,
          Split split = Split::scatter);

  [[nodiscard]] std::uint64_t global_batch() const noexcept { return global_batch_; }
  [[nodiscard]] std::uint64_t replicas() const noexcept { return replicas_; }
  [[nodiscard]] Remainder remainder() const noexcept { return remainder_; }
  [[nodiscard]] Split split() const noexcept { return split_; }
  /// The most rows that one replica ever gets.
  [[nodiscard]] std::uint64_t max_rows() const noexcept {
    return (global_batch_ + replicas_ - 1) / replicas_;
  }

  /// The shares of all replicas in step `step`, of which the order yielded `samples` numbers.
  /// Scattered full and kept batches: q = samples div R rows each, and one more for replica (step *
  /// (g mod R) + j) mod R, j < samples mod R. Padded and round-robin batches are divided as if
  /// full, and filled with samples from the front. Not for shard_early, whose replicas are counted
  /// one by one: see StepCursor.
  [[nodiscard]] std::vector<Slice> slices(std::uint64_t step, std::uint64_t samples) const;

 private:
  std::uint64_t global_batch_;
  std::uint64_t replicas_;
  Remainder remainder_;
  Split split_;
};

}  // namespace penstock::batch
