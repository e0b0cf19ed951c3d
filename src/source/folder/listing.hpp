// source/folder/listing: the image files or objects below a folder, in the order of their relative paths'
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/storage/storage.hpp"

namespace penstock::source {

/// File names in one arena: 12 bytes and the name a file, however deep its folder.
class FileList {
 public:
  struct Folder {
    std::string path;        ///< relative to the root, with a slash at the end; "" for the root
    std::int64_t label = 0;  ///< index of its class
  };

  [[nodiscard]] std::uint64_t size() const noexcept { return folder_of_.size(); }
  [[nodiscard]] const Folder& folder(std::uint64_t file) const noexcept {
    return folders_[folder_of_[file]];
  }
  [[nodiscard]] std::string_view name(std::uint64_t file) const noexcept {
    return &names_[name_at_[file]];
  }
  /// One class per sub-folder with an image, sorted; none for a flat folder.
  [[nodiscard]] std::span<const std::string> class_names() const noexcept { return class_names_; }
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
};

/// Lists every file below `root`, a folder or s3://bucket/prefix, whose name has one of the endings
/// (lower case, with the dot). Names that begin with a dot are passed over. At least one file, or
/// an Error.
///
/// Errors  Error  a folder cannot be listed, there is no such file, or some lie in `root` and some
///                in its sub-folders
[[nodiscard]] FileList list_files(const std::filesystem::path& root,
                                  std::span<const std::string> endings, bool follow_symlinks,
                                  const storage::Storage& storage);

}  // namespace penstock::source
