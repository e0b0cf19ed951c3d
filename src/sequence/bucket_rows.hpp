// sequence/bucket_rows: how many rows the batches of each bucket have.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace penstock::sequence {

/// What a call asks for, and what a row costs.
struct BucketRows {
  const char* verb = "";     ///< the call, for errors: "batch_by_length"
  const char* unit = "";     ///< what is counted, and the option's name: "tokens"
  const char* buckets = "";  ///< what there is one of for each bucket: "edges"
  std::optional<std::uint64_t> most;
  std::span<const std::uint64_t> rows;
  std::uint64_t multiple = 1;
  std::vector<std::uint64_t> costs;  ///< of a row of each bucket, 1 or more
};

/// Errors  std::invalid_argument  they contradict each other; names the one to change
void check(const BucketRows& asked);

/// Rows of a full batch of each bucket, of what check() takes.
[[nodiscard]] std::vector<std::uint64_t> rows_of(const BucketRows& asked);

}  // namespace penstock::sequence
