// COCO annotation files: refused by an Error, or as columns that fit each other and have what a JSON parser finds. The same bytes
// are label files of YOLO's: a fault, or instances that are within the image; an XML file of Pascal VOC's: a fault, or boxes
// that end where they begin, or later; and segmentations: a fault, or masks of zeros and ones.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <penstock/core/error.hpp>

#include "src/source/coco/coco_file.hpp"
#include "src/source/voc/voc_file.hpp"
#include "src/source/yolo/label_file.hpp"
#include "src/transform/segmentations.hpp"

namespace {

using penstock::source::CocoFile;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_segmentations(std::string_view text) {
  constexpr int kHeight = 5;
  constexpr int kWidth = 7;
  static penstock::transform::Segmentations segmentations;
  if (auto read = segmentations.read(text); !read) {
    require(!read.fault().reason.empty());
    return;
  }
  const penstock::transform::Window window{
      .image = {kHeight, kWidth},
      .sample = {kHeight, kWidth},
      .region = {.x = 0, .y = 0, .width = kWidth, .height = kHeight},
      .place = {0, 0, kWidth, kHeight},
      .across = {.first = 0, .count = kWidth, .total = kWidth, .from = 0, .outputs = kWidth},
      .down = {.first = 0, .count = kHeight, .total = kHeight, .from = 0, .outputs = kHeight}};
  segmentations.see(window);
  for (std::size_t i = 0; i < segmentations.count(); ++i)
    for (const bool normalized : {false, true}) {
      std::vector<std::uint8_t> mask(std::size_t{kHeight} * kWidth, 7);
      if (segmentations.draw(i, normalized, mask.data()))
        require(std::ranges::all_of(mask, [](std::uint8_t value) { return value <= 1; }));
    }
}

void check(const CocoFile& file, std::string_view text) {
  const std::size_t images = file.image_ids.size();
  const std::size_t instances = file.classes.size();
  require(images > 0 && file.file_names.size() == images && file.begins.size() == images + 1);
  require(file.begins.front() == 0 && file.begins.back() == instances);
  require(std::ranges::is_sorted(file.begins));
  require(std::ranges::adjacent_find(file.image_ids, std::greater_equal()) == file.image_ids.end());
  require(file.boxes.size() == 4 * instances && file.areas.size() == instances &&
          file.crowds.size() == instances);
  for (const std::int64_t number : file.classes)
    require(number >= 0 && static_cast<std::size_t>(number) < file.categories.size());
  require(file.keypoint_begins.size() == (file.keypoints == 0 ? 0 : instances));
  for (const std::uint64_t begin : file.keypoint_begins)
    require(begin == CocoFile::kNoKeypoints ||
            (begin <= file.keypoint_values.size() &&
             file.keypoint_values.size() - begin >= 3 * file.keypoints));
  require(file.segmentation_begins.size() == instances &&
          file.segmentation_bytes.size() == instances);
  for (std::size_t i = 0; i < instances; ++i) {
    if (file.segmentation_bytes[i] == 0) continue;
    const std::string_view of =
        text.substr(file.segmentation_begins[i], file.segmentation_bytes[i]);
    require(of.size() == file.segmentation_bytes[i] &&
            ((of.front() == '[' && of.back() == ']') || (of.front() == '{' && of.back() == '}')));
    check_segmentations(std::string("[").append(of).append("]"));
  }
  for (const penstock::source::CocoFault& fault : file.faults)
    require(fault.image < images && !fault.reason.empty());
}

void check_labels(std::string_view text, const penstock::source::YoloForm& form) {
  const auto read = penstock::source::parse_yolo_labels(text, form);
  if (!read) {
    require(read.fault().reason.starts_with("line "));
    return;
  }
  const std::size_t instances = read->labels.size();
  require(read->boxes.size() == 4 * instances &&
          read->keypoints.size() == 3 * form.keypoints * instances);
  for (const std::int64_t label : read->labels)
    require(label >= 0 && (form.classes == 0 || static_cast<std::size_t>(label) < form.classes));
  for (const float number : read->boxes) require(number >= -0.011F && number <= 1.011F);
  for (const float number : read->keypoints) require(number >= -0.011F && number <= 2);
  if (!form.masks) return;
  penstock::transform::Segmentations segmentations;
  require(segmentations.read(read->masks) && segmentations.count() == instances);
}

void check_voc(std::string_view text) {
  const auto read = penstock::source::parse_voc(text, true);
  if (!read) {
    require(!read.fault().reason.empty());
    return;
  }
  const std::size_t instances = read->names.size();
  require(read->boxes.size() == 4 * instances && read->difficult.size() == instances &&
          read->truncated.size() == instances);
  for (std::size_t i = 0; i < instances; ++i) {
    require(!read->names[i].empty() && read->difficult[i] <= 1 && read->truncated[i] <= 1);
    require(read->boxes[4 * i] <= read->boxes[4 * i + 2] &&
            read->boxes[4 * i + 1] <= read->boxes[4 * i + 3]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_labels(text, {});
  check_labels(text, {.classes = 3, .keypoints = 2});
  check_labels(text, {.masks = true});
  check_segmentations(text);
  check_voc(text);
  try {
    const CocoFile file = penstock::source::parse_coco(text, "annotations");
    check(file, text);
    const auto whole = nlohmann::json::parse(text, nullptr, false);
    if (!whole.is_object()) return 0;  // what is in a segmentation need not be JSON
    require(whole["images"].size() == file.image_ids.size());
    require(whole.value("annotations", nlohmann::json::array()).size() == file.classes.size());
  } catch (const penstock::Error&) {
  }
  return 0;
}
