// source/coco/coco_file: an annotation file of COCO's form, as columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::source {

struct CocoCategory {
  std::int64_t id = 0;
  std::string name{};
};

/// Why an image has no values: what is wrong with the first of its annotations that is damaged.
struct CocoFault {
  std::uint64_t image = 0;  // its number
  std::string reason{};
};

struct CocoFile {
  static constexpr std::uint64_t kNoKeypoints = std::numeric_limits<std::uint64_t>::max();

  std::vector<std::int64_t> image_ids;  // ascending
  std::vector<std::string> file_names;
  std::vector<std::uint64_t> begins;  // of the objects of each image, and the end
  // One for each object; those of an image are in the order of the file.
  std::vector<float> boxes;           // four: x1, y1, x2, y2
  std::vector<std::int64_t> classes;  // numbers of categories
  std::vector<float> areas;
  std::vector<std::uint8_t> crowds;
  // Where categories have keypoints: their number, the first value of each object's, and the values.
  std::size_t keypoints = 0;
  std::vector<int> flip_index;  // by the names of the keypoints; empty: they have no left and right
  std::vector<std::uint64_t> keypoint_begins;  // kNoKeypoints: zeros
  std::vector<float> keypoint_values;
  std::vector<std::int64_t> annotation_ids;
  // Where the text of each object's segmentation lies in that of the file; of no bytes where it has none.
  std::vector<std::uint64_t> segmentation_begins;
  std::vector<std::uint32_t> segmentation_bytes;
  std::uint64_t segmentations_hash = 0;  // of these texts, in the order of the file
  std::vector<CocoCategory> categories;  // by ascending ids
  std::vector<CocoFault> faults;         // by ascending images, one for each
  bool has_annotations = false;          // the list, which may be empty
  // Of a file of captions, whose objects have nothing else: all texts, and where that of each object ends.
  bool has_captions = false;
  std::string captions;
  std::vector<std::uint64_t> caption_ends;
};

/// Reads `text`, the file `name`. What it does not need it skips, at any depth of brackets and without recursion; of what is
/// between the brackets of a "segmentation" it notes only where it is.
///
/// Errors  Error  it is not JSON, or not of this form; it has no images; an id that is no integer of i64, that two images or
///                two categories have, or that an annotation refers to and that is not there; a file_name that is missing,
///                empty or has a zero byte; categories with unlike numbers of keypoints; annotations of which some have a category
///                and others only a caption
[[nodiscard]] CocoFile parse_coco(std::string_view text, std::string_view name);

}  // namespace penstock::source
