// source/arrow/arrow_files: from the user's paths to the Arrow files of one data set, and the rows that it has of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <penstock/source/shards.hpp>
#include <penstock/source/source.hpp>

namespace penstock::source {

struct ArrowFiles {
  std::vector<std::string> paths;
  /// The rows, where a folder of datasets' save_to_disk() has chosen some; empty: all.
  std::vector<std::uint64_t> rows;
  bool has_rows = false;
  std::vector<Notice> notices;  ///< what of folders was left out
};

/// Errors  std::invalid_argument  nothing given, an empty path, or a URL
///         Error                  a path or pattern leads to no file; a folder cannot be listed, is that of several splits, or
///                                its state.json or its list of rows is damaged
[[nodiscard]] ArrowFiles find_arrow_files(const ShardPaths& paths);

/// arrow() with the fields "image" and "label" i64, of the columns that images() says. Where `optional_label` is given, it
/// is the label of rows that have none.
///
/// Errors  Error  there is not one such column each; and as arrow()
[[nodiscard]] SourcePtr arrow_images(const ShardPaths& files,
                                     std::optional<std::int64_t> optional_label = {});

}  // namespace penstock::source
