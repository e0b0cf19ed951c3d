#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/shards.hpp>

#include "src/core/call_text.hpp"
#include "src/core/lower_case.hpp"
#include "src/source/arrow/arrow_files.hpp"
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
bool has_class_folders(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (!entry.is_directory(error) || entry.path().filename().string().starts_with('.')) continue;
    for (const auto& file : fs::directory_iterator(entry.path(), error))
      if (source::is_image_name(file.path().filename().string())) return true;
  }
  return false;
}

// Such files may lie beside folders of classes; an MDS data set is a folder of its own.
bool may_be_beside_classes(ImageForm form) { return form != ImageForm::mds; }

// Tables are left out, and said to be. Of shards it cannot be told which of both is meant.
ImageForm form_beside_classes(ImageForm form, const std::string& folder) {
  if (form != ImageForm::tar && form != ImageForm::tfrecord) return ImageForm::folder;
  throw Error(fmt::format(
      "{} has shards, and images in the folders beside them: give a pattern for the shards, such "
      "as '{}', or call image_folder() for the images",
      folder, source::path_below(folder, form == ImageForm::tar ? "*.tar" : "*.tfrecord")));
}

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

// A shard is told by its name; what is no shard's name, by the first one in it.
ImageForm form_of_objects(const std::string& path, const ObjectStorageOptions& options) {
  ImageForm form = form_of_name(source::name_of_pattern(storage::split_web_url(path).plain));
  if (form != ImageForm::folder) return form;
  storage::ObjectName folder = storage::parse_object_url(path);
  folder.key = folder.folder_prefix();
  const storage::Storage storage(options);
  const storage::ObjectStore& objects = storage.objects(folder);
  std::vector<std::string> inside;
  objects.list(folder, false, [&](storage::ListedObject&& object) {
    const std::string name = object.key.substr(folder.key.size());
    if (object.is_folder && !name.starts_with('.')) inside.push_back(std::move(object.key));
    if (!object.is_folder && form == ImageForm::folder) form = form_of_name(name);
    return may_be_beside_classes(form);  // folders may come yet
  });
  if (form == ImageForm::folder || !may_be_beside_classes(form)) return form;
  return has_class_folders(objects, folder, inside) ? form_beside_classes(form, path) : form;
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
  namespace fs = std::filesystem;
  const std::string name = path.string();
  if (storage::is_object_url(name)) return form_of_objects(name, storage);
  std::error_code error;
  if (!fs::is_directory(path, error)) return form_of_name(source::name_of_pattern(name));
  if (fs::exists(path / "dataset_dict.json", error))
    return ImageForm::arrow;  // which names its splits
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const ImageForm form = form_of_name(entry.path().filename().string());
    if (form == ImageForm::folder || entry.is_directory(error)) continue;
    return may_be_beside_classes(form) && has_class_folders(path) ? form_beside_classes(form, name)
                                                                  : form;
  }
  return ImageForm::folder;
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
