#include "src/source/folder/image_folder.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>
#include <penstock/source/images.hpp>

#include "src/core/printable.hpp"
#include "src/source/catalog.hpp"
#include "src/source/folder/known_stamp.hpp"
#include "src/source/folder/label_texts.hpp"
#include "src/source/folder/labels.hpp"
#include "src/source/folder/listing.hpp"
#include "src/source/stem.hpp"
#include "src/storage/local/file.hpp"
#include "src/storage/storage.hpp"

namespace penstock {

namespace {

enum Field : std::size_t { kImage, kLabel, kFields };

/// Files that were listed in a folder, or by the caller.
class ImageFolder final : public Source {
 public:
  ImageFolder(std::string root, storage::StoragePtr storage, source::FileList files,
              source::Labels labels, std::vector<Notice> notices, std::uint64_t max_file_bytes,
              Description description)
      : ImageFolder(std::move(root), std::move(storage), std::move(files), std::move(labels),
                    "image", max_file_bytes) {
    notices_ = std::move(notices);
    description_ = std::move(description);
  }
  /// What the caller lists; of objects there is no stamp.
  ImageFolder(std::string root, storage::StoragePtr storage, source::FileList files,
              source::Labels labels, std::string field, std::uint64_t max_file_bytes,
              ObjectStorageOptions storage_options = {})
      : storage_options_(std::move(storage_options)),
        root_(std::move(root)),
        storage_(std::move(storage)),
        files_(std::move(files)),
        labels_(std::move(labels)),
        max_file_bytes_(max_file_bytes),
        fields_{FieldSpec{std::move(field), DType::u8, {kDynamic}},
                FieldSpec{"label", DType::i64, {}}} {
    if (!root_.ends_with('/')) root_ += '/';
    if (is_remote_ && files_.size() > 0 && files_.stamp(0) == nullptr)
      first_versions_ = std::vector<std::atomic<std::int64_t>>(files_.size());
  }

  std::uint64_t size() const noexcept override { return files_.size(); }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(kFields);
    const source::FileList::File file = files_[number];
    record.set(kLabel, reinterpret_cast<const std::byte*>(label_of(number, file)), DType::i64,
               Shape{});
    if (!record.is_wanted(kImage)) return {};
    std::array<char, PATH_MAX> path;
    if (root_.size() + file.folder.size() + file.name.size() >= path.size()) {
      return Fault{.reason = "cannot open: " + storage::errno_text(ENAMETOOLONG),
                   .file = location(number)};
    }
    char* end = std::copy(root_.begin(), root_.end(), path.data());
    end = std::copy(file.folder.begin(), file.folder.end(), end);
    *std::copy(file.name.begin(), file.name.end(), end) = '\0';

    const storage::FileStamp* stamp = known_stamp(number);
    std::optional<storage::FileStamp> found;
    if (stamp == nullptr && is_remote_) {
      auto asked = storage_->stat(path.data());
      if (!asked) return std::move(asked.fault());
      stamp = &found.emplace(std::move(*asked));
      if (!is_as_first_read(number, *stamp))
        return Fault{.reason = "the object was changed after it had been read first; open it again",
                     .file = location(number)};
    }
    Result<std::span<const std::byte>> bytes = storage_->read_whole(
        path.data(), stamp, max_file_bytes_,
        [&record](std::size_t count) { return record.allocate(count); }, record.prefix_limit());
    if (!bytes) return std::move(bytes.fault());
    record.add_bytes_read(bytes->size());
    const std::array extents{static_cast<std::int64_t>(bytes->size())};
    record.set(kImage, bytes->data(), DType::u8, Shape(extents));
    return {};
  }

  std::string location(std::uint64_t number) const override { return root_ + files_.path(number); }

  std::optional<std::int64_t> label(std::uint64_t number) const override {
    return *label_of(number, files_[number]);
  }

  const storage::FileStamp* known_stamp(std::uint64_t number) const noexcept {
    return files_.stamp(number);
  }

  RecordName name(std::uint64_t number) const override {
    std::string file = location(number);
    return {.key = file.substr(root_.size()), .file = std::move(file)};
  }

  RecordInfo info(std::uint64_t number) const override {
    RecordInfo info{.key = location(number).substr(root_.size()),
                    .label = *label_of(number, files_[number]),
                    .bytes = std::nullopt};
    if (const storage::FileStamp* const stamp = known_stamp(number)) {
      info.bytes = stamp->bytes;
      return info;
    }
    if (is_remote_) return info;  // which costs a request
    std::error_code unknown;
    const std::uintmax_t bytes = std::filesystem::file_size(location(number), unknown);
    if (!unknown) info.bytes = bytes;
    return info;
  }

  [[nodiscard]] bool is_blocking() const noexcept override { return true; }
  [[nodiscard]] int max_concurrent_reads() const noexcept override {
    return is_remote_ ? storage::kObjectReadsAtOnce : Source::max_concurrent_reads();
  }
  std::vector<StorageTier> tiers() const override { return storage_->tiers(); }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override {
    std::string labels;
    for (const std::string& name : class_names()) {
      labels += name;
      labels += '\0';
    }
    labels.append(reinterpret_cast<const char*>(labels_.of_file.data()),
                  labels_.of_file.size() * sizeof(std::int64_t));
    return fmt::format("{}({} files, {})", description_ ? "image_folder" : "files", size(),
                       hash_text(files_.hash() + hash_text(labels)));
  }

  std::optional<Description> description() const override {
    return description_ ? description_ : describe_list();
  }
  std::span<const std::string> class_names() const noexcept override {
    return labels_.of_file.empty() ? files_.class_names() : labels_.class_names;
  }
  std::vector<Notice> notices() const override { return notices_; }

 private:
  // An object of a list is of the version that its first read found.
  bool is_as_first_read(std::uint64_t number, const storage::FileStamp& stamp) const noexcept {
    // A server without versions has sizes.
    const std::int64_t version =
        stamp.version != 0 ? stamp.version : static_cast<std::int64_t>(stamp.bytes);
    std::int64_t first = 0;
    return first_versions_[number].compare_exchange_strong(first, version) || first == version;
  }
  const std::int64_t* label_of(std::uint64_t number,
                               const source::FileList::File& file) const noexcept {
    return labels_.of_file.empty() ? file.label : &labels_.of_file[number];
  }

  // Made when it is asked for: it has all the paths.
  Description describe_list() const {
    FilesOptions options{.labels = labels_.of_file,
                         .classes = labels_.class_names,
                         .root = root_,
                         .field = fields_[kImage].name,
                         .max_file_bytes = max_file_bytes_,
                         .storage = storage_options_};
    std::vector<std::string> paths;
    paths.reserve(size());
    for (std::uint64_t number = 0; number < size(); ++number) paths.push_back(files_.path(number));
    if (!storage::is_web_url(root_)) return source::describe_files(std::move(paths), options);
    // The queries of URLs may be signatures, which a text for people does not have.
    std::string text = source::describe_files(paths, options).text;
    for (std::string& path : paths) path = storage_->path_of(root_ + path).substr(root_.size());
    Description description = source::describe_files(std::move(paths), std::move(options));
    description.text = std::move(text);
    return description;
  }

  ObjectStorageOptions storage_options_;  // of a list
  std::string root_;                      // absolute, with a slash at the end
  bool is_remote_ = storage::is_object_url(root_);
  storage::StoragePtr storage_;
  source::FileList files_;
  source::Labels labels_;
  std::vector<Notice> notices_;
  mutable std::vector<std::atomic<std::int64_t>> first_versions_;  // of objects without a stamp
  std::uint64_t max_file_bytes_;
  std::optional<Description> description_;  // none: a list of files
  std::array<FieldSpec, kFields> fields_;
};

void check_classes(std::span<const std::string> classes) {
  std::set<std::string_view> names;
  for (const std::string& name : classes) {
    if (name.empty()) throw std::invalid_argument("the option classes has an empty name");
    if (!names.insert(name).second)
      throw std::invalid_argument(
          fmt::format("the option classes has '{}' twice; each name has one number", name));
  }
}

std::vector<std::string> normalised(const std::vector<std::string>& extensions) {
  std::vector<std::string> endings;
  for (const std::string& extension : extensions) {
    std::string ending = extension.starts_with('.') ? extension : "." + extension;
    for (char& c : ending) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    if (ending == ".") throw std::invalid_argument("an image extension is empty; expected '.jpg'");
    endings.push_back(std::move(ending));
  }
  if (endings.empty()) {
    throw std::invalid_argument("extensions is empty; name at least one, such as '.jpg'");
  }
  return endings;
}

// The folder that all of these have in common, with a slash at the end.
std::string_view common_folder(std::span<const std::string> paths) {
  std::string_view common = paths.front();
  common = common.substr(0, common.rfind('/') + 1);
  for (const std::string& path : paths)
    while (!path.starts_with(common)) {
      common.remove_suffix(1);
      common = common.substr(0, common.rfind('/') + 1);
    }
  // What is left of each path is a relative one: of "/d//a" and "/d/b" the folder is "/".
  const auto leaves_a_slash = [&](const std::string& path) { return path[common.size()] == '/'; };
  while (common.size() > 1 && std::ranges::any_of(paths, leaves_a_slash)) {
    common.remove_suffix(1);
    common = common.substr(0, common.rfind('/') + 1);
  }
  return common;
}

// Labels of a list, as those of a labels file.
source::Labels labels_of(std::span<const std::string_view> paths, FileLabels given,
                         std::vector<std::string> classes) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("files: " + what);
  };
  const std::size_t count = given.integers.size() + given.names.size();
  if (count == 0 && !classes.empty())
    refuse("the option classes has the names of labels, and there are none: pass labels");
  if (count != 0 && count != paths.size())
    refuse(fmt::format("there are {} labels and {} paths: pass one for each", count, paths.size()));
  const auto refuse_label = [&](std::size_t file, const std::string& label) {
    refuse(fmt::format("the label {} of '{}' is none of the {} names in the option classes", label,
                       core::printable(std::string(paths[file]), 100), classes.size()));
  };
  for (std::size_t file = 0; file < given.integers.size() && !classes.empty(); ++file)
    if (given.integers[file] < 0 || std::cmp_greater_equal(given.integers[file], classes.size()))
      refuse_label(file, std::to_string(given.integers[file]));
  if (given.names.empty()) return {std::move(given.integers), std::move(classes)};
  if (classes.empty()) {
    source::LabelTexts texts({.file = "files",
                              .noun = "label",
                              .several = "several labels of an image are a field of their own: zip "
                                         "with arrays or memory"},
                             {});
    std::vector<std::uint64_t> places(given.names.size());
    std::iota(places.begin(), places.end(), 0);
    for (const std::uint64_t file : places) texts.check(file, given.names[file]);
    return std::move(texts).finish(std::move(given.names), places);
  }
  const source::ClassNumbers numbers = source::numbers_of(classes);
  source::Labels labels;
  for (std::size_t file = 0; file < given.names.size(); ++file) {
    const auto found = numbers.find(given.names[file]);
    if (found == numbers.end())
      refuse_label(file, "'" + core::printable(given.names[file], 100) + "'");
    labels.of_file.push_back(found->second);
  }
  labels.class_names = std::move(classes);
  return labels;
}

}  // namespace

std::optional<storage::FileStamp> source::known_stamp(const Source& source, std::uint64_t number) {
  const auto* const folder = dynamic_cast<const ImageFolder*>(&source);
  const storage::FileStamp* const stamp = folder == nullptr ? nullptr : folder->known_stamp(number);
  return stamp == nullptr ? std::nullopt : std::optional(*stamp);
}

SourcePtr source::files(const std::vector<std::string>& paths, FilesOptions options) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("files: " + what);
  };
  if (paths.empty()) refuse("expected paths, found none");
  if (options.field.empty() || options.field == "label")
    refuse("the field of a file's bytes needs a name, which is not 'label'");
  if (options.max_file_bytes == 0) refuse("max_file_bytes is 0, which no file fits");
  check_classes(options.classes);

  std::string root = options.root.string();
  // The operating system would take what stands before a zero for the path.
  const auto require_no_zero = [&](const std::string& path) {
    if (path.find('\0') != path.npos)
      refuse(fmt::format("expected the path of a file, found '{}'", core::printable(path, 100)));
  };
  require_no_zero(root);
  std::ranges::for_each(paths, require_no_zero);
  const auto shown = [](std::string_view path) {
    return core::printable(std::string(storage::split_web_url(path).plain), 100);
  };
  auto storage = std::make_shared<const storage::Storage>(options.storage);
  std::vector<std::string> whole;
  std::vector<std::string_view> relative;
  if (!root.empty()) {
    // Of files of several servers and data sets it is "https://" and "hf://datasets/".
    storage::require_readable_scheme(source::path_below(root, paths.front()));
    if (!storage::split_web_url(root).query.empty())
      refuse(fmt::format("the option root, {}, has a '?': give what is behind it with each path",
                         shown(root)));
    if (!storage::is_object_url(root)) root = std::filesystem::absolute(root).string();
    for (const std::string& path : paths)
      if (path.starts_with('/') || storage::is_object_url(path))
        refuse(fmt::format("with a root the paths are relative to it, found '{}'", shown(path)));
    if (storage::is_web_url(root)) {
      const std::string folder = source::path_below(root, "");
      for (const std::string& path : paths) whole.push_back(storage->name_of(folder + path));
      for (const std::string& path : whole)
        relative.push_back(std::string_view(path).substr(folder.size()));
    } else {
      relative.assign(paths.begin(), paths.end());
    }
  } else {
    const std::string here = std::filesystem::current_path().string() + '/';
    const auto scheme_of = [](const std::string& path) {
      return storage::is_object_url(path) ? std::string_view(path).substr(0, path.find("://") + 3)
                                          : "";
    };
    const std::string_view scheme = scheme_of(paths.front());
    const bool is_remote = !scheme.empty();
    whole.reserve(paths.size());
    for (const std::string& path : paths) {
      storage::require_readable_scheme(path);
      if (const std::string_view other = scheme_of(path); other != scheme)
        refuse(
            fmt::format("all paths are {} or none is, found '{}' and '{}': make two data "
                        "sets, and concatenate() them",
                        scheme.empty() ? other : scheme, shown(paths.front()), shown(path)));
      const bool is_whole = is_remote || path.empty() || path.starts_with('/');
      whole.push_back(is_whole ? storage->name_of(path) : here + path);
    }
    root = common_folder(whole);
    for (const std::string& path : whole)
      relative.push_back(std::string_view(path).substr(root.size()));
  }
  Labels labels = labels_of(relative, std::move(options.labels), std::move(options.classes));
  return std::make_shared<ImageFolder>(std::move(root), std::move(storage), FileList(relative),
                                       std::move(labels), std::move(options.field),
                                       options.max_file_bytes, std::move(options.storage));
}

SourcePtr source::image_folder(const std::filesystem::path& path, ImageFolderOptions options) {
  return described_image_folder(path, options, describe_image_folder(path, options));
}

SourcePtr source::described_image_folder(const std::filesystem::path& root,
                                         const ImageFolderOptions& options,
                                         Description description) {
  if (root.empty()) throw std::invalid_argument("the image folder's path is empty");
  if (options.max_file_bytes == 0) {
    throw std::invalid_argument("max_file_bytes is 0, which no image fits; the default is 256 MiB");
  }
  storage::require_readable_scheme(root.string());
  const std::filesystem::path absolute =
      storage::is_object_url(root.native())
          ? std::filesystem::path(storage::split_web_url(root.native()).plain)
          : std::filesystem::absolute(root);
  auto storage = std::make_shared<const storage::Storage>(options.storage);
  check_classes(options.classes);
  source::FileList files = source::list_files(absolute,
                                              {.endings = normalised(options.extensions),
                                               .sniff = options.sniff,
                                               .follow_symlinks = options.follow_symlinks,
                                               .has_classes = options.labels.empty(),
                                               .classes = options.classes},
                                              *storage);
  source::Labels labels;
  if (!options.labels.empty()) {
    labels = source::read_labels(options.labels, files, options.classes, *storage);
  } else if (files.class_names().empty() && !options.classes.empty()) {
    throw std::invalid_argument(
        fmt::format("the option classes numbers sub-folders, or names in a labels file, but {} has "
                    "images directly "
                    "in it and no labels; name the file in the option labels, or leave classes out",
                    root.string()));
  }
  // Where the endings were chosen, others were left out on purpose.
  const bool look = options.extensions == ImageFolderOptions{}.extensions;
  std::vector<Notice> notices = source::notices_of(absolute, files.left_out(), look, *storage);
  return std::make_shared<ImageFolder>(absolute.string(), std::move(storage), std::move(files),
                                       std::move(labels), std::move(notices),
                                       options.max_file_bytes, std::move(description));
}

}  // namespace penstock
