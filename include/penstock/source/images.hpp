// source/images: labelled images, as files, tar shards or TFRecord files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <penstock/source/source.hpp>
#include <penstock/storage/object_storage.hpp>

namespace penstock {

/// What counts as an image, and where a flat folder's labels are.
struct ImageFolderOptions {
  /// Only for a flat folder: a text file with one 'name label' per line, separated by a comma, a
  /// tab or blanks. The labels are all integers, kept as they are, or all class names, which are
  /// sorted and numbered from 0. Every image needs exactly one line.
  std::filesystem::path labels{};
  /// Endings of image files, in any case, with or without the dot.
  std::vector<std::string> extensions = {".jpg", ".jpeg", ".png", ".webp"};
  /// A larger file is a fault, so that no single record can take all memory.
  std::uint64_t max_file_bytes = std::uint64_t{256} << 20;
  /// Whether links to files and folders are followed; false: they are skipped.
  bool follow_symlinks = true;
  ObjectStorageOptions storage{};  ///< for s3:// paths
};

template <class Visitor>
void visit_fields(Visitor& visit, ImageFolderOptions& options) {
  // `storage` is visited by the source: plans have it where a path is not local.
  visit("labels", options.labels);
  visit("extensions", options.extensions);
  visit("max_file_bytes", options.max_file_bytes);
  visit("follow_symlinks", options.follow_symlinks);
}

namespace source {

/// The images below `root`. With images in its sub-folders, each sub-folder that holds one (at any
/// depth) is a class, classes being numbered in the order of their names, as in torchvision's
/// ImageFolder. With images directly in `root`, the folder is flat and all labels are 0 unless
/// `options.labels` is given. Names that begin with a dot are skipped.
///
/// Records are numbered by the bytes of their path relative to `root`, whatever the locale and
/// the order in which the file system lists them. The fingerprint covers the count, these paths and
/// the labels; file sizes and contents are not in it, since nothing is opened for it. `root`'s own
/// name is not in it either: a folder may move. info() gives the path relative to `root` as the
/// key, the label, and the file's size by one stat, if that succeeds.
///
/// With "s3://bucket/prefix" the images are the objects below that prefix, slashes being folders;
/// the fingerprint is that of a local copy. The listing tells their sizes and versions, which are
/// kept in 16 bytes for each: an object that is replaced later is a fault.
///
/// Shapes   image u8 [?] (the file's bytes), label i64 [].
/// Units    the listing keeps the file names' bytes and 12 more for each file.
/// Errors   std::invalid_argument  no folder or no extension given, max_file_bytes = 0, or labels
///                                 for a folder that has classes
///          Error                  (of s3:// also: a bucket is missing or denied, its server away)
///                                 a folder is missing or cannot be listed, holds no image or mixes
///                                 both layouts; the labels do not fit the images
///          Fault, from read()     the file vanished, may not be read, is empty, is not a regular
///                                 file, is larger than max_file_bytes, or shrank while being read
[[nodiscard]] SourcePtr image_folder(const std::filesystem::path& root,
                                     ImageFolderOptions options = {});

}  // namespace source
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
