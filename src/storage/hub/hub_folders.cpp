#include "src/storage/hub/hub_folders.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/core/printable.hpp"

namespace penstock::storage {

std::optional<ListedObject> HubFolders::find(const ObjectName& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name.url());
  return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

HubListed HubFolders::listed(const ObjectName& folder) const {
  const std::lock_guard lock(mutex_);
  const auto found = folders_.find(folder.url());
  return found == folders_.end() ? HubListed::nothing : found->second.listed;
}

std::optional<std::vector<ListedObject>> HubFolders::entries_of(const ObjectName& folder) const {
  const std::lock_guard lock(mutex_);
  const auto found = folders_.find(folder.url());
  if (found == folders_.end() || found->second.listed != HubListed::all) return std::nullopt;
  return found->second.entries;
}

std::string HubFolders::contents(const ObjectName& folder) const {
  constexpr std::size_t kShown = 6;
  const std::lock_guard lock(mutex_);
  const auto found = folders_.find(folder.url());
  if (found == folders_.end() || found->second.entries.empty()) return "is empty";
  const auto& [listed, entries] = found->second;
  const std::size_t shown = std::min(kShown, entries.size());
  const std::size_t prefix = folder.folder_prefix().size();
  std::string text = "has ";
  for (std::size_t i = 0; i < shown; ++i) {
    std::string_view name = std::string_view(entries[i].key).substr(prefix);
    if (entries[i].is_folder) name.remove_suffix(1);
    const bool is_last = i + 1 == entries.size();
    text += fmt::format("{}{}", i == 0 ? "" : is_last ? " and " : ", ", core::printable(name, 100));
  }
  if (entries.size() > shown)
    text += fmt::format(" and {}{} more", listed == HubListed::a_part ? "at least " : "",
                        entries.size() - shown);
  return text;
}

void HubFolders::add(const ObjectName& name, const ListedObject& entry) {
  const std::lock_guard lock(mutex_);
  is_full_ = is_full_ || entries_.size() >= kMostEntries;
  if (!is_full_) entries_.insert_or_assign(name.url(), entry);
}

void HubFolders::add_folder(const ObjectName& folder, HubListed listed,
                            std::vector<ListedObject> entries) {
  const std::lock_guard lock(mutex_);
  // Files that were not kept might be taken for missing ones.
  if (listed == HubListed::all && is_full_) listed = HubListed::a_part;
  constexpr std::size_t kForMessages = 64;
  if (is_full_ && entries.size() > kForMessages) entries.resize(kForMessages);
  if (folders_.size() >= kMostEntries && !folders_.contains(folder.url())) return;
  Folder& known = folders_[folder.url()];
  if (known.listed != HubListed::all) known = {listed, std::move(entries)};
}

std::string_view hub_folder_of(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace penstock::storage
