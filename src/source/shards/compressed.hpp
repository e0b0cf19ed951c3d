// source/shards/compressed: the error for files without random access.
#pragma once

#include <string>

#include "src/source/shards/file_window.hpp"

namespace penstock::source {

/// Errors  Error  the file begins as gzip's, zstd's, xz's or bzip2's do
void require_uncompressed(FileWindow& file, const std::string& path);

}  // namespace penstock::source
