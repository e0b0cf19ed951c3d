// source/yolo/label_file: the instances of one image, as a label file of YOLO's has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/error.hpp>

namespace penstock::source {

/// What all label files of a data set have in common.
struct YoloForm {
  static constexpr std::size_t kMostKeypoints = 10'000;

  std::size_t classes = 0;    ///< 0: a class is any number from 0 on
  std::size_t keypoints = 0;  ///< of each instance
  std::size_t numbers = 0;    ///< of each keypoint: 2 or 3; 0: each file has one of them
  bool masks = false;         ///< whether polygons are wanted
  bool corners = false;       ///< whether the corners of boxes that are turned are wanted
};

struct YoloInstances {
  std::vector<float>
      boxes;  ///< the middle, width and height of each, as fractions of the image's width and height
  std::vector<std::int64_t> labels;
  std::vector<float> keypoints;  ///< x, y and visibility of each
  std::string masks;             ///< a list in JSON, with a list of the polygon of each
  std::vector<float> corners;    ///< x and y of the four of each
};

/// Instances that are there several times are taken once.
///
/// Errors  Fault  with the line in its reason: as source::yolo()
[[nodiscard]] Result<YoloInstances> parse_yolo_labels(std::string_view text, const YoloForm& form);

}  // namespace penstock::source
