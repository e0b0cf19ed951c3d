// source/folder/listing: the image files or objects below a folder, in the order of their relative paths'
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/source/folder/left_out.hpp"
#include "src/storage/storage.hpp"

namespace penstock::source {

/// File names in one arena: 12 bytes and the name a file, however deep its folder.
class FileList {
 public:
  struct Folder {
    std::string path;        ///< relative to the root, with a slash at the end; "" for the root
    std::int64_t label = 0;  ///< index of its class
  };

  FileList() = default;
  /// These paths, relative to the root, in their order; they have no classes.
  ///
  /// Errors  std::invalid_argument  a path that names no file
  explicit FileList(std::span<const std::string_view> paths);

  [[nodiscard]] std::uint64_t size() const noexcept { return folder_of_.size(); }
  [[nodiscard]] const Folder& folder(std::uint64_t file) const noexcept {
    return folders_[folder_of_[file]];
  }
  [[nodiscard]] std::string_view name(std::uint64_t file) const noexcept {
    return &names_[name_at_[file]];
  }
  /// folder(file).path + name(file) beside `path`: below 0, 0 or above it, as their bytes are.
  [[nodiscard]] int compare_path(std::uint64_t file, std::string_view path) const noexcept;
  /// The names of the classes, label by label; none for a flat folder.
  [[nodiscard]] std::span<const std::string> class_names() const noexcept { return class_names_; }
  /// Files that are no images by their names.
  [[nodiscard]] const LeftOut& left_out() const noexcept { return left_out_; }
  /// What a listing of objects said of it; null for files.
  [[nodiscard]] const storage::FileStamp* stamp(std::uint64_t file) const noexcept {
    return stamps_.empty() ? nullptr : &stamps_[file];
  }
  /// 16 hexadecimal digits for all relative paths.
  [[nodiscard]] std::string hash() const;

 private:
  friend class FileLister;
  std::vector<storage::FileStamp> stamps_;  // of objects
  std::vector<Folder> folders_;
  std::vector<char> names_;  // each ends in '\0'
  std::vector<std::uint64_t> name_at_;
  std::vector<std::uint32_t> folder_of_;
  std::vector<std::string> class_names_;
  LeftOut left_out_;
};

/// A class's label is the place of its name in the list of all. The keys are views of these.
using ClassNumbers = std::map<std::string_view, std::int64_t>;
[[nodiscard]] ClassNumbers numbers_of(std::span<const std::string> class_names);

struct ListOptions {
  std::vector<std::string> endings;  ///< of images: lower case, with the dot
  bool sniff = false;  ///< whether files with other endings are images if they begin as such
  bool follow_symlinks = true;
  bool has_classes = true;  ///< whether sub-folders are classes; if not, images may lie anywhere
  /// names of the classes, label by label; empty: those of the sub-folders, sorted
  std::vector<std::string> classes;
};

/// Lists every image file below `root`, a folder or s3://bucket/prefix. Names that begin with a dot are passed over. At
/// least one file, or an Error.
///
/// Errors  Error  a folder cannot be listed, a file that is sniffed cannot be read, there is no such file; where sub-folders are classes, some lie in `root` and some in its
///                sub-folders, or a sub-folder has no image, or one that `classes` does not name has one
[[nodiscard]] FileList list_files(const std::filesystem::path& root, const ListOptions& options,
                                  const storage::Storage& storage);

}  // namespace penstock::source
