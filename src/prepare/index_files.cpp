#include <filesystem>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/prepare/prepare.hpp>

#include "src/core/interruption.hpp"
#include "src/core/progress.hpp"
#include "src/prepare/output_folder.hpp"
#include "src/source/shards/shard_names.hpp"

namespace penstock {

namespace {

namespace fs = std::filesystem;
using prepare::OutputFolder;

constexpr const char* kEnding = ".jpegindex";

std::vector<std::string> index_names(const OutputFolder& folder) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : folder.files())
    if (name.ends_with(kEnding)) names.push_back(name);
  return names;
}

}  // namespace

std::size_t load_jpeg_index(MemoryJpegIndex& into, const std::string& file_or_folder,
                            const ObjectStorageOptions& storage) {
  if (!storage::is_object_url(file_or_folder)) return into.load(file_or_folder);
  const storage::Storage objects(storage);
  const auto load = [&](const std::string& path) {
    const std::string text = objects.read_text(path);
    return into.load_bytes(std::as_bytes(std::span(text)), objects.name_of(path));
  };
  if (storage::split_web_url(file_or_folder).plain.ends_with(kEnding)) return load(file_or_folder);
  const OutputFolder folder(file_or_folder, storage, 1);
  const std::vector<std::string> names = index_names(folder);
  if (names.empty())
    throw Error(
        fmt::format("{}: there is no *.jpegindex file in this folder: penstock-prepare "
                    "writes them beside its shards",
                    file_or_folder));
  std::size_t loaded = 0;
  core::ProgressCounter progress(fmt::format("reading the JPEG indices of {}", file_or_folder),
                                 "files", names.size());
  for (const std::string& name : names) {
    core::require_wanted();
    loaded += load(folder.path_of(name));
    progress.add(1);
  }
  return loaded;
}

std::optional<std::string> jpeg_indices_beside(const std::string& data,
                                               const ObjectStorageOptions& storage) {
  const auto found = [&](const std::string& folder) {
    return !folder.empty() && !index_names(OutputFolder(folder, storage, 1)).empty();
  };
  if (storage::is_web_url(data)) return std::nullopt;  // whose files are not listed
  if (storage::is_object_url(data)) {
    // A name or a pattern of shards ends like one; a folder need not end in a slash.
    const bool is_shards = data.ends_with(".tar") || source::is_parquet_name(data) ||
                           data.find_first_of("*?[{") != data.npos;
    const std::string folder = is_shards ? data.substr(0, data.rfind('/')) : data;
    return found(folder) ? std::optional(folder) : std::nullopt;
  }
  std::error_code error;
  const fs::path path(data);
  const std::string folder = (fs::is_directory(path, error) ? path : path.parent_path()).string();
  return found(folder) ? std::optional(folder) : std::nullopt;
}

}  // namespace penstock
