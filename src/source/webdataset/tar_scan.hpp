// source/webdataset/tar_scan: the files in a tar file, by its headers alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "src/source/shards/file_window.hpp"
#include "src/source/shards/shard_index.hpp"

namespace penstock::source {

/// A member of a tar file that is no folder: a regular file, a link, a device or a pipe.
struct TarEntry {
  std::string name;
  std::uint64_t begin = 0;  ///< of its data, whose header is the block before it
  std::uint64_t bytes = 0;
  bool own_size = true;  ///< the size is the header's, not a pax record's
  bool own_name = true;  ///< the name is the header's, not one of a header before it
  char type = '0';       ///< as in the header; '0' for all regular files
};

/// A stretch that could not be understood.
struct TarHole {
  DamageKind kind{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string name;        ///< of the member that begins here, as far as it can be told; else empty
  std::string about;       ///< in the good header of a member whose full name was lost; else empty
  std::uint64_t data = 0;  ///< where the member's data begin behind a damaged header
  bool is_alone = true;    ///< the stretch ends where that member does, as its header says
};

/// Walks through a tar file and calls `entry` or `hole` for each member or damaged stretch, in their
/// order. Reads POSIX ustar, pax (path and size), GNU tar's long names and base-256 sizes, and
/// version 7; passes over folders, also with damaged headers, and over types that POSIX does not know.
///
/// After a damaged header it continues where that header's size leads to another good one, else at
/// the next block that is a good ustar header. What is cut off reaches to the end of the file; so is a
/// member without its padding. Returns whether zero blocks mark the end of the file, or of what was lost before it.
///
/// Errors  Error  the file cannot be read, or is compressed
bool scan_tar(FileWindow& file, const std::string& path,
              const std::function<void(TarEntry&&)>& entry,
              const std::function<void(TarHole&&)>& hole);

}  // namespace penstock::source
