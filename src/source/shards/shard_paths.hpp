// source/shards/shard_paths: from the user's paths and patterns to the list of shards.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/source/shards.hpp>
#include <penstock/source/source.hpp>

#include "src/storage/storage.hpp"

namespace penstock::source {

/// All texts that a shell makes of braces: {a,b}, {1..3}, {08..10}, {0..9..3}, {a..e}, also nested.
/// A brace that begins none of these stands for itself.
///
/// Errors  std::invalid_argument  there would be more than kMaxExpansions
[[nodiscard]] std::vector<std::string> expand_braces(std::string_view pattern);
inline constexpr std::size_t kMaxExpansions = 10'000'000;

struct FoundShards {
  std::vector<std::string> paths;
  std::vector<Notice> notices;  ///< what of folders was left out, and may belong to the data set
};

/// The shards' paths, in their order. `is_shard` says which files of a folder count, by their
/// names, and `what` how to call them, such as "*.tar files".
///
/// An object that is named, or that braces stand for, is not looked for: it is when it is opened.
///
/// Errors  std::invalid_argument  nothing given, an empty path, or a URL other than s3://, hf:// and https://
///         Error                  a path or pattern leads to no file, or a folder cannot be listed, or has files of several
///                                splits, or lacks some of those that its files' names count
[[nodiscard]] FoundShards find_shards(const ShardPaths& paths,
                                      const std::function<bool(std::string_view name)>& is_shard,
                                      std::string_view what, const storage::Storage& storage);

}  // namespace penstock::source
