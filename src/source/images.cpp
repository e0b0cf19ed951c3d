#include <algorithm>
#include <filesystem>
#include <string_view>

#include <penstock/source/images.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/webdataset.hpp>

namespace penstock {

namespace {

ImageForm form_of_name(std::string_view name) {
  if (name.ends_with(".tar")) return ImageForm::tar;
  const bool records = name.ends_with(".tfrecord") || name.ends_with(".tfrecords") ||
                       name.ends_with(".tfrec") || name.find("-of-") != std::string_view::npos;
  return records ? ImageForm::tfrecord : ImageForm::folder;
}

}  // namespace

ImageForm image_form(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return form_of_name(path);
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const ImageForm form = form_of_name(entry.path().filename().string());
    if (form != ImageForm::folder && !entry.is_directory(error)) return form;
  }
  return ImageForm::folder;
}

SourcePtr source::images(const std::string& path, const ImageFolderOptions& options) {
  switch (image_form(path)) {
    case ImageForm::tar:
      return webdataset(path);
    case ImageForm::tfrecord:
      return tfrecord(path);
    case ImageForm::folder:
      break;
  }
  return image_folder(path, options);
}

}  // namespace penstock
