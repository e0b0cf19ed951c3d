// source/folder/folder_walk: the entries of a folder and of all folders in it, listed by several threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "src/source/folder/file_list.hpp"
#include "src/source/folder/left_out.hpp"
#include "src/source/folder/listing.hpp"
#include "src/storage/storage.hpp"

namespace penstock::source {

/// What a folder holds. Folders sort among files as their names with a slash behind them do.
struct WalkedFolder {
  struct Child {
    std::unique_ptr<WalkedFolder> folder;
    std::uint64_t files_before = 0;  ///< files of this folder that sort before it
  };
  /// What is no image by its name.
  struct Others {
    LeftOut left_out;
    LeftOutCounts of_class;                ///< the same, with the library's own files
    std::vector<std::string> class_links;  ///< in the root: links that may be meant as classes
  };

  std::string path;   ///< relative to the root, with a slash at the end; "" for the root
  std::string names;  ///< of the images: sorted, with a zero behind each
  std::uint64_t files = 0;
  std::vector<Child> children;  ///< sorted
  FolderTimes times;            ///< what they were before and after the listing
  std::unique_ptr<Others> others;
  const WalkedFolder* parent = nullptr;
  std::pair<dev_t, ino_t> identity;  ///< where links are followed
};

/// Whether a name ends in one of ListOptions::endings.
[[nodiscard]] bool has_image_ending(std::string_view name, const ListOptions& options) noexcept;

/// Lists `root` and what is below it. Folders that `before` has with their present times are taken from there. `listed` is
/// called, from several threads, with numbers of files as they are found; what it throws ends the walk.
///
/// Errors  Error  as list_files(), for folders and files that cannot be read
[[nodiscard]] std::unique_ptr<WalkedFolder> walk_folders(
    const std::filesystem::path& root, const ListOptions& options, const storage::Storage& storage,
    const FileList* before, const std::function<void(std::uint64_t files)>& listed);

}  // namespace penstock::source
