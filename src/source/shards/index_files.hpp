// source/shards/index_files: the indexes of shards, found beside them or in the cache, or made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <penstock/source/shards.hpp>

#include "src/source/shards/shard_index.hpp"
#include "src/storage/storage.hpp"

namespace penstock::source {

/// What a scan found in a shard; the records' number is not always that of the members.
struct ScannedShard {
  std::uint64_t records = 0;
  ShardContents contents;
  bool is_complete =
      true;  ///< false: a build with more libraries would find more, and the index is not kept
};

/// How one kind of shard is indexed.
struct IndexRecipe {
  ShardKind kind{};
  std::vector<std::string> labels{};  ///< names that the index must hold labels for
  std::string found_with{};           ///< what the records must have been found with
  /// Scans a shard, with the labels of these names.
  ///
  /// Errors  Error  the file cannot be read, or is not of this kind at all
  std::function<ScannedShard(const storage::StoredFile& file, const std::string& path,
                             std::span<const std::string> labels)>
      scan;
};

/// Where the index of a shard lies beside it: <shard>.penstock-index. Of a Parquet file its name begins with a point: readers of
/// Parquet take every file of a folder that is not hidden.
[[nodiscard]] std::string index_path(ShardKind kind, const std::string& shard);

/// How many threads may scan each of so many shards, which are all scanned at once.
[[nodiscard]] std::size_t threads_in_shard(const IndexOptions& options, std::size_t shards);

/// The index of each shard, in the same order. What cannot be written is kept in memory alone.
///
/// Beside an object nothing is written; an index that lies there, made from a local copy, is taken
/// if it is of a shard of the same size, since its time of change tells nothing.
///
/// Errors  std::invalid_argument  options.threads is negative
///         Error                  a shard is missing, is not a regular file, cannot be read, or
///                                changes while it is scanned
[[nodiscard]] std::vector<ShardIndex> open_indexes(std::span<const std::string> shards,
                                                   const IndexRecipe& recipe,
                                                   const IndexOptions& options,
                                                   const storage::Storage& storage);

}  // namespace penstock::source
