// source/shards/foreign_files: files of formats that no source reads, by their names and by their first bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/source/shards/file_window.hpp"

namespace penstock::source {

/// What a file is whose name no source takes, and what to do: "a zip archive: unpack it, and …". None for other names.
[[nodiscard]] std::optional<std::string> describe_foreign(std::string_view name);
/// The same, also of tar and TFRecord files, which are no images.
[[nodiscard]] std::optional<std::string> describe_no_image(std::string_view name);

/// "photos.tar" of photos.tar.gz and photos.tgz; nothing of a name without a compressor's ending.
[[nodiscard]] std::optional<std::string> unpacked_name(std::string_view name);

/// Errors  Error  the file begins as gzip's, zlib's, zstd's, xz's or bzip2's do
void require_uncompressed(FileWindow& file, const std::string& path);

}  // namespace penstock::source
