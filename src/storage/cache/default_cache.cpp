#include "src/storage/cache/default_cache.hpp"

#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

namespace penstock::storage {

namespace {

// An absolute path from the environment; others are ignored, as XDG asks.
std::filesystem::path folder_from(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return {};
  return value;
}

}  // namespace

std::filesystem::path default_cache() {
  if (auto cache = folder_from("PENSTOCK_CACHE"); !cache.empty()) return absolute(cache);
  if (auto cache = folder_from("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "penstock";
  if (auto home = folder_from("HOME"); home.is_absolute()) return home / ".cache" / "penstock";
  return std::filesystem::temp_directory_path() / fmt::format("penstock-{}", ::getuid());
}

}  // namespace penstock::storage
