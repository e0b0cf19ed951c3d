#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/shards.hpp>

#include "src/core/call_text.hpp"
#include "src/core/interruption.hpp"
#include "src/core/lower_case.hpp"
#include "src/core/printable.hpp"
#include "src/core/progress.hpp"
#include "src/source/arrow/arrow_files.hpp"
#include "src/source/folder/form_of_tables.hpp"
#include "src/source/mds/mds_images.hpp"
#include "src/source/parquet/parquet_images.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/stem.hpp"
#include "src/storage/storage.hpp"

namespace penstock {

namespace {

// What Hugging Face has of image files, beside them: "metadata.parquet", "train_metadata.parquet".
bool is_metadata_name(std::string_view name) {
  const std::string lower = core::lower_case(name);
  return lower == "metadata.parquet" || lower.ends_with("_metadata.parquet");
}

ImageForm form_of_name(std::string_view name) {
  if (is_metadata_name(name)) return ImageForm::folder;
  if (source::is_tar_name(name)) return ImageForm::tar;
  if (source::is_parquet_name(name)) return ImageForm::parquet;
  if (source::is_arrow_name(name)) return ImageForm::arrow;
  if (source::is_mds_name(name)) return ImageForm::mds;
  return source::is_tfrecord_name(name) ? ImageForm::tfrecord : ImageForm::folder;
}

// Whether a sub-folder has images: shards and tables beside such are left out.
bool has_class_folders(const std::filesystem::path& path, core::ProgressCounter& progress) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (!entry.is_directory(error) || entry.path().filename().string().starts_with('.')) continue;
    for (const auto& file : fs::directory_iterator(entry.path(), error)) {
      core::require_wanted();
      progress.add(1);
      if (source::is_image_name(file.path().filename().string())) return true;
    }
  }
  return false;
}

constexpr std::size_t kShownOfName = 1000;  // bytes in a message: as long as names are

// The files of a folder, as far as their names say what it is.
class FolderNames {
 public:
  explicit FolderNames(std::string folder) : folder_(std::move(folder)) {}

  void add(std::string_view name) {
    if (name.starts_with('.')) return;
    const ImageForm form = form_of_name(name);
    std::string* known = &image_;
    if (form != ImageForm::folder) known = &shards_[form];
    if (!known->empty() && *known <= name) return;
    if (form != ImageForm::folder || source::is_image_name(name)) *known = name;
  }

  [[nodiscard]] bool has_some() const { return !shards_.empty() || !image_.empty(); }

  // Where only some of the files can be meant, it does not go by which of them comes first.
  [[nodiscard]] ImageForm form_of_shards() const {
    if (shards_.empty()) return ImageForm::folder;
    if (shards_.size() > 1)
      throw Error(fmt::format(
          "{} has files of several kinds, such as {} and {}: give a pattern for those of one, such "
          "as '{}'",
          folder_, core::printable(shards_.begin()->second, kShownOfName),
          core::printable(std::next(shards_.begin())->second, kShownOfName), pattern()));
    return shards_.begin()->first;
  }

  // Of those that are tables, as those beside the tar files of img2dataset.
  [[nodiscard]] ImageForm form_of_tables() const {
    FolderNames tables(folder_);
    std::ranges::copy_if(shards_, std::inserter(tables.shards_, tables.shards_.end()), is_table);
    return tables.form_of_shards();
  }

  // An MDS data set is a folder of its own.
  template <class HasClassFolders>
  [[nodiscard]] ImageForm form(const HasClassFolders& has_class_folders) const {
    // Tables beside folders of classes are left out, and said to be. Of shards it cannot be told which of both is meant.
    if (image_.empty() && !shards_.empty() && std::ranges::all_of(shards_, is_table) &&
        has_class_folders())
      return ImageForm::folder;
    const ImageForm form = form_of_shards();
    if (form == ImageForm::folder || form == ImageForm::mds) return form;
    if (!image_.empty())
      refuse(fmt::format("images beside them, such as {}", core::printable(image_, kShownOfName)));
    if (is_table(*shards_.begin()) || !has_class_folders()) return form;
    refuse("images in the folders beside them");
  }

 private:
  static bool is_table(const std::pair<const ImageForm, std::string>& shard) {
    return shard.first == ImageForm::parquet || shard.first == ImageForm::arrow;
  }
  // Which fits the first name.
  [[nodiscard]] std::string pattern() const {
    const auto& [form, name] = *shards_.begin();
    const std::size_t point = form == ImageForm::tfrecord ? name.find(".tfrec") : name.rfind('.');
    if (point == name.npos)  // "train-00000-of-00010"
      return source::path_below(folder_, name.ends_with(".record") ? "*.record" : "*-*-of-*");
    const std::size_t end = std::min(name.find('-', point), name.size());
    return source::path_below(folder_, fmt::format("*{}{}", name.substr(point, end - point),
                                                   end < name.size() ? "-*-of-*" : ""));
  }
  [[noreturn]] void refuse(const std::string& images) const {
    throw Error(fmt::format(
        "{} has {}, and {}: give a pattern for the shards, such as '{}', or call image_folder() "
        "for the images",
        folder_, is_table(*shards_.begin()) ? "tables" : "shards", images, pattern()));
  }

  std::string folder_;
  std::map<ImageForm, std::string> shards_;  // the first name of each
  std::string image_;
};

// As has_class_folders(), of objects.
bool has_class_folders(const storage::ObjectStore& objects, storage::ObjectName folder,
                       const std::vector<std::string>& keys) {
  bool has_image = false;
  for (const std::string& key : keys) {
    folder.key = key;
    objects.list(folder, false, [&](storage::ListedObject&& object) {
      has_image = !object.is_folder && source::is_image_name(object.key);
      return !has_image;
    });
    if (has_image) return true;
  }
  return false;
}

// Of a folder of objects; `form` takes its names, and whether it has sub-folders with images. Of millions of objects it looks
// at the first: one request after another asks for these, and a list of all is made much faster.
template <class Form>
ImageForm form_of_objects(const std::string& path, const ObjectStorageOptions& options,
                          const Form& form) {
  storage::ObjectName folder = storage::parse_object_url(path);
  folder.key = folder.folder_prefix();
  const storage::Storage storage(options);
  const storage::ObjectStore& objects = storage.objects(folder);
  FolderNames names(path);
  std::vector<std::string> inside;
  constexpr std::size_t kLookedAt = 10'000;
  std::size_t looked_at = 0;
  objects.list(folder, false, [&](storage::ListedObject&& object) {
    const std::string name = object.key.substr(folder.key.size());
    if (!object.is_folder)
      names.add(name);
    else if (!name.starts_with('.'))
      inside.push_back(std::move(object.key));
    looked_at += names.has_some() || !inside.empty() ? 1 : 0;
    return looked_at < kLookedAt;
  });
  return form(names, [&] { return has_class_folders(objects, folder, inside); });
}

// A file is told by its name, a folder by what `form` makes of the names in it.
template <class Form>
ImageForm form_at(const std::filesystem::path& path, const ObjectStorageOptions& storage,
                  const Form& form) {
  namespace fs = std::filesystem;
  const std::string name = path.string();
  std::error_code error;
  const bool is_object = storage::is_object_url(name);
  if (const ImageForm named =
          form_of_name(source::name_of_pattern(storage::split_web_url(name).plain));
      is_object ? named != ImageForm::folder : !fs::is_directory(path, error))
    return named;
  if (is_object) return form_of_objects(name, storage, form);
  if (fs::exists(path / "dataset_dict.json", error))
    return ImageForm::arrow;  // which names its splits
  FolderNames names(name);
  core::ProgressCounter progress(fmt::format("looking into {}", name), "files");
  for (const auto& entry : fs::directory_iterator(path, error)) {
    core::require_wanted();
    progress.add(1);
    if (!entry.is_directory(error)) names.add(entry.path().filename().string());
  }
  return form(names, [&] { return has_class_folders(path, progress); });
}

// Of a folder, where there are shards: they would change nothing.
void refuse_options(const std::filesystem::path& path, const ImageFolderOptions& options) {
  const std::vector<core::Argument> changed = core::changed_arguments(options);
  if (!changed.empty())
    throw std::invalid_argument(fmt::format(
        "the option {} is for a folder of image files, and {} has shards; leave it out, or "
        "give the fields of the records to webdataset, tfrecord, parquet, arrow or mds",
        changed.front().name, storage::split_web_url(path.native()).plain));
}

}  // namespace

ImageForm image_form(const std::filesystem::path& path, const ObjectStorageOptions& storage) {
  return form_at(path, storage, [](const FolderNames& names, const auto& has_class_folders) {
    return names.form(has_class_folders);
  });
}

ImageForm source::form_of_tables(const std::filesystem::path& path,
                                 const ObjectStorageOptions& storage) {
  return form_at(path, storage,
                 [](const FolderNames& names, const auto&) { return names.form_of_tables(); });
}

SourcePtr source::images(const std::filesystem::path& path, ImageFolderOptions options) {
  const ImageForm form = image_form(path, options.storage);
  if (form != ImageForm::folder) refuse_options(path, options);
  switch (form) {
    case ImageForm::tar:
      return webdataset(path, {.storage = std::move(options.storage)});
    case ImageForm::tfrecord:
      return tfrecord(path, {.storage = std::move(options.storage)});
    case ImageForm::parquet:
      return parquet_images(path, {.storage = std::move(options.storage)});
    case ImageForm::arrow:
      return arrow_images(path);
    case ImageForm::mds:
      return mds_images(path, {.storage = std::move(options.storage)});
    case ImageForm::folder:
      break;
  }
  return image_folder(path, std::move(options));
}

}  // namespace penstock
