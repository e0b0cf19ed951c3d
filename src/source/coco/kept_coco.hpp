// source/coco/kept_coco: columns of a large annotation file in the cache folder, so that they are parsed once.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "src/source/coco/coco_file.hpp"

namespace penstock::source {

struct KeepCoco {
  std::filesystem::path cache{};                        // by default the library's cache folder
  std::uint64_t least_bytes = std::uint64_t{16} << 20;  // of a file whose columns are kept
  // What was changed later than that may change again without another time, and is not kept.
  std::chrono::nanoseconds settled_after = std::chrono::seconds(60);
};

/// parse_coco() of a local file; from what is kept where that was made of the file with this path, size, inode and times. It
/// is kept only of file systems that are known to set a file's times; where it is damaged or cannot be written, the file is
/// parsed.
///
/// Errors  Error  as parse_coco(); the file cannot be read
[[nodiscard]] CocoFile read_local_coco(const std::string& path, const KeepCoco& keep = {});

}  // namespace penstock::source
