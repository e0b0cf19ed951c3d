// source/arrow/arrow_files: from the user's paths to the Arrow files of one data set, and the rows that it has of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/source/shards.hpp>

namespace penstock::source {

/// *.arrow, *.arrows, *.ipc or *.feather, in any case.
[[nodiscard]] bool is_arrow_name(std::string_view name);

struct ArrowFiles {
  std::vector<std::string> paths;
  /// The rows, where a folder of datasets' save_to_disk() has chosen some; empty: all.
  std::vector<std::uint64_t> rows;
  bool has_rows = false;
};

/// Errors  std::invalid_argument  nothing given, an empty path, or a URL
///         Error                  a path or pattern leads to no file; a folder cannot be listed, is that of several splits, or
///                                its state.json or its list of rows is damaged
[[nodiscard]] ArrowFiles find_arrow_files(const ShardPaths& paths);

}  // namespace penstock::source
