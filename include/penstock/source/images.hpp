// source/images: labelled images, as files, or in shards and tables; and lists of files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/source/source.hpp>
#include <penstock/source/tables.hpp>
#include <penstock/storage/object_storage.hpp>

namespace PENSTOCK_EXPORT penstock {

/// Which files are images, and what their labels are.
struct ImageFolderOptions {
  /// a text file with one line for each image: its path relative to the folder, with or without its ending, and its label,
  /// separated by a comma, a tab, a semicolon, a bar or blanks; either may be in double quotes, and the first line may be a
  /// header. The labels are all integers (3 or 3.0), which stay as they are, or all class names, which are sorted and
  /// numbered from 0. Sub-folders are no classes then
  std::filesystem::path labels{};
  /// names of the classes: label i is classes[i], so that a validation set has the labels of its training set. A name in it
  /// need not have images; a sub-folder with images, or a name in `labels`, that is not in it is an error. By default the
  /// names that are there, sorted
  std::vector<std::string> classes{};
  /// endings of image files, in upper or lower case, with or without the dot
  std::vector<std::string> extensions = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"};
  /// whether files with other endings, or none, are taken, too, if they begin as images that
  /// decode_image decodes, those for which this build has no library included; they are faults then. The listing then opens each of them, and one that
  /// cannot be read is an error
  bool sniff = false;
  /// a larger file is a fault, so that one record cannot take all memory
  std::uint64_t max_file_bytes = std::uint64_t{256} << 20;
  /// whether links to files and folders are followed; if not, they are skipped
  bool follow_symlinks = true;
  ObjectStorageOptions storage{};  ///< for s3://, hf:// and https:// paths
};

template <class Visitor>
void visit_fields(Visitor& visit, ImageFolderOptions& options) {
  // `storage` is visited by the source: plans have it where a path is not local.
  visit("labels", options.labels);
  visit("classes", options.classes);
  visit("extensions", options.extensions);
  visit("sniff", options.sniff);
  visit("max_file_bytes", options.max_file_bytes);
  visit("follow_symlinks", options.follow_symlinks);
}

namespace source {

/// The images in a folder. Where its sub-folders have images, each sub-folder is a class, with the images at any depth in it;
/// classes are numbered in the order of their names, as in torchvision's ImageFolder. A sub-folder without an image is an
/// error, since it would move the numbers of others, unless `classes` are passed. Where the images are directly in
/// `folder`, it is flat, and all labels are 0. With `labels` images lie anywhere, and have the labels of that file. Names that begin with a dot are skipped. The report
/// counts the files and links that are left out; where `extensions` has its default, and there are images among the first
/// hundred of these files, Loader::notices() has a warning.
///
/// Records are numbered in the order of the bytes of their paths relative to `folder`, independent of the locale and of
/// the order in which the file system lists them. The fingerprint covers the count, these paths and the labels, but
/// neither the sizes and contents of the files, since no file is opened for it, nor the name of `folder`, which may move.
/// A record's key is its path relative to `folder`; its size comes from one stat, if that succeeds.
///
/// From 100,000 local files on, the listing is kept in `listings` of the cache folder ($PENSTOCK_CACHE, else
/// $XDG_CACHE_HOME/penstock, else ~/.cache/penstock). All processes of a machine map it: one of them lists, and the next
/// opening only asks for the times of the folders, and lists those again that have changed. It is not kept with `sniff`, nor
/// of file systems that are not known to set a folder's times, such as FUSE.
///
/// With "s3://bucket/prefix" the images are the objects below that prefix, with slashes between folders; the fingerprint
/// is that of a local copy. The listing gives their sizes and versions, which are kept in 16 bytes for each: an object
/// that is replaced later is a fault. With "hf://datasets/owner/name@revision/path" they are files of a data set of the
/// Hugging Face Hub, at the commit that the revision is when it is opened.
///
/// Shapes  image u8 [?] (the file's bytes), label i64 [].
/// Units   the listing takes the bytes of the files' names and 2 more for each file; one that is kept, a file of that size
/// Errors  std::invalid_argument  no folder or no extension was passed; max_file_bytes = 0; two equal names in classes, or
///                                classes for a flat folder without labels
///         Error                  a folder is missing, cannot be listed, has no image, or has images both directly and in
///                                sub-folders; a sub-folder has no image, or one with images is none of classes; the labels
///                                do not fit the images; of s3:// and hf:// also: a bucket or data set is missing or
///                                denied, or its server does not answer
/// Faults  the file is gone, may not be read, is empty, is not a regular file, is larger than max_file_bytes, or
///         became shorter meanwhile
[[nodiscard]] SourcePtr image_folder(const std::filesystem::path& path,
                                     ImageFolderOptions options = {});

}  // namespace source
/// The labels of a list of files: integers, or texts, which are names of classes or all integers.
struct FileLabels {
  FileLabels() = default;
  FileLabels(std::vector<std::int64_t> all)  // NOLINT(google-explicit-constructor)
      : integers(std::move(all)) {}
  FileLabels(std::vector<std::string> all)  // NOLINT(google-explicit-constructor)
      : names(std::move(all)) {}

  std::vector<std::int64_t> integers{};
  std::vector<std::string> names{};
};

template <class Visitor>
void visit_fields(Visitor& visit, FileLabels& labels) {
  visit("integers", labels.integers);
  visit("names", labels.names);
}

/// For source::files().
struct FilesOptions {
  /// one for each path: integers, which stay as they are, also where they are written as texts, or names of classes; by
  /// default all are 0
  FileLabels labels{};
  /// names of the classes: label i is classes[i], so that a validation set has the labels of its training set; integers are
  /// then from 0 to their number - 1. By default the names among the labels, sorted
  std::vector<std::string> classes{};
  /// the folder that the paths are relative to; by default the current one, where absolute paths and URLs may stand, too
  std::filesystem::path root{};
  std::string field = "image";  ///< the name of the field with a file's bytes
  /// a larger file is a fault, so that one record cannot take all memory
  std::uint64_t max_file_bytes = std::uint64_t{256} << 20;
  ObjectStorageOptions storage{};  ///< for s3://, hf:// and https:// paths
};

template <class Visitor>
void visit_fields(Visitor& visit, FilesOptions& options) {
  // `storage` is visited by the source: plans have it where a path is not local.
  visit("labels", options.labels);
  visit("classes", options.classes);
  visit("root", options.root);
  visit("field", options.field);
  visit("max_file_bytes", options.max_file_bytes);
}

namespace source {

/// The files in a list, in its order: local ones, or all of them "s3://", "hf://" or "https://". A file may come several times. No file is
/// looked at before it is read, so that one that is missing is a fault of its record; an object costs two requests, since its
/// size is not known.
///
/// A record's key is its path relative to `root`, or without that to the folder that all paths have in common. The fingerprint
/// covers these, their order and the labels, but neither the files' contents nor the folder, which may move. A plan in JSON has
/// all the paths and labels in it, 38 MB for a million ImageNet-like ones; a state has the fingerprint only.
///
/// Shapes  `field` u8 [?] (the file's bytes), label i64 [].
/// Units   its name and 2 bytes for each file, 20 for each run of files of one folder, 8 a file where there are labels
/// Errors  std::invalid_argument  no paths; a path that is empty or ends with a slash; some that are objects and some that are
///                                not; with `root`, one that is absolute; another number of labels than paths; a label that is
///                                none of `classes`, or classes without labels; the field's name is empty or "label"
/// Faults  as image_folder()
[[nodiscard]] SourcePtr files(const std::vector<std::string>& paths, FilesOptions options = {});

}  // namespace source
/// For source::images_from().
struct ImagesFromOptions {
  std::string path = "file";  ///< the column of the files' paths
  /// the column of their labels: integers (3 or 3.0), which stay as they are, or names of classes, which are sorted and
  /// numbered from 0; "": there is none, and all labels are 0
  std::string label = "label";
  /// names of the classes: label i is classes[i], so that a validation set has the labels of its training set; integers are
  /// then from 0 to their number - 1. By default those of the column, if it has Hugging Face's ClassLabel, else the names
  /// among the labels, sorted
  std::vector<std::string> classes{};
  /// the folder that relative paths are relative to; by default that of the table
  std::filesystem::path root{};
  /// is appended to each path that does not end with it, such as ".jpg" for a column of ids
  std::string ending{};
  /// more columns of the table, each of which becomes a field; by default there are none
  std::vector<TableColumn> columns{};
  std::string field = "image";  ///< the name of the field with a file's bytes
  /// a larger file is a fault, so that one record cannot take all memory
  std::uint64_t max_file_bytes = std::uint64_t{256} << 20;
  ObjectStorageOptions storage{};  ///< for s3://, hf:// and https:// paths
};

template <class Visitor>
void visit_fields(Visitor& visit, ImagesFromOptions& options) {
  // `storage`: as in ImageFolderOptions.
  visit("path", options.path);
  visit("label", options.label);
  visit("classes", options.classes);
  visit("root", options.root);
  visit("ending", options.ending);
  visit("columns", options.columns);
  visit("field", options.field);
  visit("max_file_bytes", options.max_file_bytes);
}

namespace source {

/// Images, or any files, that a table names: each row is a record, in the order of the rows. `table` is a Parquet file, a
/// folder or a pattern of such, an Arrow file, or else a CSV file, which may be behind "s3://", "hf://" or "https://", too.
///
/// The first line of a CSV file names its columns. They are separated by commas, tabs, semicolons or bars: by those with
/// which the first line has the columns that are asked for. A value with a separator or a line's end in it is in double
/// quotes. The text is UTF-8.
///
/// A path is relative to `root`, absolute, or an s3://, hf:// or https:// URL; all are files of one store. The same one may come
/// several times. The table is read here, as a whole; no file is looked at before it is read, so that one that is missing is
/// a fault of its record. Where none of the first 100 is there, that is an error.
///
/// Each of `columns` becomes a field as in parquet(). One of a CSV file is i64 [] where all its values are integers, f64 []
/// where all are numbers, and else texts, u8 [?]. Integers that begin with a 0, and those that i64 has not, are texts. Both
/// numbers and texts in one column are an error, unless the numbers are in quotes. A value that is empty is an empty text; as
/// a number it is an error, or default_value if its TableColumn is not required.
///
/// Keys and fingerprint are those of files(), and with `columns` of zip() of that and of the table's rows. A plan in JSON has
/// the table's path.
///
/// Shapes  `field` u8 [?] (the file's bytes), label i64 [], and `columns`.
/// Units   as files(), and of a CSV file its columns; while the table is read also its paths, and a CSV file as a whole
/// Errors  std::invalid_argument  no path column; two equal names in classes; a label that is none of classes; paths of several
///                                stores; a field's name that is empty or used twice; lists from a CSV file
///         Error                  the table cannot be read, or has no such column or no rows; a path that is null or empty; a
///                                label that is null, or is neither an integer nor a name, as the others are; none of the first
///                                100 files is there
/// Faults  as image_folder(), and as the table's rows
[[nodiscard]] SourcePtr images_from(const std::filesystem::path& table,
                                    ImagesFromOptions options = {});

/// The same of a table that is open: `path` and `label` are fields of its records, which are read here. Relative paths are
/// below `root`, by default the current folder. A plan in JSON has all paths and labels in it, as of files().
///
/// Errors  std::invalid_argument  columns are given: zip() what this returns with them
[[nodiscard]] SourcePtr images_from(const Source& table, ImagesFromOptions options);

}  // namespace source
/// How images are stored.
enum class ImageForm : std::uint8_t {
  folder,    ///< image files, class per sub-folder or flat: source::image_folder()
  tar,       ///< tar shards in the WebDataset layout: source::webdataset()
  tfrecord,  ///< TFRecord files: source::tfrecord()
  parquet,   ///< Parquet files as Hugging Face has them: source::parquet()
  arrow,     ///< Arrow files, or a folder that datasets saved: source::arrow()
  mds,       ///< data sets of MosaicML's streaming: source::mds()
};

/// By names alone: a file or pattern that ends in .tar; one that ends in .parquet or .parq; one that ends in .arrow, .arrows,
/// .ipc or .feather; one that ends in .mds, or in that and a compression, such as .mds.zstd; one that ends in .tfrecord,
/// .tfrecords, .tfrec or .record, or in numbers such as those of train-00000-of-00010; a folder by the files of one such kind
/// in it, but not by metadata.parquet, nor by tables beside sub-folders with images. All else is a folder of images.
///
/// Errors  Error  a folder has files of several such kinds, images beside such files, or shards beside sub-folders with
///                images; of s3://, hf:// and https:// folders: they cannot be listed, those of web servers never
[[nodiscard]] ImageForm image_form(const std::filesystem::path& path,
                                   const ObjectStorageOptions& storage = {});

namespace source {

/// Labelled images: a folder of image files, or tar shards, Parquet, Arrow or TFRecord files or an MDS data set, which are
/// named by a folder of them or a pattern such as "train-{000000..000099}.tar"; each but Arrow files may be after
/// "s3://bucket/", "hf://datasets/owner/name/" or, but for folders, "https://host/". Names alone decide, as image_form() says; everything else is a folder of
/// images, and the options are for that. Of Parquet and Arrow files the image is the one column of images, else the column
/// "image", and the label the one column of classes, else the column "label". Of MDS the image is the one column of jpeg or
/// png, else the column "image", and the label the first column of integers that is called "label", "y", "class" or "cls".
///
/// Shapes  image u8 [?] (encoded), label i64 [].
/// Errors  std::invalid_argument  an option is given, and there are shards; and as image_folder, webdataset, tfrecord,
///                                parquet, arrow or mds
///         Error                  a table or an MDS data set has not one such column each
[[nodiscard]] SourcePtr images(const std::filesystem::path& path, ImageFolderOptions options = {});

}  // namespace source
}  // namespace penstock
