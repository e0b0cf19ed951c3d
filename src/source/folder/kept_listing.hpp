// source/folder/kept_listing: a listing of a large folder in the cache folder, which the processes of a machine map.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "src/source/folder/file_list.hpp"
#include "src/source/folder/listing.hpp"

namespace penstock::source {

/// Where the listing of a folder with these options is kept.
class KeptListing {
 public:
  KeptListing(const std::filesystem::path& root, const ListOptions& options);

  /// What the listing has of it.
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  /// The listing that is kept, whatever has changed since; nothing where there is none, or one that is damaged.
  ///
  /// Errors  Error  it is wanted no longer (core::Interruption)
  [[nodiscard]] std::optional<FileList> find() const;
  /// Replaces it as a whole, and removes those that were not used for a month. Returns what the file holds, or `list` where it
  /// cannot be written.
  ///
  /// Errors  as find()
  [[nodiscard]] FileList keep(FileList list) const;

 private:
  std::string key_;
  std::filesystem::path file_;  // empty: there is no cache folder
};

/// Whether an open folder is of a file system that is known to set its times at each change of its entries.
[[nodiscard]] bool has_times_that_tell(int folder);

/// An open folder's times; none where they need not tell a change: the file system is not known to set them, or it was changed so
/// recently that a change after this one may have the same times.
[[nodiscard]] FolderTimes settled_times_of(int folder, const ListOptions& options);

/// Whether each folder of `list` has the times that it had then.
///
/// Errors  as KeptListing::find()
[[nodiscard]] bool is_unchanged(const std::filesystem::path& root, const FileList& list);

}  // namespace penstock::source
