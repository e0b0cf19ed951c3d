#include "src/storage/default_cache.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock::storage {

namespace {

// An absolute path from the environment; others are ignored, as XDG asks.
std::filesystem::path folder_from(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return {};
  return value;
}

// In a folder where any user may make one of any name: one that is this user's alone, or none.
std::filesystem::path own_folder_in(const std::filesystem::path& shared) {
  const std::filesystem::path folder = shared / fmt::format("penstock-{}", ::getuid());
  struct stat info {};
  const bool is_own = (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) &&
                      ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                      info.st_uid == ::getuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!is_own)
    throw std::filesystem::filesystem_error(
        "the cache is another user's, or others may write to it: remove it, or set PENSTOCK_CACHE",
        folder, std::make_error_code(std::errc::permission_denied));
  return folder;
}

}  // namespace

std::filesystem::path default_cache() {
  if (auto cache = folder_from("PENSTOCK_CACHE"); !cache.empty()) return absolute(cache);
  if (auto cache = folder_from("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "penstock";
  if (auto home = folder_from("HOME"); home.is_absolute()) return home / ".cache" / "penstock";
  return own_folder_in(std::filesystem::temp_directory_path());
}

}  // namespace penstock::storage
