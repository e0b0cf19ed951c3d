// source/folder/listing: the image files or objects below a folder, in the order of their relative paths'
// bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/source/folder/file_list.hpp"
#include "src/storage/storage.hpp"

namespace penstock::source {

struct ListOptions {
  std::vector<std::string> endings;  ///< of images: lower case, with the dot
  bool sniff = false;  ///< whether files with other endings are images if they begin as such
  bool follow_symlinks = true;
  bool has_classes = true;  ///< whether sub-folders are classes; if not, images may lie anywhere
  /// names of the classes, label by label; empty: those of the sub-folders, sorted
  std::vector<std::string> classes{};
  /// whether the listing of a local folder is kept in the cache folder if it has at least so many files
  bool keep = true;
  std::uint64_t keep_from = 100'000;
  std::filesystem::path cache{};  ///< by default storage::default_cache()
  /// how long a folder must not have changed for its times to be trusted; by default as its file system asks
  std::optional<std::chrono::nanoseconds> settled_after{};
  /// what to do where there is no image but are other files
  std::string hint =
      "check the path, name the endings in the option extensions, or set the option sniff";
};

/// Lists every image file below `root`, a folder or s3://bucket/prefix; or takes the listing that is kept of the folder, where no
/// folder in it has changed. Folders are listed by several threads, and those that changed alone where there is a listing of the
/// others. Of the processes that list a large folder at the same time one does, and the others take what it keeps. Names that begin with a dot are passed over. At
/// least one file, or an Error.
///
/// Errors  Error  it is wanted no longer (core::Interruption); a folder cannot be listed, a file that is sniffed cannot be read, there is no such file; where sub-folders are classes, some lie in `root` and some in its
///                sub-folders, or a sub-folder has no image, or one that `classes` does not name has one
[[nodiscard]] FileList list_files(const std::filesystem::path& root, const ListOptions& options,
                                  const storage::Storage& storage);

}  // namespace penstock::source
