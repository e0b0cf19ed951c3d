#include "src/source/folder/some_files.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "src/storage/storage.hpp"

namespace penstock::source {

std::uint64_t count_if_none_is_there(const Source& files) {
  constexpr std::uint64_t kMostLookedAt = 100;
  if (files.size() == 0 || storage::is_object_url(files.location(0))) return 0;
  const std::uint64_t count = std::min(kMostLookedAt, files.size());
  std::error_code error;
  for (std::uint64_t number = 0; number < count; ++number)
    if (std::filesystem::exists(files.location(number), error)) return 0;
  return count;
}

}  // namespace penstock::source
