// storage/hub/hub_folders: what is known of a data set's files on the Hub from lists of its folders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/storage/object_store.hpp"

namespace penstock::storage {

/// What was listed of one folder.
enum class HubListed : std::uint8_t { nothing, is_missing, a_part, all };

/// A list of a folder says of many files what a request each would. A commit does not change, so this stays true.
///
/// Threads  any number at once.
class HubFolders {
 public:
  /// Of more files nothing is kept.
  static constexpr std::size_t kMostEntries = 65'536;

  /// A file or folder under this name, without a slash at its end, if it was in a list.
  [[nodiscard]] std::optional<ListedObject> find(const ObjectName& name) const;
  /// `folder` is the name of a folder without a slash at its end.
  [[nodiscard]] HubListed listed(const ObjectName& folder) const;
  /// What is in a folder of which all was listed; nothing for others.
  [[nodiscard]] std::optional<std::vector<ListedObject>> entries_of(const ObjectName& folder) const;
  /// "has a.parquet, b.parquet and 7 more", or "is empty".
  [[nodiscard]] std::string contents(const ObjectName& folder) const;

  void add(const ObjectName& name, const ListedObject& entry);
  /// `entries` are what is in it, or the first of them.
  void add_folder(const ObjectName& folder, HubListed listed, std::vector<ListedObject> entries);

 private:
  struct Folder {
    HubListed listed = HubListed::nothing;
    std::vector<ListedObject> entries{};
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, ListedObject> entries_;
  std::unordered_map<std::string, Folder> folders_;
  bool is_full_ = false;
};

/// The folder that a path lies in, without a slash at its end; empty for the root.
[[nodiscard]] std::string_view hub_folder_of(std::string_view path) noexcept;

}  // namespace penstock::storage
