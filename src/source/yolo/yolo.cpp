#include <algorithm>
#include <array>
#include <cerrno>
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
#include <sys/stat.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/annotations.hpp>
#include <penstock/source/images.hpp>

#include "src/core/lower_case.hpp"
#include "src/core/printable.hpp"
#include "src/core/progress.hpp"
#include "src/source/catalog.hpp"
#include "src/source/described.hpp"
#include "src/source/folder/listing.hpp"
#include "src/source/folder/some_files.hpp"
#include "src/source/in_parallel.hpp"
#include "src/source/renamed.hpp"
#include "src/source/yolo/data_yaml.hpp"
#include "src/source/yolo/label_file.hpp"
#include "src/source/zip.hpp"
#include "src/storage/local/file.hpp"
#include "src/storage/storage.hpp"

namespace penstock {

namespace {

namespace fs = std::filesystem;
using source::YoloForm;
using source::YoloInstances;

constexpr std::size_t kShownOfYoloPath = 200;  // bytes in a message

std::string shown_path(const fs::path& path) {
  return core::printable(path.string(), kShownOfYoloPath);
}

std::string label_file_of(std::string path) {
  constexpr std::string_view kImages = "/images/";
  if (const std::size_t at = path.rfind(kImages); at != path.npos)
    path.replace(at, kImages.size(), "/labels/");
  if (const std::size_t dot = path.rfind('.'); dot != path.npos && dot > path.rfind('/'))
    path.erase(dot);
  return path + ".txt";
}

/// What the label files say of the images, whose files another source reads.
class YoloRows final : public Source {
 public:
  // Behind them the keypoints, the polygons and the corners, where there are any.
  enum Field : std::size_t { kBoxes, kLabels, kOthers };

  YoloRows(SourcePtr files, source::DataYaml data, const YoloOptions& options)
      : files_(std::move(files)),
        class_names_(std::move(data.names)),
        form_(data.form),
        flip_index_(std::move(data.flip_index)),
        max_file_bytes_(options.max_file_bytes),
        image_(options.field) {
    fields_ = {{"boxes", DType::f32, {kDynamic, 4}}, {"labels", DType::i64, {kDynamic}}};
    if (form_.keypoints > 0)
      fields_.push_back(
          {"keypoints", DType::f32, {kDynamic, static_cast<std::int64_t>(form_.keypoints), 3}});
    if (form_.masks) {
      masks_ = fields_.size();
      fields_.push_back({"masks", DType::u8, {kDynamic}});
    }
    if (form_.corners) fields_.push_back({"corners", DType::f32, {kDynamic, 4, 2}});
    look_for_labels();
  }

  std::uint64_t size() const noexcept override { return files_->size(); }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    YoloInstances all;
    all.masks = "[]";  // of an image without a label file
    if (has_labels_[number]) {
      const std::string path = location(number);
      auto text = storage::read_text_file(path, max_file_bytes_);
      if (!text) return std::move(text.fault());
      record.add_bytes_read(text->size());
      auto parsed = source::parse_yolo_labels(*text, form_);
      if (!parsed) {
        parsed.fault().file = path;
        return std::move(parsed.fault());
      }
      all = *std::move(parsed);
    }
    const auto count = static_cast<std::int64_t>(all.labels.size());
    if (auto set = copy(record, kBoxes, all.boxes, Shape{count, 4}); !set) return set;
    if (auto set = copy(record, kLabels, all.labels, Shape{count}); !set) return set;
    if (form_.keypoints > 0)
      if (auto set = copy(record, kOthers, all.keypoints,
                          Shape{count, static_cast<std::int64_t>(form_.keypoints), 3});
          !set)
        return set;
    if (form_.masks)
      if (auto set = copy(record, masks_, std::as_bytes(std::span(all.masks)), DType::u8,
                          Shape{std::ssize(all.masks)});
          !set)
        return set;
    if (!form_.corners) return {};
    return copy(record, fields_.size() - 1, all.corners, Shape{count, 4, 2});
  }

  std::string location(std::uint64_t number) const override {
    return label_file_of(files_->location(number));
  }
  RecordName name(std::uint64_t number) const override {
    return {.key = files_->name(number).key, .file = location(number)};
  }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override { return fingerprint_; }
  std::span<const std::string> class_names() const noexcept override { return class_names_; }
  std::vector<ImageFields> image_fields() const override {
    ImageFields all{.image = image_,
                    .fields = {},
                    .boxes = fields_[kBoxes].name,
                    .format = BoxFormat::cxcywh,
                    .normalized = true};
    for (const FieldSpec& field : fields_) all.fields.push_back(field.name);
    if (form_.keypoints > 0) all.keypoints = fields_[kOthers].name;
    if (form_.masks) all.masks = fields_[masks_].name;
    if (form_.corners) all.corners = fields_.back().name;
    all.flip_index = flip_index_;
    return {all};
  }
  std::vector<Notice> notices() const override {
    if (without_ == 0) return {};
    return {{.text = fmt::format(
                 "yolo: {} of {} images have no label file, so no instances, such as {}", without_,
                 size(), shown_path(files_->location(first_without_)))}};
  }

 private:
  // Whether they are there, and their sizes, for the fingerprint; they are not opened.
  void look_for_labels() {
    constexpr std::size_t kFilesOfAPart = 1024;
    constexpr std::int64_t kIsMissing = -1;
    std::vector<std::int64_t> sizes(size());
    core::ProgressCounter progress("looking for label files", "files", size());
    source::in_parallel((sizes.size() + kFilesOfAPart - 1) / kFilesOfAPart,
                        static_cast<std::size_t>(default_threads()), [&](std::size_t part) {
                          const std::size_t begin = part * kFilesOfAPart;
                          const std::size_t end = std::min(begin + kFilesOfAPart, sizes.size());
                          for (std::size_t i = begin; i < end; ++i) {
                            struct stat info {};
                            // What else is wrong with it is a fault of its image.
                            if (::stat(location(i).c_str(), &info) == 0)
                              sizes[i] = info.st_size;
                            else if (errno == ENOENT || errno == ENOTDIR)
                              sizes[i] = kIsMissing;
                          }
                          progress.add(end - begin);
                        });
    has_labels_.resize(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      has_labels_[i] = sizes[i] != kIsMissing;
      if (!has_labels_[i] && without_++ == 0) first_without_ = i;
    }
    if (without_ == size())
      throw Error(fmt::format(
          "yolo: none of the {} images has a label file: looked for {} first, of {}. A label file "
          "has the path of its image with the last folder 'images' in it named 'labels', and ends "
          "in .txt; for images without labels use files() or image_folder()",
          size(), shown_path(location(0)), shown_path(files_->location(0))));
    std::string names;
    for (const std::string& name : class_names_) names += name + '\0';
    const auto bytes = std::as_bytes(std::span(sizes));
    fingerprint_ = fmt::format(
        "yolo({} images, {} label files, {})", size(), size() - without_,
        hash_text(hash_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) +
                  hash_text(names) +
                  fmt::format("{} {}{}{}", form_.keypoints, form_.numbers,
                              form_.masks ? " masks" : "", form_.corners ? " corners" : "")));
  }

  template <class T>
  static Result<void> copy(Record& record, std::size_t field, const std::vector<T>& values,
                           const Shape& shape) {
    return copy(record, field, std::as_bytes(std::span(values)), dtype_of<T>(), shape);
  }
  static Result<void> copy(Record& record, std::size_t field, std::span<const std::byte> bytes,
                           DType dtype, const Shape& shape) {
    if (!record.is_wanted(field)) return {};
    auto to = record.allocate(bytes.size());
    if (!to) return std::move(to.fault());
    if (!bytes.empty()) std::memcpy(to->data(), bytes.data(), bytes.size());
    record.set(field, to->data(), dtype, shape);
    return {};
  }

  SourcePtr files_;
  std::vector<std::string> class_names_;
  YoloForm form_;
  std::vector<int> flip_index_;  // of the keypoints
  std::size_t masks_ = 0;        // their field; 0: there is none
  std::uint64_t max_file_bytes_;
  std::string image_;  // the field of the image, which another source has
  std::vector<FieldSpec> fields_;
  std::vector<bool> has_labels_;
  std::uint64_t without_ = 0;
  std::uint64_t first_without_ = 0;
  std::string fingerprint_;
};

// A split of data.yaml, where it is.
fs::path find_place(const std::string& place, const fs::path& root, const std::string& file,
                    const std::string& split) {
  constexpr std::string_view kUp = "../";
  std::error_code error;
  const fs::path whole = root / place;
  if (fs::exists(whole, error)) return fs::canonical(whole);
  std::string tried = shown_path(whole);
  // Roboflow's exports write one ../ too many.
  if (place.starts_with(kUp)) {
    const fs::path below = root / place.substr(kUp.size());
    if (fs::exists(below, error)) return fs::canonical(below);
    tried += " and " + shown_path(below);
  }
  throw Error(
      fmt::format("yolo: {}: '{}' is {}, which is not there: looked for {}; it is relative to "
                  "path, and that to "
                  "the folder of the file: correct them there",
                  shown_path(file), split, core::printable(place, kShownOfYoloPath), tried));
}

std::vector<fs::path> places_of_split(const source::DataYaml& yaml, const std::string& file,
                                      const std::string& split) {
  const fs::path root = fs::absolute(file).parent_path() / yaml.path;
  std::error_code error;
  if (!fs::is_directory(root, error))
    throw Error(fmt::format(
        "yolo: {}: path is {}, and {} is no folder: correct it, or remove that "
        "line, and the folder is that of the file",
        shown_path(file), core::printable(yaml.path, kShownOfYoloPath), shown_path(root)));
  std::vector<fs::path> places;
  for (const std::string& place : yaml.places)
    places.push_back(find_place(place, root, file, split));
  return places;
}

void add_list(const fs::path& list, std::vector<std::string>& images) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  constexpr std::string_view kBlanks = " \t\r";
  const Result<std::string> text = storage::read_text_file(list.string(), kMostBytes);
  if (!text) throw Error("yolo: " + text.fault().to_string());
  std::string_view rest = *text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  const std::string folder = fs::absolute(list).parent_path().string() + '/';
  const std::string here = fs::current_path().string() + '/';
  for (std::uint64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (line.empty()) continue;
    if (line.find('\0') != line.npos || line.ends_with('/') ||
        storage::is_object_url(std::string(line)))
      throw Error(fmt::format("yolo: {} line {}: expected the path of a local file, found '{}'",
                              shown_path(list), number, core::printable(line, kShownOfYoloPath)));
    if (line.starts_with("./"))
      images.push_back(folder + std::string(line.substr(2)));
    else
      images.push_back((line.starts_with('/') ? "" : here) + std::string(line));
  }
}

void add_folder(const fs::path& folder, std::vector<std::string>& images) {
  static const std::vector<std::string> kEndings{".jpg",  ".jpeg", ".jpe",  ".jfif",
                                                 ".png",  ".webp", ".bmp",  ".tif",
                                                 ".tiff", ".mpo",  ".heic", ".avif"};
  const source::FileList list = source::list_files(
      folder,
      {.endings = kEndings,
       .has_classes = false,
       .hint =
           "check the path; images that end in something else may stand in a list, a .txt file"},
      storage::Storage());
  const std::string root = folder.string() + '/';
  images.reserve(images.size() + list.size());
  for (std::uint64_t i = 0; i < list.size(); ++i) images.push_back(root + list.path(i));
}

std::vector<std::string> images_in(const std::vector<fs::path>& places) {
  std::vector<std::string> images;
  std::error_code error;
  for (const fs::path& place : places) {
    if (fs::is_directory(place, error))
      add_folder(place, images);
    else if (core::lower_case(place.extension().string()) == ".txt")
      add_list(place, images);
    else
      throw Error(
          fmt::format("yolo: expected a data.yaml, a folder of images or a .txt file that lists "
                      "images, found {}",
                      shown_path(place)));
  }
  if (images.empty())
    throw Error(fmt::format("yolo: {} lists no images", shown_path(places.front())));
  return images;
}

[[noreturn]] void refuse_option(const std::string& what) {
  throw std::invalid_argument("yolo: the option " + what);
}

void check_yolo(const fs::path& data, bool is_yaml, const YoloOptions& options) {
  constexpr std::array<std::string_view, 7> kTaken{"",          "label", "boxes",  "labels",
                                                   "keypoints", "masks", "corners"};
  if (std::ranges::find(kTaken, options.field) != kTaken.end())
    refuse_option(
        fmt::format("field is '{}': the field of a file's bytes needs a name that no other has, "
                    "such as 'image'",
                    options.field));
  if (options.split != "train" && options.split != "val" && options.split != "test")
    refuse_option(fmt::format("split is '{}', and it may be train, val or test",
                              core::printable(options.split)));
  if (options.max_file_bytes == 0) refuse_option("max_file_bytes is 0, which no file fits");
  if (options.keypoints > YoloForm::kMostKeypoints)
    refuse_option(fmt::format("keypoints is {}, and it may be up to {}", options.keypoints,
                              YoloForm::kMostKeypoints));
  if (is_yaml && !options.classes.empty())
    refuse_option(fmt::format("classes is for folders and lists: {} has names", shown_path(data)));
  if (is_yaml && options.keypoints != 0)
    refuse_option(
        fmt::format("keypoints is for folders and lists: {} has kpt_shape", shown_path(data)));
  if (!is_yaml && options.split != "train")
    refuse_option(fmt::format("split is for a data.yaml, and {} is none", shown_path(data)));
}

// A folder with this file has several splits, of which one is wanted.
void require_no_yaml(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"data.yaml", "data.yml"})
    if (fs::is_regular_file(folder / name, error))
      throw Error(fmt::format("yolo: {} has a {}: pass that, {}, with the split",
                              shown_path(folder), name, shown_path(folder / name)));
}

}  // namespace

SourcePtr source::yolo(const std::filesystem::path& data, YoloOptions options) {
  const std::string path = data.string();
  if (path.empty()) throw std::invalid_argument("yolo: the path is empty");
  if (storage::is_object_url(path))
    throw std::invalid_argument(
        fmt::format("yolo: expected a local path, found {}: copy the data set to a disk",
                    core::printable(storage::split_web_url(path).plain, kShownOfYoloPath)));
  const std::string ending = core::lower_case(data.extension().string());
  const bool is_yaml = ending == ".yaml" || ending == ".yml";
  check_yolo(data, is_yaml, options);
  std::error_code error;
  const fs::path whole = fs::absolute(data);
  if (!fs::exists(whole, error))
    throw Error(fmt::format("yolo: {} is not there", shown_path(whole)));
  source::DataYaml description{
      .names = options.classes,
      .form = {.classes = options.classes.size(), .keypoints = options.keypoints}};
  std::vector<fs::path> places;
  if (is_yaml) {
    description = source::read_data_yaml(path, options.split);
    places = places_of_split(description, path, options.split);
  } else {
    require_no_yaml(whole);
    places = {fs::canonical(whole)};
  }
  YoloForm& form = description.form;
  form.masks = options.masks;
  form.corners = options.corners;
  if (form.corners && form.keypoints > 0)
    refuse_option(
        fmt::format("corners is for boxes that are turned, and these instances have {} keypoints",
                    form.keypoints));
  SourcePtr files = source::files(
      images_in(places), {.field = options.field, .max_file_bytes = options.max_file_bytes});
  if (const std::uint64_t count = source::count_if_none_is_there(*files); count != 0)
    throw Error(fmt::format(
        "yolo: none of the first {} images of {} is there: looked for {} first; in a list, a path "
        "that begins with ./ is relative to the list's folder, and another one to the current "
        "folder, {}",
        count, shown_path(places.front()), shown_path(files->location(0)),
        shown_path(fs::current_path())));
  SourcePtr rows = std::make_shared<YoloRows>(files, std::move(description), options);
  SourcePtr images = source::rename(std::move(files), {{"label", ""}});
  return source::described(source::zip({std::move(images), std::move(rows)}),
                           source::describe_yolo(data, options));
}

}  // namespace penstock
