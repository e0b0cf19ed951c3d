// source/images: labelled images, as files, tar shards or TFRecord files.
#pragma once

#include <cstdint>
#include <string>

#include <penstock/source/image_folder.hpp>
#include <penstock/source/source.hpp>

namespace penstock {

/// How images lie on the storage.
enum class ImageForm : std::uint8_t {
  folder,    ///< image files, class per sub-folder or flat: source::image_folder()
  tar,       ///< tar shards in the WebDataset layout: source::webdataset()
  tfrecord,  ///< TFRecord files: source::tfrecord()
};

/// Goes by names alone: a file or pattern that ends in .tar; one that ends in .tfrecord, .tfrecords,
/// .tfrec or .record, or is numbered as train-00000-of-00010 is; a folder by the first such file in
/// it. Everything else is a folder of images.
///
/// Errors  Error  of s3:// folders: the bucket cannot be listed
[[nodiscard]] ImageForm image_form(const std::string& path,
                                   const ObjectStorageOptions& storage = {});

namespace source {

/// The images at `path`, a folder or a pattern such as "train-{000000..000099}.tar", or either
/// of these after "s3://bucket/".
///
/// Shapes  image u8 [?], label i64 [].
/// Errors  as image_folder(), webdataset() or tfrecord()
[[nodiscard]] SourcePtr images(const std::string& path, const ImageFolderOptions& options = {});

}  // namespace source
}  // namespace penstock
