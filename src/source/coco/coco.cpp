#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/annotations.hpp>
#include <penstock/source/images.hpp>

#include "src/core/printable.hpp"
#include "src/source/catalog.hpp"
#include "src/source/coco/coco_file.hpp"
#include "src/source/coco/kept_coco.hpp"
#include "src/source/described.hpp"
#include "src/source/folder/some_files.hpp"
#include "src/source/instance_columns.hpp"
#include "src/source/renamed.hpp"
#include "src/source/zip.hpp"
#include "src/storage/storage.hpp"

namespace penstock {

namespace {

using source::CocoFile;

constexpr std::size_t kShownOfCocoPath = 200;  // bytes in a message

/// Where segmentations are read from: a local file, or the text of another one.
struct SegmentationTexts {
  storage::StoredFilePtr file{};
  std::string text{};

  Result<void> read(std::uint64_t begin, std::span<std::byte> into) const {
    if (file) return file->read(begin, into);
    std::memcpy(into.data(), text.data() + begin, into.size());
    return {};
  }
};

/// What an annotation file says of its images, whose files another source reads.
class OfCocoImages : public Source {
 public:
  OfCocoImages(std::string path, CocoFile file) : path_(std::move(path)), file_(std::move(file)) {}

  std::uint64_t size() const noexcept override { return file_.image_ids.size(); }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  std::string location(std::uint64_t number) const override {
    return fmt::format("{}, image {}", path_, file_.image_ids[number]);
  }
  RecordName name(std::uint64_t number) const override {
    return {.key = fmt::format("image {}", file_.image_ids[number]), .file = path_};
  }
  std::uint64_t files() const noexcept override { return 1; }
  std::uint64_t file_of(std::uint64_t) const noexcept override { return 0; }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override { return fingerprint_; }

 protected:
  void set_image_id(Record& record, std::size_t field, std::uint64_t number) const {
    if (!record.is_wanted(field)) return;
    record[field] = source::value(file_.image_ids[number]);
    record.add_bytes_read(sizeof(std::int64_t));
  }

  std::string path_;
  CocoFile file_;
  std::vector<FieldSpec> fields_;
  std::string fingerprint_;
};

/// Of a file of instances.
class CocoRows final : public OfCocoImages {
 public:
  // Behind them the keypoints and the segmentations, where there are any.
  enum Field : std::size_t { kBoxes, kLabels, kAreas, kCrowds, kImageId, kOthers };

  CocoRows(std::string path, CocoFile file, SegmentationTexts segmentations,
           const CocoOptions& options)
      : OfCocoImages(std::move(path), std::move(file)),
        segmentations_(std::move(segmentations)),
        image_(options.field) {
    fields_ = {{"boxes", DType::f32, {kDynamic, 4}},
               {"labels", DType::i64, {kDynamic}},
               {"area", DType::f32, {kDynamic}},
               {"iscrowd", DType::boolean, {kDynamic}},
               {"image_id", DType::i64, {}}};
    if (file_.keypoints > 0)
      fields_.push_back(
          {"keypoints", DType::f32, {kDynamic, static_cast<std::int64_t>(file_.keypoints), 3}});
    if (options.masks) {
      masks_ = fields_.size();
      fields_.push_back({"masks", DType::u8, {kDynamic}});
    }
    name_classes(options.category_ids);
    if (options.category_ids)
      for (std::int64_t& label : file_.classes)
        label = file_.categories[static_cast<std::size_t>(label)].id;
    fingerprint_ = fmt::format("coco({} images, {} objects, {})", size(), file_.classes.size(),
                               hash_text(content()));
  }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    const auto fault =
        std::ranges::lower_bound(file_.faults, number, {}, &source::CocoFault::image);
    if (fault != file_.faults.end() && fault->image == number)
      return Fault{.reason = fault->reason, .file = path_};
    const std::uint64_t begin = file_.begins[number];
    const std::uint64_t count = file_.begins[number + 1] - begin;
    source::set_rows(record, kBoxes, file_.boxes, begin, count, DType::f32, Shape{4});
    source::set_rows(record, kLabels, file_.classes, begin, count, DType::i64);
    source::set_rows(record, kAreas, file_.areas, begin, count, DType::f32);
    source::set_rows(record, kCrowds, file_.crowds, begin, count, DType::boolean);
    set_image_id(record, kImageId, number);
    if (file_.keypoints > 0 && record.is_wanted(kOthers))
      if (auto set = set_keypoints(record, begin, count); !set) return set;
    if (masks_ == 0 || !record.is_wanted(masks_)) return {};
    return set_masks(record, number);
  }

  std::span<const std::string> class_names() const noexcept override { return class_names_; }
  std::vector<ImageFields> image_fields() const override {
    ImageFields all{.image = image_, .fields = {}, .boxes = fields_[kBoxes].name};
    for (const FieldSpec& field : fields_)
      if (field.shape.is_dynamic()) all.fields.push_back(field.name);
    if (file_.keypoints > 0) all.keypoints = fields_[kOthers].name;
    all.flip_index = file_.flip_index;
    if (masks_ > 0) all.masks = fields_[masks_].name;
    return {all};
  }
  std::vector<Notice> notices() const override {
    if (file_.has_annotations) return {};
    return {{.text = fmt::format("coco: {} has no \"annotations\", as the files of test sets: all "
                                 "images have no boxes",
                                 core::printable(path_, kShownOfCocoPath))}};
  }

 private:
  void name_classes(bool by_ids) {
    constexpr std::int64_t kMostIds = 100'000;
    const auto& all = file_.categories;
    if (all.empty()) return;
    if (!by_ids) {
      for (const source::CocoCategory& category : all) class_names_.push_back(category.name);
    } else if (all.front().id >= 0 && all.back().id < kMostIds) {
      class_names_.resize(static_cast<std::size_t>(all.back().id) + 1);
      for (const source::CocoCategory& category : all)
        class_names_[static_cast<std::size_t>(category.id)] = category.name;
    }
  }

  // Hashes of all that records have, and of what their faults say.
  [[nodiscard]] std::string content() const {
    std::string all;
    for (const FieldSpec& field : fields_) all += field.to_string();
    for (const std::string_view column :
         {source::text_of_column(file_.image_ids), source::text_of_column(file_.begins),
          source::text_of_column(file_.boxes), source::text_of_column(file_.classes),
          source::text_of_column(file_.areas), source::text_of_column(file_.crowds),
          source::text_of_column(file_.keypoint_begins),
          source::text_of_column(file_.keypoint_values)})
      all += hash_text(column);
    if (masks_ > 0) all += fmt::format("{:016x}", file_.segmentations_hash);
    std::string texts;
    for (const source::CocoCategory& category : file_.categories)
      texts += fmt::format("{} {}{}", category.id, category.name, '\0');
    for (const source::CocoFault& fault : file_.faults)
      texts += fmt::format("{} {}{}", fault.image, fault.reason, '\0');
    return all + hash_text(texts);
  }

  // Objects without keypoints have none in memory.
  Result<void> set_keypoints(Record& record, std::uint64_t begin, std::uint64_t count) const {
    const std::size_t bytes = file_.keypoints * 3 * sizeof(float);
    auto to = record.allocate(count * bytes);
    if (!to) return std::move(to.fault());
    for (std::uint64_t object = 0; object < count; ++object) {
      std::byte* const place = to->data() + object * bytes;
      const std::uint64_t from = file_.keypoint_begins[begin + object];
      if (from == CocoFile::kNoKeypoints)
        std::memset(place, 0, bytes);
      else
        std::memcpy(place, file_.keypoint_values.data() + from, bytes);
    }
    record.set(
        kOthers, to->data(), DType::f32,
        Shape{static_cast<std::int64_t>(count), static_cast<std::int64_t>(file_.keypoints), 3});
    record.add_bytes_read(count * bytes);
    return {};
  }

  // A list of those of all instances.
  Result<void> set_masks(Record& record, std::uint64_t number) const {
    const std::uint64_t begin = file_.begins[number];
    const std::uint64_t count = file_.begins[number + 1] - begin;
    std::uint64_t bytes = 2 + count;  // the brackets, and a comma behind each
    for (std::uint64_t object = 0; object < count; ++object) {
      const std::uint32_t of_one = file_.segmentation_bytes[begin + object];
      if (of_one == 0)
        return Fault{
            .reason = fmt::format("the annotation with the id {}, of the image {}, has no "
                                  "segmentation of polygons or runs; add one, or leave "
                                  "masks out",
                                  file_.annotation_ids[begin + object], file_.image_ids[number]),
            .file = path_};
      bytes += of_one;
    }
    if (count > 0) --bytes;
    auto to = record.allocate(bytes);
    if (!to) return std::move(to.fault());
    std::byte* at = to->data();
    *at++ = std::byte{'['};
    for (std::uint64_t object = 0; object < count; ++object) {
      if (object > 0) *at++ = std::byte{','};
      const std::span into(at, file_.segmentation_bytes[begin + object]);
      if (auto read = segmentations_.read(file_.segmentation_begins[begin + object], into); !read)
        return read;
      at += into.size();
    }
    *at = std::byte{']'};
    record.set(masks_, to->data(), DType::u8, Shape{static_cast<std::int64_t>(bytes)});
    record.add_bytes_read(bytes);
    return {};
  }

  SegmentationTexts segmentations_;
  std::size_t masks_ = 0;  // their field; 0: there is none
  std::string image_;      // the field of the image, which another source has
  std::vector<std::string> class_names_;
};

/// Of a file of captions.
class CaptionRows final : public OfCocoImages {
 public:
  CaptionRows(std::string path, CocoFile file) : OfCocoImages(std::move(path), std::move(file)) {
    fields_ = {{"captions", DType::u8, {kDynamic}}, {"image_id", DType::i64, {}}};
    std::string content = file_.captions;
    for (const std::string_view column :
         {source::text_of_column(file_.image_ids), source::text_of_column(file_.begins),
          source::text_of_column(file_.caption_ends)})
      content += hash_text(column);
    fingerprint_ = fmt::format("coco({} images, {} captions, {})", size(),
                               file_.caption_ends.size(), hash_text(content));
  }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    set_image_id(record, 1, number);
    if (!record.is_wanted(0)) return {};
    nlohmann::json captions = nlohmann::json::array();
    for (std::uint64_t i = file_.begins[number]; i < file_.begins[number + 1]; ++i) {
      const std::uint64_t begin = i == 0 ? 0 : file_.caption_ends[i - 1];
      captions.push_back(file_.captions.substr(begin, file_.caption_ends[i] - begin));
    }
    const std::string text = captions.dump();
    auto to = record.allocate(text.size());
    if (!to) return std::move(to.fault());
    std::memcpy(to->data(), text.data(), text.size());
    record.set(0, to->data(), DType::u8, Shape{std::ssize(text)});
    record.add_bytes_read(text.size());
    return {};
  }
};

// Leaves crowds out.
void remove_crowds(CocoFile& file) {
  const auto keep = [&](auto& values, std::size_t of_one) {
    std::size_t kept = 0;
    for (std::size_t object = 0; object < file.crowds.size(); ++object) {
      if (file.crowds[object] != 0) continue;
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(object * of_one), of_one,
                  values.begin() + static_cast<std::ptrdiff_t>(kept * of_one));
      ++kept;
    }
    values.resize(kept * of_one);
  };
  std::uint64_t crowds = 0;  // of earlier images
  std::uint64_t object = 0;
  for (std::uint64_t& begin : file.begins) {
    for (; object < begin; ++object) crowds += file.crowds[object];
    begin -= crowds;
  }
  keep(file.boxes, 4);
  keep(file.classes, 1);
  keep(file.areas, 1);
  if (!file.keypoint_begins.empty()) keep(file.keypoint_begins, 1);
  keep(file.annotation_ids, 1);
  keep(file.segmentation_begins, 1);
  keep(file.segmentation_bytes, 1);
  std::erase_if(file.crowds, [](std::uint8_t crowd) { return crowd != 0; });
}

// Leaves the images without an annotation out. What is wrong with one stays.
void keep_annotated(CocoFile& file) {
  std::vector<std::uint64_t> numbers(file.image_ids.size());  // of those that stay
  std::size_t kept = 0;
  for (std::size_t image = 0; image < file.image_ids.size(); ++image) {
    numbers[image] = kept;
    if (file.begins[image] == file.begins[image + 1]) continue;
    file.image_ids[kept] = file.image_ids[image];
    if (kept != image) file.file_names[kept] = std::move(file.file_names[image]);
    file.begins[kept] = file.begins[image];
    ++kept;
  }
  file.begins[kept] = file.begins.back();
  file.image_ids.resize(kept);
  file.file_names.resize(kept);
  file.begins.resize(kept + 1);
  for (source::CocoFault& fault : file.faults) fault.image = numbers[fault.image];
}

std::string absolute_or_url(const std::string& path) {
  return storage::is_object_url(path) ? path : std::filesystem::absolute(path).string();
}

std::string coco_root(const std::string& annotations, const CocoOptions& options) {
  if (!options.root.empty()) return absolute_or_url(options.root.string());
  const std::string whole = absolute_or_url(annotations);
  const std::string folder = whole.substr(0, storage::split_web_url(whole).plain.rfind('/'));
  return folder.empty() ? "/" : folder;
}

// A folder beside the annotation file, or beside its folder, that has the first image.
std::string folder_of_images(const std::string& annotations, const std::string& first) {
  constexpr int kLookedAt = 1000;
  int looked_at = 0;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(annotations).parent_path();
  for (const std::filesystem::path& place : {folder, folder.parent_path()}) {
    if (std::filesystem::exists(place / first, error)) return place.string();
    std::filesystem::directory_iterator entry(place, error);
    for (; !error && entry != std::filesystem::directory_iterator() && looked_at < kLookedAt;
         entry.increment(error), ++looked_at)
      if (std::filesystem::exists(entry->path() / first, error)) return entry->path().string();
    error.clear();
  }
  return {};
}

void require_some_images(const Source& files, const std::string& root,
                         const std::string& annotations, const std::string& first_name) {
  const std::uint64_t count = source::count_if_none_is_there(files);
  if (count == 0) return;
  const std::string first = files.location(0);
  std::string hint = "pass root, the folder that they are relative to";
  if (!storage::is_object_url(annotations) && !first_name.starts_with('/'))
    if (const std::string folder = folder_of_images(annotations, first_name); !folder.empty())
      hint = fmt::format("there is one in {}: pass that as root",
                         core::printable(folder, kShownOfCocoPath));
  throw Error(fmt::format(
      "coco: none of the first {} images of {} is there: looked for {} first; they are below root, "
      "here {}; {}",
      count, core::printable(annotations, kShownOfCocoPath),
      core::printable(first, kShownOfCocoPath), core::printable(root, kShownOfCocoPath), hint));
}

// The files alone, without the label that all of them would have.
SourcePtr images_of(std::vector<std::string> paths, const std::string& root,
                    const CocoOptions& options, const std::string& annotations) {
  bool all_relative = true;
  for (std::string& path : paths) {
    while (path.starts_with("./"))
      path.erase(0, std::min(path.find_first_not_of('/', 1), path.size()));
    storage::require_readable_scheme(path);
    all_relative &= !path.starts_with('/') && !storage::is_object_url(path);
  }
  FilesOptions files{
      .field = options.field, .max_file_bytes = options.max_file_bytes, .storage = options.storage};
  const std::string first = paths.front();
  if (all_relative) {
    files.root = root;
  } else {
    for (std::string& path : paths)
      if (!path.starts_with('/') && !storage::is_object_url(path))
        path = fmt::format("{}{}{}", root, root.ends_with('/') ? "" : "/", path);
  }
  SourcePtr made = source::files(paths, std::move(files));
  require_some_images(*made, root, annotations, first);
  return source::rename(std::move(made), {{"label", ""}});
}

// With `masks`, `segmentations` is set, too.
CocoFile read_coco(const std::string& path, const std::string& shown, const CocoOptions& options,
                   SegmentationTexts& segmentations) {
  if (storage::is_object_url(path)) {
    std::string text = storage::Storage(options.storage).read_text(path);
    CocoFile file = source::parse_coco(text, shown);
    if (options.masks) segmentations.text = std::move(text);
    return file;
  }
  if (!options.masks) return source::read_local_coco(path);
  auto opened = storage::Storage().open(path);
  if (!opened) throw Error(fmt::format("coco: {}", opened.fault().to_string()));
  segmentations.file = *std::move(opened);
  CocoFile file = source::read_local_coco(path);
  const auto now = storage::Storage().stat(path);
  if (!now || *now != segmentations.file->stamp())
    throw Error(
        fmt::format("coco: {} was changed while it was read: open it again once it is complete",
                    core::printable(shown, kShownOfCocoPath)));
  return file;
}

}  // namespace

SourcePtr source::coco(const std::filesystem::path& annotations, CocoOptions options) {
  const std::string path = annotations.string();
  if (path.empty()) throw std::invalid_argument("coco: the annotation file's path is empty");
  constexpr std::array<std::string_view, 10> kTaken{"",      "label",   "boxes",    "labels",
                                                    "area",  "iscrowd", "image_id", "keypoints",
                                                    "masks", "captions"};
  if (std::ranges::find(kTaken, options.field) != kTaken.end())
    throw std::invalid_argument(fmt::format(
        "coco: the option field is '{}': the field of a file's bytes needs a name that no other "
        "has, such as 'image'",
        options.field));
  storage::require_readable_scheme(path);
  Description description = source::describe_coco(annotations, options);
  const std::string shown(storage::split_web_url(path).plain);
  SegmentationTexts segmentations;
  CocoFile file = read_coco(path, shown, options, segmentations);
  if (file.has_captions && (options.masks || options.category_ids || !options.crowds))
    throw std::invalid_argument(
        fmt::format("coco: {} has captions: masks, category_ids and crowds are for files of "
                    "instances; leave them out",
                    core::printable(shown, kShownOfCocoPath)));
  if (!options.crowds) remove_crowds(file);
  if (options.only_annotated) {
    keep_annotated(file);
    if (file.image_ids.empty())
      throw Error(
          fmt::format("coco: {}: no image has an annotation, and only_annotated leaves out "
                      "those without: leave that option out",
                      core::printable(shown, kShownOfCocoPath)));
  }
  SourcePtr images =
      images_of(std::exchange(file.file_names, {}), coco_root(path, options), options, shown);
  SourcePtr rows;
  if (file.has_captions)
    rows = std::make_shared<CaptionRows>(shown, std::move(file));
  else
    rows = std::make_shared<CocoRows>(shown, std::move(file), std::move(segmentations), options);
  return source::described(source::zip({std::move(images), std::move(rows)}),
                           std::move(description));
}

}  // namespace penstock
