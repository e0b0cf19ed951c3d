#include "src/storage/hub/hub_folders.hpp"

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

std::string HubFolders::contents(const ObjectName& folder) const {
  const std::lock_guard lock(mutex_);
  const auto found = folders_.find(folder.url());
  if (found == folders_.end() || found->second.names.empty()) return "is empty";
  const auto& [listed, names, count] = found->second;
  std::string text = "has ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_last = i + 1 == names.size() && names.size() == count;
    text += fmt::format("{}{}",
                        i == 0    ? ""
                        : is_last ? " and "
                                  : ", ",
                        core::printable(names[i], 100));
  }
  if (count > names.size())
    text += fmt::format(" and {}{} more", listed == HubListed::a_part ? "at least " : "",
                        count - names.size());
  return text;
}

void HubFolders::add(const ObjectName& name, const ListedObject& entry) {
  const std::lock_guard lock(mutex_);
  is_full_ = is_full_ || entries_.size() >= kMostEntries;
  if (!is_full_) entries_.insert_or_assign(name.url(), entry);
}

void HubFolders::add_folder(const ObjectName& folder, HubListed listed,
                            std::vector<std::string> names, std::size_t count) {
  const std::lock_guard lock(mutex_);
  // Files that were not kept might be taken for missing ones.
  if (listed == HubListed::all && is_full_) listed = HubListed::a_part;
  if (folders_.size() >= kMostEntries && !folders_.contains(folder.url())) return;
  if (const auto found = folders_.find(folder.url());
      found != folders_.end() && found->second.listed == HubListed::all)
    return;
  folders_.insert_or_assign(folder.url(), Folder{listed, std::move(names), count});
}

std::string_view hub_folder_of(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace penstock::storage
