// source/webdataset/tar_members: which members the samples of tar shards have.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <penstock/source/source.hpp>

namespace penstock::source {

struct TarMembers {
  std::uint64_t members = 0;
  std::uint64_t empty = 0;  ///< of them those of 0 bytes
};

/// By their extension, of all samples; nothing for a source that webdataset() did not make.
[[nodiscard]] std::map<std::string, TarMembers> count_tar_members(const Source& source);

}  // namespace penstock::source
