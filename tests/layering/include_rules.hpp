// The rooms table, as a check: which room's files may include which room's.
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

/// Every violation below `root`, a checkout: include/, src/, pipelines/, bench/ and python/.
[[nodiscard]] std::vector<Violation> scan(const std::filesystem::path& root);

}  // namespace penstock::layering
