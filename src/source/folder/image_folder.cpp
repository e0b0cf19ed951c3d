#include "src/source/folder/image_folder.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>
#include <penstock/source/images.hpp>

#include "src/source/catalog.hpp"
#include "src/source/folder/labels.hpp"
#include "src/source/folder/listing.hpp"
#include "src/storage/local/file.hpp"
#include "src/storage/storage.hpp"

namespace penstock {

namespace {

enum Field : std::size_t { kImage, kLabel, kFields };

class ImageFolder final : public Source {
 public:
  ImageFolder(std::string root, storage::StoragePtr storage, source::FileList files,
              source::Labels labels, std::vector<Notice> notices, std::uint64_t max_file_bytes,
              Description description)
      : root_(std::move(root)),
        storage_(std::move(storage)),
        files_(std::move(files)),
        labels_(std::move(labels)),
        notices_(std::move(notices)),
        max_file_bytes_(max_file_bytes),
        description_(std::move(description)),
        fields_{FieldSpec{"image", DType::u8, {kDynamic}}, FieldSpec{"label", DType::i64, {}}} {
    if (!root_.ends_with('/')) root_ += '/';
  }

  std::uint64_t size() const noexcept override { return files_.size(); }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(kFields);
    const source::FileList::Folder& folder = files_.folder(number);
    const std::string_view name = files_.name(number);
    std::array<char, PATH_MAX> path;
    if (root_.size() + folder.path.size() + name.size() >= path.size()) {
      return Fault{.reason = "cannot open: " + storage::errno_text(ENAMETOOLONG),
                   .file = location(number)};
    }
    char* end = std::copy(root_.begin(), root_.end(), path.data());
    end = std::copy(folder.path.begin(), folder.path.end(), end);
    *std::copy(name.begin(), name.end(), end) = '\0';

    Result<std::span<const std::byte>> bytes = storage_->read_whole(
        path.data(), files_.stamp(number), max_file_bytes_,
        [&record](std::size_t count) { return record.allocate(count); }, record.prefix_limit());
    if (!bytes) return std::move(bytes.fault());
    record.add_bytes_read(bytes->size());
    const std::array extents{static_cast<std::int64_t>(bytes->size())};
    record.set(kImage, bytes->data(), DType::u8, Shape(extents));
    record.set(kLabel, reinterpret_cast<const std::byte*>(label_of(number)), DType::i64, Shape{});
    return {};
  }

  std::string location(std::uint64_t number) const override {
    return root_ + files_.folder(number).path + std::string(files_.name(number));
  }

  RecordName name(std::uint64_t number) const override {
    std::string file = location(number);
    return {.key = file.substr(root_.size()), .file = std::move(file)};
  }

  RecordInfo info(std::uint64_t number) const override {
    RecordInfo info{.key = location(number).substr(root_.size()),
                    .label = *label_of(number),
                    .bytes = std::nullopt};
    if (const storage::FileStamp* const stamp = files_.stamp(number)) {
      info.bytes = stamp->bytes;
      return info;
    }
    std::error_code unknown;
    const std::uintmax_t bytes = std::filesystem::file_size(location(number), unknown);
    if (!unknown) info.bytes = bytes;
    return info;
  }

  [[nodiscard]] bool is_blocking() const noexcept override { return true; }
  [[nodiscard]] int max_concurrent_reads() const noexcept override {
    return storage::is_object_url(root_) ? storage::kObjectReadsAtOnce
                                         : Source::max_concurrent_reads();
  }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override {
    std::string labels;
    for (const std::string& name : class_names()) {
      labels += name;
      labels += '\0';
    }
    labels.append(reinterpret_cast<const char*>(labels_.of_file.data()),
                  labels_.of_file.size() * sizeof(std::int64_t));
    return fmt::format("image_folder({} files, {})", size(),
                       hash_text(files_.hash() + hash_text(labels)));
  }

  std::optional<Description> description() const override { return description_; }
  std::span<const std::string> class_names() const noexcept override {
    return labels_.of_file.empty() ? files_.class_names() : labels_.class_names;
  }
  std::vector<Notice> notices() const override { return notices_; }

 private:
  const std::int64_t* label_of(std::uint64_t number) const noexcept {
    return labels_.of_file.empty() ? &files_.folder(number).label : &labels_.of_file[number];
  }

  std::string root_;  // absolute, with a slash at the end
  storage::StoragePtr storage_;
  source::FileList files_;
  source::Labels labels_;
  std::vector<Notice> notices_;
  std::uint64_t max_file_bytes_;
  Description description_;
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

}  // namespace

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
      storage::is_object_url(root.native()) ? root : std::filesystem::absolute(root);
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
