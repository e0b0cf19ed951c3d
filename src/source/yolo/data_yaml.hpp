// source/yolo/data_yaml: the file that describes a data set of YOLO's.
#pragma once

#include <string>
#include <vector>

#include "src/source/yolo/label_file.hpp"

namespace penstock::source {

struct DataYaml {
  std::string path{};                 ///< as it stands there; "": there is none
  std::vector<std::string> places{};  ///< of the split: folders and lists of images
  std::vector<std::string> names{};   ///< of the classes
  YoloForm form{};
  std::vector<int> flip_index{};  ///< of the keypoints; empty: it is not there
};

/// Errors  Error  the file cannot be read, is no YAML, or not of this form; it has no such split; this build has no yaml-cpp
[[nodiscard]] DataYaml read_data_yaml(const std::string& file, const std::string& split);

}  // namespace penstock::source
