#include "src/source/shards/compressed.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::source {

void require_uncompressed(FileWindow& file, const std::string& path) {
  using namespace std::string_view_literals;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kKinds{{
      {"\x1F\x8B\x08"sv, "gzip"},
      {"\x78\x9C"sv, "zlib"},
      {"\x28\xB5\x2F\xFD"sv, "zstd"},
      {"\xFD"
       "7zXZ\0"sv,
       "xz"},
      {"BZh"sv, "bzip2"},
  }};
  constexpr std::size_t kLongest = 6;
  const auto bytes = file.at(0, kLongest);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const auto& [begin, tool] : kKinds) {
    if (!text.starts_with(begin)) continue;
    throw Error(fmt::format(
        "the shard {} is compressed with {}, which leaves no random access; unpack it (images "
        "gain next to nothing from it)",
        path, tool));
  }
}

}  // namespace penstock::source
