#include "src/source/coco/coco_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#define XXH_INLINE_ALL  // only what is used here becomes code
#include <xxhash.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/core/printable.hpp"
#include "src/core/progress.hpp"
#include "src/source/coco/coco_text.hpp"

namespace penstock::source {

namespace {

constexpr std::size_t kShownOfText = 100;  // bytes in a message

// One value that is no list and no object.
struct CocoScalar {
  enum class Kind : std::uint8_t { null, boolean, integer, real, text };
  Kind kind = Kind::null;
  std::int64_t integer = 0;           // also of a boolean
  double real = 0;                    // also of an integer
  const std::string* text = nullptr;  // also of a real, as the file has it

  [[nodiscard]] bool is_number() const noexcept {
    return kind == Kind::integer || kind == Kind::real;
  }
  [[nodiscard]] std::string shown() const {
    switch (kind) {
      case Kind::null:
        return "null";
      case Kind::boolean:
        return integer != 0 ? "true" : "false";
      case Kind::integer:
        return fmt::to_string(integer);
      case Kind::real:
        return core::printable(*text, kShownOfText);
      default:
        return '"' + core::printable(*text, kShownOfText) + '"';
    }
  }
};

// Fields of the objects in the three lists.
enum class CocoKey : std::uint8_t {
  skipped,
  id,
  file_name,
  coco_url,
  image_id,
  category_id,
  bbox,
  area,
  iscrowd,
  keypoints,
  segmentation,
  caption,
  name,
};

enum class CocoList : std::uint8_t { skipped, images, annotations, categories };
constexpr std::array<std::string_view, 4> kCocoListNames{"", "images", "annotations", "categories"};
constexpr std::array<std::string_view, 4> kCocoNouns{"", "image", "annotation", "category"};

CocoKey key_of(CocoList list, std::string_view text) {
  if (text == "id") return CocoKey::id;
  switch (list) {
    case CocoList::images:
      if (text == "file_name") return CocoKey::file_name;
      return text == "coco_url" ? CocoKey::coco_url : CocoKey::skipped;
    case CocoList::annotations:
      if (text == "image_id") return CocoKey::image_id;
      if (text == "category_id") return CocoKey::category_id;
      if (text == "bbox") return CocoKey::bbox;
      if (text == "area") return CocoKey::area;
      if (text == "iscrowd") return CocoKey::iscrowd;
      if (text == "keypoints") return CocoKey::keypoints;
      if (text == "segmentation") return CocoKey::segmentation;
      return text == "caption" ? CocoKey::caption : CocoKey::skipped;
    case CocoList::categories:
      if (text == "name") return CocoKey::name;
      return text == "keypoints" ? CocoKey::keypoints : CocoKey::skipped;
    default:
      return CocoKey::skipped;
  }
}

// One object of a list, as far as it is read.
struct CocoItem {
  std::optional<std::int64_t> id{}, image_id{}, category_id{};
  std::string text{};     // file_name or name
  std::string url{};      // coco_url, which stands for the file_name where there is none
  bool has_text = false;  // which may be empty
  std::string wrong{};    // why the file is refused, once the item's id is known
  std::string fault{};    // why the image of an annotation is a fault
  bool has_box = false;
  std::array<double, 4> box{};
  std::optional<double> area{};
  bool is_crowd = false;
  bool has_keypoints = false;
  std::uint64_t keypoint_count = 0;           // values of an annotation, names of a category
  std::vector<std::string> keypoint_names{};  // of a category
  std::string_view segmentation{};            // with its brackets
  std::optional<std::string> caption{};
};

// For each keypoint the one that it is in a mirrored image, such as right_eye for left_eye; empty where no name has a side, or
// where the other side of one is not there.
std::vector<int> flip_index_of(const std::vector<std::string>& names) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSides{
      {{"left", "right"},
       {"right", "left"},
       {"Left", "Right"},
       {"Right", "Left"},
       {"LEFT", "RIGHT"},
       {"RIGHT", "LEFT"}}};
  std::vector<int> index;
  bool has_sides = false;
  for (const std::string& name : names) {
    std::string mirrored = name;
    for (const auto& [side, other] : kSides)
      if (const std::size_t at = name.find(side); at != name.npos) {
        mirrored.replace(at, side.size(), other);
        has_sides = true;
        break;
      }
    const auto found = std::ranges::find(names, mirrored);
    if (found == names.end()) return {};
    index.push_back(static_cast<int>(found - names.begin()));
  }
  for (std::size_t k = 0; k < index.size(); ++k)  // a name that is there twice
    if (std::cmp_not_equal(index[static_cast<std::size_t>(index[k])], k)) return {};
  return has_sides ? index : std::vector<int>();
}

// What nlohmann's parser calls. It keeps columns in the order of the file; finish() sorts them.
class CocoReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  CocoReader(std::string_view text, CocoText& read, std::string_view name)
      : text_(text),
        read_(read),
        name_(name),
        progress_(fmt::format("reading the annotations of {}", core::printable(name)), "entries") {}

  bool null() override { return take({}); }
  bool boolean(bool value) override {
    return take({.kind = CocoScalar::Kind::boolean, .integer = value ? 1 : 0});
  }
  bool number_integer(std::int64_t value) override {
    return take(
        {.kind = CocoScalar::Kind::integer, .integer = value, .real = static_cast<double>(value)});
  }
  bool number_unsigned(std::uint64_t value) override {
    if (std::in_range<std::int64_t>(value)) return number_integer(static_cast<std::int64_t>(value));
    return number_float(static_cast<double>(value), fmt::to_string(value));
  }
  bool number_float(double value, const std::string& text) override {
    return take({.kind = CocoScalar::Kind::real, .real = value, .text = &text});
  }
  bool string(std::string& value) override {
    return take({.kind = CocoScalar::Kind::text, .text = &value});
  }
  bool binary(nlohmann::json::binary_t&) override { return true; }  // JSON has none

  bool start_object(std::size_t) override {
    if (skipped_levels_ > 0) {
      ++skipped_levels_;
      return true;
    }
    switch (place_) {
      case Place::outside:
        place_ = Place::top;
        return true;
      case Place::top:
        return skip_value("an object");
      case Place::list:
        item_ = {};
        place_ = Place::item;
        return true;
      default:
        return skip_value("an object");
    }
  }
  bool end_object() override {
    if (skipped_levels_ > 0) {
      --skipped_levels_;
    } else if (place_ == Place::item) {
      add_item();
      place_ = Place::list;
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (skipped_levels_ > 0) {
      ++skipped_levels_;
      return true;
    }
    switch (place_) {
      case Place::outside:
        refuse_top("a list: a list is what a file of results has");
      case Place::top:
        if (list_ == CocoList::skipped) return skip_value("a list");
        if (!lists_.insert(list_).second)
          fail(fmt::format("it has \"{}\" twice; leave one of them out", list_name()));
        position_ = 0;
        place_ = Place::list;
        return true;
      case Place::list:
        return skip_value("a list");
      case Place::item:
        if (key_ != CocoKey::bbox && key_ != CocoKey::keypoints) return skip_value("a list");
        begin_values();
        place_ = Place::values;
        return true;
      default:
        return skip_value("a list");
    }
  }
  bool end_array() override {
    if (skipped_levels_ > 0) {
      --skipped_levels_;
    } else if (place_ == Place::values) {
      end_values();
      place_ = Place::item;
    } else if (place_ == Place::list) {
      place_ = Place::top;
    }
    return true;
  }
  bool key(std::string& text) override {
    if (skipped_levels_ > 0) return true;
    if (place_ == Place::item) {
      key_ = key_of(list_, text);
      read_.forget();
      return true;
    }
    const auto* const found = std::ranges::find(kCocoListNames, std::string_view(text));
    list_ = found == kCocoListNames.end() || text.empty()
                ? CocoList::skipped
                : static_cast<CocoList>(found - kCocoListNames.begin());
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    const std::size_t at =
        std::min((position == 0 ? 0 : position - 1) + read_.left_out(), text_.size());
    const auto line =
        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    const std::string where =
        fmt::format("it is not JSON: at line {}, byte {} of the file, ", line, at);
    const std::string_view rest = text_.substr(at);
    for (const std::string_view word : {"NaN", "Infinity"})
      if (rest.starts_with(word))
        fail(
            fmt::format("{}it has {}, which Python's json writes for a number that is none: "
                        "correct the value, or remove its annotation",
                        where, word));
    if (text_.empty()) fail("it is empty; copy it again");
    if (at >= text_.size()) fail(where + "it ends too early; copy it again");
    std::string_view what = error.what();
    if (error.id == 406) fail(where + "it has a number that is too large for f64; correct it");
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …"
    if (const auto begin = what.find(": "); begin != what.npos) what.remove_prefix(begin + 2);
    fail(fmt::format("{}there is a {}; write the file anew", where, core::printable(what, 200)));
  }

  [[nodiscard]] CocoFile finish() {
    if (!lists_.contains(CocoList::images))
      fail(
          "it has no \"images\": expected an annotation file of COCO's, such as "
          "instances_train2017.json; give that one");
    if (image_ids_.empty()) fail("its list of images is empty; give a file with images");
    CocoFile file;
    file.has_annotations = lists_.contains(CocoList::annotations);
    sort_images(file);
    sort_categories(file);
    sort_objects(file);
    return file;
  }

 private:
  enum class Place : std::uint8_t { outside, top, list, item, values };

  struct Fault {
    std::uint64_t object;  // in the order of the file
    std::string reason;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("coco: {}: {}", core::printable(name_), what));
  }
  [[noreturn]] void refuse_top(const std::string& found) const {
    fail(fmt::format(
        "expected an object with \"images\", \"annotations\" and \"categories\", found {}; give "
        "the annotation file",
        found));
  }
  [[nodiscard]] std::string_view list_name() const {
    return kCocoListNames[static_cast<std::size_t>(list_)];
  }
  [[nodiscard]] std::string_view key_name() const {
    constexpr std::array<std::string_view, 13> kNames{
        "",     "id",      "file_name", "coco_url",     "image_id", "category_id", "bbox",
        "area", "iscrowd", "keypoints", "segmentation", "caption",  "name"};
    return kNames[static_cast<std::size_t>(key_)];
  }
  // "the annotation with the id 7", or by its place where it has none.
  [[nodiscard]] std::string item_name() const {
    const std::string_view noun = kCocoNouns[static_cast<std::size_t>(list_)];
    if (item_.id) return fmt::format("the {} with the id {}", noun, *item_.id);
    return fmt::format("the {} at place {} of the list, from 0,", noun, position_);
  }

  // A value of brackets where none belongs, or in what is not needed.
  bool skip_value(const char* found) {
    skipped_levels_ = 1;
    if (place_ == Place::item && key_ == CocoKey::segmentation) item_.segmentation = read_.taken();
    wrong_value(found);
    return true;
  }

  bool take(const CocoScalar& value) {
    if (skipped_levels_ > 0) return true;
    switch (place_) {
      case Place::outside:
        refuse_top(value.shown());
      case Place::top:
      case Place::list:
        wrong_value(value.shown());
        return true;
      case Place::item:
        set(value);
        return true;
      default:
        add_value(value);
        return true;
    }
  }

  // What is found is not what belongs to this place.
  void wrong_value(const std::string& found) {
    if (place_ == Place::top) {
      if (list_ != CocoList::skipped)
        fail(fmt::format("expected a list as \"{}\", found {}; write the file anew", list_name(),
                         found));
    } else if (place_ == Place::list) {
      fail(fmt::format("expected an object at place {} of \"{}\", from 0, found {}; remove it",
                       position_, list_name(), found));
    } else if (place_ == Place::values) {
      if (wrong_element_.empty()) wrong_element_ = found;
    } else if (key_ == CocoKey::skipped || key_ == CocoKey::segmentation ||
               key_ == CocoKey::caption) {
      return;  // of a caption that is no text there is none
    } else if (key_ == CocoKey::bbox) {
      item_.has_box = true;
      fault(fmt::format("has {} for a bbox, and not four finite numbers", found));
    } else if (key_ == CocoKey::area || key_ == CocoKey::iscrowd ||
               (key_ == CocoKey::keypoints && list_ == CocoList::annotations)) {
      const char* expected = key_ == CocoKey::area      ? "a finite number"
                             : key_ == CocoKey::iscrowd ? "0 or 1"
                                                        : "a list of numbers";
      fault(fmt::format("has {} for {}, and not {}", found, key_name(), expected));
    } else if (item_.wrong.empty()) {
      const bool is_text =
          key_ == CocoKey::file_name || key_ == CocoKey::coco_url || key_ == CocoKey::name;
      const char* expected = is_text                      ? "a text"
                             : key_ == CocoKey::keypoints ? "a list of names"
                                                          : "an integer up to 2^63-1";
      item_.wrong =
          fmt::format("has {} for {}, and not {}; correct it", found, key_name(), expected);
    }
  }

  void fault(const std::string& what) {
    if (item_.fault.empty()) item_.fault = what;
  }

  void set(const CocoScalar& value) {
    using Kind = CocoScalar::Kind;
    switch (key_) {
      case CocoKey::skipped:
        return;
      case CocoKey::segmentation:  // what is no list and no object is none
        item_.segmentation = {};
        return;
      case CocoKey::id:
      case CocoKey::image_id:
      case CocoKey::category_id: {
        auto& id = key_ == CocoKey::id         ? item_.id
                   : key_ == CocoKey::image_id ? item_.image_id
                                               : item_.category_id;
        if (value.kind == Kind::integer)
          id = value.integer;
        else
          wrong_value(value.shown());
        return;
      }
      case CocoKey::file_name:
      case CocoKey::name:
        if (value.kind != Kind::text) return wrong_value(value.shown());
        item_.text = *value.text;
        item_.has_text = true;
        return;
      case CocoKey::coco_url:
        if (value.kind == Kind::null) return;
        if (value.kind != Kind::text) return wrong_value(value.shown());
        item_.url = *value.text;
        return;
      case CocoKey::area:
        if (value.kind == Kind::null) return;
        if (!value.is_number() || !std::isfinite(static_cast<float>(value.real)))
          return wrong_value(value.shown());
        item_.area = value.real;
        return;
      case CocoKey::iscrowd:
        if (value.kind == Kind::null) return;
        if (value.kind == Kind::text || (value.real != 0 && value.real != 1))
          return wrong_value(value.shown());
        item_.is_crowd = value.integer != 0 || value.real != 0;
        return;
      case CocoKey::keypoints:
        if (value.kind != Kind::null) wrong_value(value.shown());
        return;
      case CocoKey::caption:
        if (value.kind == Kind::text) item_.caption = *value.text;
        return;
      case CocoKey::bbox:
        return wrong_value(value.shown());
    }
  }

  // The values of a bbox, or of keypoints.
  void begin_values() {
    value_count_ = 0;
    wrong_element_.clear();
    item_.keypoint_names.clear();
    if (key_ == CocoKey::keypoints && list_ == CocoList::annotations)
      keypoint_values_.resize(keypoint_begin_);  // of the same key before
  }
  void add_value(const CocoScalar& value) {
    ++value_count_;
    if (list_ == CocoList::categories) {
      if (value.kind == CocoScalar::Kind::text)
        item_.keypoint_names.push_back(*value.text);
      else
        wrong_value(value.shown());
      return;
    }
    const auto number = static_cast<float>(value.real);
    if (!value.is_number() || !std::isfinite(number)) return wrong_value(value.shown());
    if (key_ == CocoKey::keypoints)
      keypoint_values_.push_back(number);
    else if (value_count_ <= item_.box.size())
      item_.box[value_count_ - 1] = value.real;
  }
  void end_values() {
    if (list_ == CocoList::categories) {
      item_.keypoint_count = value_count_;
      if (!wrong_element_.empty() && item_.wrong.empty())
        item_.wrong = fmt::format("has {} among the names of its keypoints; write a text there",
                                  wrong_element_);
    } else if (key_ == CocoKey::keypoints) {
      item_.has_keypoints = value_count_ > 0;
      item_.keypoint_count = value_count_;
      if (!wrong_element_.empty())
        fault(fmt::format("has {} among its keypoints, and not a finite number", wrong_element_));
    } else {
      item_.has_box = true;
      if (!wrong_element_.empty())
        fault(fmt::format("has {} in its bbox, and not four finite numbers", wrong_element_));
      else if (value_count_ != item_.box.size())
        fault(fmt::format("has a bbox of {} numbers, and not of four", value_count_));
    }
  }

  void add_item() {
    if (!item_.wrong.empty()) fail(fmt::format("{} {}", item_name(), item_.wrong));
    if (!item_.id) fail(fmt::format("{} has no id; give each an integer of its own", item_name()));
    if (list_ == CocoList::images) {
      add_image();
    } else if (list_ == CocoList::annotations) {
      add_annotation();
    } else {
      categories_.push_back({*item_.id, std::move(item_.text)});
      category_keypoints_.push_back(item_.keypoint_count);
      add_flip_index();
    }
    ++position_;
    constexpr std::uint64_t kTold = 1024;
    if (position_ % kTold == 0) {
      core::require_wanted();
      progress_.add(kTold);
    }
  }

  // The folder and the name at the end of a URL, as of LVIS: "train2017/000000391895.jpg".
  static std::string path_in_url(const std::string& url) {
    const std::size_t name = url.rfind('/');
    if (name == url.npos || name == 0) return {};
    const std::size_t folder = url.rfind('/', name - 1);
    return folder == url.npos ? std::string() : url.substr(folder + 1);
  }

  void add_image() {
    if (!item_.has_text) {
      item_.text = path_in_url(item_.url);
      item_.has_text = !item_.text.empty();
    }
    if (!item_.has_text || item_.text.empty())
      fail(fmt::format("{} has {} file_name: expected the path of its file below root", item_name(),
                       item_.has_text ? "an empty" : "no"));
    if (item_.text.find('\0') != item_.text.npos)
      fail(fmt::format("{} has a zero byte in its file_name, '{}'; correct it", item_name(),
                       core::printable(item_.text, kShownOfText)));
    image_ids_.push_back(*item_.id);
    file_names_.push_back(std::move(item_.text));
  }

  void add_annotation() {
    if (!item_.image_id)
      fail(fmt::format("{} has no image_id: expected that of its image", item_name()));
    if (!item_.category_id && item_.caption) return add_caption();
    if (!item_.category_id)
      fail(
          fmt::format("{} has no category_id, and no caption that is a text: this is perhaps a "
                      "file of panoptic segmentation; give the one of instances, keypoints or "
                      "captions",
                      item_name()));
    require_one_kind(false);
    const auto [x, y, width, height] = item_.box;
    const std::array<float, 4> box{static_cast<float>(x), static_cast<float>(y),
                                   static_cast<float>(x + width), static_cast<float>(y + height)};
    if (!item_.has_box) fault("has no bbox");
    if (width < 0 || height < 0)
      fault(fmt::format("has a bbox with a negative {}, [{}, {}, {}, {}]",
                        width < 0 ? "width" : "height", x, y, width, height));
    const double area = item_.area.value_or(width * height);
    if (!std::ranges::all_of(box, [](float value) { return std::isfinite(value); }) ||
        !std::isfinite(static_cast<float>(area)))
      fault(fmt::format("has a bbox that is too large for f32, [{}, {}, {}, {}]", x, y, width,
                        height));
    if (!item_.fault.empty())
      faults_.push_back({annotation_ids_.size(), fault_text(*item_.id, item_.fault)});

    annotation_ids_.push_back(*item_.id);
    of_image_.push_back(*item_.image_id);
    of_category_.push_back(*item_.category_id);
    boxes_.insert(boxes_.end(), box.begin(), box.end());
    areas_.push_back(static_cast<float>(area));
    crowds_.push_back(item_.is_crowd ? 1 : 0);
    add_segmentation(item_.segmentation);
    if (item_.has_keypoints)
      keypoint_rows_.push_back({annotation_ids_.size() - 1, keypoint_begin_,
                                item_.fault.empty() ? item_.keypoint_count : kDamaged});
    keypoint_begin_ = keypoint_values_.size();
  }

  // Files have annotations of one kind.
  void require_one_kind(bool is_caption) {
    if (annotation_ids_.empty()) are_captions_ = is_caption;
    if (is_caption != are_captions_)
      fail(fmt::format("{} has {}, and earlier ones have {}: make a file of each kind", item_name(),
                       is_caption ? "a caption and no category_id" : "a category_id",
                       is_caption ? "categories" : "captions and none"));
  }

  void add_caption() {
    require_one_kind(true);
    annotation_ids_.push_back(*item_.id);
    of_image_.push_back(*item_.image_id);
    captions_.push_back(*std::move(item_.caption));
  }

  void add_segmentation(std::string_view text) {
    // Longer than any: its instance has none then.
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) text = {};
    // Of nothing between the brackets: some programs write that for a box alone.
    if (!text.empty() && text.find_first_not_of(" \n\t\r", 1) == text.size() - 1) text = {};
    segmentation_begins_.push_back(
        text.empty() ? 0 : static_cast<std::uint64_t>(text.data() - text_.data()));
    segmentation_bytes_.push_back(static_cast<std::uint32_t>(text.size()));
    segmentations_hash_ = XXH3_64bits_withSeed(text.data(), text.size(), segmentations_hash_);
  }

  [[nodiscard]] static std::string fault_text(std::int64_t id, const std::string& what) {
    return fmt::format("the annotation with the id {} {}; correct it, or remove it", id, what);
  }

  void sort_images(CocoFile& file) {
    std::vector<std::uint64_t> order(image_ids_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::uint64_t image) { return image_ids_[image]; });
    for (const std::uint64_t image : order) {
      if (!file.image_ids.empty() && file.image_ids.back() == image_ids_[image])
        fail(fmt::format("two images have the id {}, '{}' and '{}'; give one of them another",
                         image_ids_[image], core::printable(file.file_names.back(), kShownOfText),
                         core::printable(file_names_[image], kShownOfText)));
      file.image_ids.push_back(image_ids_[image]);
      file.file_names.push_back(std::move(file_names_[image]));
    }
    image_ids_ = {};
    file_names_ = {};
  }

  // All categories with keypoints have to say the same.
  void add_flip_index() {
    if (item_.keypoint_count == 0) return;
    std::vector<int> index = flip_index_of(item_.keypoint_names);
    if (!flip_index_)
      flip_index_ = std::move(index);
    else if (*flip_index_ != index)
      flip_index_->clear();
  }

  void sort_categories(CocoFile& file) {
    if (flip_index_) file.flip_index = std::move(*flip_index_);
    const std::uint64_t* of_first = nullptr;
    for (std::size_t k = 0; k < categories_.size(); ++k) {
      if (category_keypoints_[k] == 0) continue;
      if (of_first == nullptr) of_first = &category_keypoints_[k];
      if (*of_first != category_keypoints_[k])
        fail(fmt::format(
            "its categories have {} and {} keypoints, and all that have some need equally many: "
            "make a file of each",
            *of_first, category_keypoints_[k]));
    }
    constexpr std::uint64_t kMostKeypoints = 10'000;
    if (of_first != nullptr) file.keypoints = *of_first;
    if (file.keypoints > kMostKeypoints)
      fail(
          fmt::format("its categories have {} keypoints, and {} are the most that are read: "
                      "correct the list of their names",
                      file.keypoints, kMostKeypoints));
    std::ranges::stable_sort(categories_, {}, &CocoCategory::id);
    const auto twice = std::ranges::adjacent_find(categories_, {}, &CocoCategory::id);
    if (twice != categories_.end())
      fail(fmt::format("two categories have the id {}, '{}' and '{}'; give one of them another",
                       twice->id, core::printable(twice->name, kShownOfText),
                       core::printable((twice + 1)->name, kShownOfText)));
    file.categories = std::move(categories_);
  }

  // The number of the image or category with an id.
  template <class Range, class Projection>
  [[nodiscard]] std::uint64_t find(const Range& all, Projection projection, std::int64_t id,
                                   std::uint64_t object, const char* noun, const char* list) const {
    const auto found = std::ranges::lower_bound(all, id, {}, projection);
    if (found == all.end() || std::invoke(projection, *found) != id)
      fail(
          fmt::format("the annotation with the id {} is of the {} {}, which is not among the {} in "
                      "\"{}\"; add that, or remove the annotation",
                      annotation_ids_[object], noun, id, all.size(), list));
    return static_cast<std::uint64_t>(found - all.begin());
  }

  void sort_objects(CocoFile& file) {
    const std::uint64_t count = annotation_ids_.size();
    std::vector<std::uint64_t> images(count);
    file.begins.assign(file.image_ids.size() + 1, 0);
    for (std::uint64_t object = 0; object < count; ++object) {
      images[object] =
          find(file.image_ids, std::identity(), of_image_[object], object, "image", "images");
      ++file.begins[images[object] + 1];
    }
    of_image_ = {};
    std::partial_sum(file.begins.begin(), file.begins.end(), file.begins.begin());
    if (are_captions_) return sort_captions(file, images);

    // Where each goes.
    std::vector<std::uint64_t> ends(file.begins.begin(), file.begins.end() - 1);
    std::vector<std::uint64_t> places(count);
    file.boxes.resize(count * 4);
    file.classes.resize(count);
    file.areas.resize(count);
    file.crowds.resize(count);
    file.annotation_ids.resize(count);
    file.segmentation_begins.resize(count);
    file.segmentation_bytes.resize(count);
    file.segmentations_hash = segmentations_hash_;
    for (std::uint64_t object = 0; object < count; ++object) {
      const std::uint64_t place = places[object] = ends[images[object]]++;
      std::copy_n(boxes_.begin() + static_cast<std::ptrdiff_t>(object * 4), 4,
                  file.boxes.begin() + static_cast<std::ptrdiff_t>(place * 4));
      file.classes[place] =
          static_cast<std::int64_t>(find(file.categories, &CocoCategory::id, of_category_[object],
                                         object, "category", "categories"));
      file.areas[place] = areas_[object];
      file.crowds[place] = crowds_[object];
      file.annotation_ids[place] = annotation_ids_[object];
      file.segmentation_begins[place] = segmentation_begins_[object];
      file.segmentation_bytes[place] = segmentation_bytes_[object];
    }
    if (file.keypoints > 0) place_keypoints(file, places);
    std::ranges::stable_sort(faults_, {}, &Fault::object);
    for (Fault& fault : faults_)
      file.faults.push_back({images[fault.object], std::move(fault.reason)});
    std::ranges::stable_sort(file.faults, {}, &CocoFault::image);
    const auto is_same = [](const CocoFault& a, const CocoFault& b) { return a.image == b.image; };
    file.faults.erase(std::unique(file.faults.begin(), file.faults.end(), is_same),
                      file.faults.end());
  }

  void sort_captions(CocoFile& file, const std::vector<std::uint64_t>& images) {
    std::vector<std::uint64_t> order(images.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::uint64_t object) { return images[object]; });
    file.has_captions = true;
    for (const std::uint64_t object : order) {
      file.captions += captions_[object];
      file.caption_ends.push_back(file.captions.size());
    }
    captions_ = {};
  }

  void place_keypoints(CocoFile& file, const std::vector<std::uint64_t>& places) {
    std::vector<const KeypointRow*> rows(places.size());  // by places
    for (const KeypointRow& row : keypoint_rows_) {
      if (row.count == file.keypoints * 3) {
        rows[places[row.object]] = &row;
      } else if (row.count != kDamaged) {
        faults_.push_back(
            {row.object,
             fault_text(annotation_ids_[row.object],
                        fmt::format("has {} numbers for keypoints, and not {}, three for each of "
                                    "the {} of its file's categories",
                                    row.count, file.keypoints * 3, file.keypoints))});
      }
    }
    file.keypoint_begins.assign(places.size(), CocoFile::kNoKeypoints);
    for (std::size_t place = 0; place < rows.size(); ++place) {
      if (rows[place] == nullptr) continue;
      file.keypoint_begins[place] = file.keypoint_values.size();
      const auto first = keypoint_values_.begin() + static_cast<std::ptrdiff_t>(rows[place]->begin);
      file.keypoint_values.insert(file.keypoint_values.end(), first,
                                  first + static_cast<std::ptrdiff_t>(rows[place]->count));
    }
    keypoint_values_ = {};
  }

  static constexpr std::uint64_t kDamaged = std::numeric_limits<std::uint64_t>::max();
  struct KeypointRow {
    std::uint64_t object;
    std::uint64_t begin;  // of its values
    std::uint64_t count;  // kDamaged: the annotation is a fault already
  };

  std::string_view text_;
  CocoText& read_;  // what the parser has of it
  std::string_view name_;
  core::ProgressCounter progress_;

  // Where the parser is.
  Place place_ = Place::outside;
  std::uint64_t skipped_levels_ = 0;  // brackets that are open in what is skipped
  CocoList list_ = CocoList::skipped;
  std::set<CocoList> lists_;    // that were there
  std::uint64_t position_ = 0;  // of the item in its list
  CocoKey key_ = CocoKey::skipped;
  CocoItem item_;
  std::uint64_t value_count_ = 0;
  std::string wrong_element_;  // the first of the values that is no number

  std::vector<std::int64_t> image_ids_;
  std::vector<std::string> file_names_;
  std::vector<CocoCategory> categories_;
  std::vector<std::uint64_t> category_keypoints_;
  std::optional<std::vector<int>> flip_index_;
  std::vector<std::int64_t> annotation_ids_, of_image_, of_category_;
  std::vector<float> boxes_, areas_;
  std::vector<std::uint8_t> crowds_;
  bool are_captions_ = false;
  std::vector<std::string> captions_;
  std::vector<std::uint64_t> segmentation_begins_;
  std::vector<std::uint32_t> segmentation_bytes_;
  std::uint64_t segmentations_hash_ = 0;
  std::vector<KeypointRow> keypoint_rows_;
  std::uint64_t keypoint_begin_ = 0;  // of the annotation that is read
  std::vector<float> keypoint_values_;
  std::vector<Fault> faults_;
};

}  // namespace

CocoFile parse_coco(std::string_view text, std::string_view name) {
  CocoText read(text);
  CocoReader reader(text, read, name);
  (void)nlohmann::json::sax_parse(CocoIterator(read, text.data()),
                                  CocoIterator(read, text.data() + text.size()), &reader);
  return reader.finish();
}

}  // namespace penstock::source
