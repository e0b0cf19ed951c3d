// The rooms table, as a check: which room's files may include which room's; and that no file includes itself by a way
// round.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace penstock::layering {

/// One include that runs against the table.
struct Violation {
  std::filesystem::path file;  ///< relative to the root of the tree
  int line = 0;
  std::string rule;

  /// file:line: rule
  [[nodiscard]] std::string to_string() const;
};

/// Every violation below `root`, a checkout: include/, src/, testing/, pipelines/, bench/ and python/.
[[nodiscard]] std::vector<Violation> scan(const std::filesystem::path& root);

/// Files that include each other in a circle, one line a circle: "a -> b -> a".
[[nodiscard]] std::vector<std::string> cycles(const std::filesystem::path& root);
/// The same of the folders in src/: one that is used by another does not use it.
[[nodiscard]] std::vector<std::string> folder_cycles(const std::filesystem::path& root);

}  // namespace penstock::layering
