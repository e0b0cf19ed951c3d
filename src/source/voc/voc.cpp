#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/annotations.hpp>
#include <penstock/source/images.hpp>

#include "src/core/printable.hpp"
#include "src/core/progress.hpp"
#include "src/source/catalog.hpp"
#include "src/source/described.hpp"
#include "src/source/folder/listing.hpp"
#include "src/source/folder/some_files.hpp"
#include "src/source/in_parallel.hpp"
#include "src/source/instance_columns.hpp"
#include "src/source/renamed.hpp"
#include "src/source/voc/voc_file.hpp"
#include "src/source/zip.hpp"
#include "src/storage/local/file.hpp"
#include "src/storage/storage.hpp"

namespace penstock {

namespace {

namespace fs = std::filesystem;
using source::VocInstances;

constexpr std::size_t kShownOfVocPath = 200;  // bytes in a message

std::string shown_voc(const fs::path& path) {
  return core::printable(path.string(), kShownOfVocPath);
}

// The files of a data set, one of each for each image.
struct VocFiles {
  std::vector<std::string> images;  // without their endings
  std::vector<std::string> annotations;
};

// What the annotation files say.
struct VocColumns {
  std::vector<std::string> class_names;
  std::vector<std::uint64_t> begins{0};  // of each image's instances, and the end
  std::vector<float> boxes;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> difficult;
  std::vector<std::uint8_t> truncated;
  std::map<std::uint64_t, std::string> faults;  // of images
};

class VocRows final : public Source {
 public:
  enum Field : std::size_t { kBoxes, kLabels, kDifficult, kTruncated };

  VocRows(std::vector<std::string> annotations, VocColumns columns, std::string image)
      : annotations_(std::move(annotations)),
        columns_(std::move(columns)),
        image_(std::move(image)) {
    std::string all;
    for (const std::string_view column :
         {source::text_of_column(columns_.begins), source::text_of_column(columns_.boxes),
          source::text_of_column(columns_.labels), source::text_of_column(columns_.difficult),
          source::text_of_column(columns_.truncated)})
      all += hash_text(column);
    std::string texts;
    for (const std::string& name : columns_.class_names) texts += name + '\0';
    for (const auto& [image_number, reason] : columns_.faults)
      texts += fmt::format("{} {}{}", image_number, reason, '\0');
    fingerprint_ = fmt::format("voc({} images, {} objects, {})", size(), columns_.labels.size(),
                               hash_text(all + hash_text(texts)));
  }

  std::uint64_t size() const noexcept override { return annotations_.size(); }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    if (const auto fault = columns_.faults.find(number); fault != columns_.faults.end())
      return Fault{.reason = fault->second, .file = annotations_[number]};
    const std::uint64_t begin = columns_.begins[number];
    const std::uint64_t count = columns_.begins[number + 1] - begin;
    source::set_rows(record, kBoxes, columns_.boxes, begin, count, DType::f32, Shape{4});
    source::set_rows(record, kLabels, columns_.labels, begin, count, DType::i64);
    source::set_rows(record, kDifficult, columns_.difficult, begin, count, DType::boolean);
    source::set_rows(record, kTruncated, columns_.truncated, begin, count, DType::boolean);
    return {};
  }

  std::string location(std::uint64_t number) const override { return annotations_[number]; }
  RecordName name(std::uint64_t number) const override {
    return {.key = annotations_[number], .file = annotations_[number]};
  }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override { return fingerprint_; }
  std::span<const std::string> class_names() const noexcept override {
    return columns_.class_names;
  }
  std::vector<ImageFields> image_fields() const override {
    ImageFields all{.image = image_, .fields = {}, .boxes = fields_[kBoxes].name};
    for (const FieldSpec& field : fields_) all.fields.push_back(field.name);
    return {all};
  }

 private:
  std::vector<std::string> annotations_;
  VocColumns columns_;
  std::string image_;  // the field of the image, which another source has
  std::vector<FieldSpec> fields_{{"boxes", DType::f32, {kDynamic, 4}},
                                 {"labels", DType::i64, {kDynamic}},
                                 {"difficult", DType::boolean, {kDynamic}},
                                 {"truncated", DType::boolean, {kDynamic}}};
  std::string fingerprint_;
};

// ---- which files there are ----

std::string known_lists(const fs::path& lists) {
  constexpr std::size_t kMostShown = 8;
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(lists, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (entry->path().extension() == ".txt") names.insert(entry->path().stem().string());
  std::string shown;
  std::size_t count = 0;
  for (const std::string& name : names)
    if (count++ < kMostShown)
      shown += (shown.empty() ? "" : ", ") + core::printable(name, kShownOfVocPath);
  return names.size() > kMostShown ? fmt::format("{} and {} more", shown, names.size() - kMostShown)
                                   : shown;
}

// The words of a line.
std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  std::vector<std::string_view> words;
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return words;
    words.push_back(line.substr(0, line.find_first_of(kBlanks)));
    line.remove_prefix(words.back().size());
  }
}

VocFiles listed_files(const fs::path& root, const std::string& split) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
  const fs::path list = root / "ImageSets" / "Main" / (split + ".txt");
  std::error_code error;
  if (!fs::is_regular_file(list, error))
    throw Error(
        fmt::format("voc: there is no list {}: ImageSets/Main has these: {}; pass one of "
                    "them as split",
                    shown_voc(list), known_lists(list.parent_path())));
  const Result<std::string> text = storage::read_text_file(list.string(), kMostBytes);
  if (!text) throw Error("voc: " + text.fault().to_string());
  VocFiles all;
  std::string_view rest = *text;
  for (std::uint64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::vector<std::string_view> words = words_of(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (words.empty()) continue;
    const bool is_plain = words.size() == 1;
    const bool of_class =
        words.size() == 2 && (words[1] == "1" || words[1] == "0" || words[1] == "-1");
    if ((!is_plain && !of_class) || words[0].find('\0') != std::string_view::npos)
      throw Error(fmt::format(
          "voc: {} line {}: expected the name of an image, and behind it 1, 0, -1 or nothing, "
          "found '{}'",
          shown_voc(list), number, core::printable(fmt::format("{}", fmt::join(words, " ")), 100)));
    if (of_class && words[1] == "-1") continue;
    all.images.push_back((root / "JPEGImages" / words[0]).string());
    all.annotations.push_back((root / "Annotations" / words[0]).string() + ".xml");
  }
  if (all.images.empty()) throw Error(fmt::format("voc: {} lists no images", shown_voc(list)));
  return all;
}

VocFiles files_in(const fs::path& folder) {
  static const std::vector<std::string> kEndings{".xml"};
  const source::FileList list = [&] {
    try {
      return source::list_files(folder,
                                {.endings = kEndings, .has_classes = false, .hint = "check it"},
                                storage::Storage());
    } catch (const Error& error) {
      throw Error(
          fmt::format("voc: {}; it needs the folders Annotations, ImageSets and JPEGImages, "
                      "or an XML file beside each image",
                      error.what()));
    }
  }();
  VocFiles all;
  for (std::uint64_t i = 0; i < list.size(); ++i) {
    const fs::path path = folder / list.path(i);
    all.annotations.push_back(path.string());
    all.images.push_back((path.parent_path() / path.stem()).string());
  }
  return all;
}

// ---- what is in them ----

// The ending that the annotation file says, if there is such a file; else that of one that is there.
std::string ending_of(const Result<VocInstances>& one, const std::string& image) {
  constexpr std::array<const char*, 8> kEndings{".jpg",  ".png", ".jpeg", ".JPG",
                                                ".JPEG", ".PNG", ".bmp",  ".webp"};
  std::string said = one ? fs::path(one->file_name).extension().string() : "";
  if (said.empty()) said = kEndings.front();
  std::error_code error;
  if (fs::exists(image + said, error)) return said;
  for (const char* const known : kEndings)
    if (fs::exists(image + known, error)) return known;
  return said;
}

// Names the images, too.
std::vector<Result<VocInstances>> read_all(VocFiles& files, const VocOptions& options) {
  constexpr std::size_t kFilesOfAPart = 128;
  const std::size_t count = files.annotations.size();
  std::vector<Result<VocInstances>> all(count, Result<VocInstances>(VocInstances{}));
  core::ProgressCounter progress("reading annotation files", "files", count);
  source::in_parallel((count + kFilesOfAPart - 1) / kFilesOfAPart,
                      static_cast<std::size_t>(default_threads()), [&](std::size_t part) {
                        const std::size_t begin = part * kFilesOfAPart;
                        const std::size_t end = std::min(begin + kFilesOfAPart, count);
                        for (std::size_t i = begin; i < end; ++i) {
                          auto text =
                              storage::read_text_file(files.annotations[i], options.max_file_bytes);
                          if (text)
                            all[i] = source::parse_voc(*text, options.from_one);
                          else
                            all[i] = std::move(text.fault());
                          files.images[i] += ending_of(all[i], files.images[i]);
                        }
                        progress.add(end - begin);
                      });
  return all;
}

VocColumns columns_of(std::vector<Result<VocInstances>>& all, const VocOptions& options) {
  VocColumns columns{.class_names = options.classes};
  if (options.classes.empty()) {
    std::set<std::string> names;
    for (const Result<VocInstances>& one : all)
      if (one) names.insert(one->names.begin(), one->names.end());
    columns.class_names.assign(names.begin(), names.end());
  }
  std::map<std::string, std::int64_t, std::less<>> numbers;
  for (const std::string& name : columns.class_names)
    if (!numbers.emplace(name, static_cast<std::int64_t>(numbers.size())).second)
      throw std::invalid_argument(
          fmt::format("voc: the class '{}' is there twice in the option classes",
                      core::printable(name, kShownOfVocPath)));
  for (std::uint64_t image = 0; image < all.size(); ++image) {
    Result<VocInstances>& one = all[image];
    std::string wrong = one ? std::string() : one.fault().reason;
    for (std::size_t i = 0; one && i < one->names.size() && wrong.empty(); ++i)
      if (!numbers.contains(one->names[i]))
        wrong = fmt::format("object {} is of the class '{}', which is none of the option classes",
                            i, core::printable(one->names[i], kShownOfVocPath));
    if (!wrong.empty()) {
      columns.faults.emplace(image, std::move(wrong));
    } else {
      for (const std::string& name : one->names)
        columns.labels.push_back(numbers.find(name)->second);
      const auto append = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(columns.boxes, one->boxes);
      append(columns.difficult, one->difficult);
      append(columns.truncated, one->truncated);
    }
    columns.begins.push_back(columns.labels.size());
  }
  return columns;
}

void check_voc(const VocOptions& options) {
  constexpr std::array<std::string_view, 6> kTaken{"",       "label",     "boxes",
                                                   "labels", "difficult", "truncated"};
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("voc: the option " + what);
  };
  if (std::ranges::find(kTaken, options.field) != kTaken.end())
    refuse(
        fmt::format("field is '{}': the field of a file's bytes needs a name that no other has, "
                    "such as 'image'",
                    options.field));
  if (options.max_file_bytes == 0) refuse("max_file_bytes is 0, which no file fits");
  if (options.split.empty()) refuse("split is empty: it may be train, val, trainval or test");
}

}  // namespace

SourcePtr source::voc(const std::filesystem::path& root, VocOptions options) {
  const std::string path = root.string();
  if (path.empty()) throw std::invalid_argument("voc: the path is empty");
  if (storage::is_object_url(path))
    throw std::invalid_argument(
        fmt::format("voc: expected a local path, found {}: copy the data set to a disk",
                    core::printable(storage::split_web_url(path).plain, kShownOfVocPath)));
  check_voc(options);
  if (!source::reads_voc())
    throw Error(
        "voc: this build of penstock has no pugixml, which reads annotation files of Pascal "
        "VOC: install libpugixml-dev and build again");
  std::error_code error;
  if (!fs::is_directory(root, error))
    throw Error(fmt::format("voc: {} is no folder", shown_voc(fs::absolute(root))));
  const fs::path whole = fs::canonical(root);
  const bool has_lists = fs::is_directory(whole / "Annotations", error) &&
                         fs::is_directory(whole / "JPEGImages", error);
  VocFiles files = has_lists ? listed_files(whole, options.split) : files_in(whole);
  std::vector<Result<VocInstances>> all = read_all(files, options);
  constexpr std::size_t kLookedAt = 100;
  const std::size_t looked_at = std::min(all.size(), kLookedAt);
  if (std::none_of(files.annotations.begin(),
                   files.annotations.begin() + static_cast<std::ptrdiff_t>(looked_at),
                   [&](const std::string& file) { return fs::exists(file, error); }))
    throw Error(
        fmt::format("voc: none of the first {} annotation files is there: looked for {} first",
                    looked_at, shown_voc(files.annotations.front())));
  SourcePtr images = source::files(
      files.images, {.field = options.field, .max_file_bytes = options.max_file_bytes});
  if (const std::uint64_t count = source::count_if_none_is_there(*images); count != 0)
    throw Error(fmt::format("voc: none of the first {} images is there: looked for {} first", count,
                            shown_voc(images->location(0))));
  SourcePtr rows = std::make_shared<VocRows>(std::move(files.annotations), columns_of(all, options),
                                             options.field);
  images = source::rename(std::move(images), {{"label", ""}});
  return source::described(source::zip({std::move(images), std::move(rows)}),
                           source::describe_voc(root, options));
}

}  // namespace penstock
