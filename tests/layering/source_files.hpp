// The C++ and CUDA sources of a checkout.
#pragma once

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace penstock::layering {

/// All below these folders of `root`, relative to it, in order; a folder may be missing.
inline std::vector<std::filesystem::path> source_files(const std::filesystem::path& root,
                                                       const std::vector<std::string>& folders) {
  static const std::set<std::string> kExtensions = {".hpp", ".h", ".cpp", ".cu", ".cuh"};
  std::vector<std::filesystem::path> files;
  for (const std::string& folder : folders) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file() && kExtensions.contains(entry.path().extension().string()))
        files.push_back(entry.path().lexically_relative(root));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace penstock::layering
