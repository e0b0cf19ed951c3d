#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <penstock/source/mds.hpp>

#include "src/source/catalog.hpp"
#include "src/source/mds/fields.hpp"
#include "src/source/mds/index_json.hpp"
#include "src/source/mds/mds_rows.hpp"
#include "src/source/mds/shard_scan.hpp"
#include "src/source/shards/index_files.hpp"
#include "src/source/shards/shard_set.hpp"
#include "src/storage/default_cache.hpp"

namespace penstock {

namespace {

using source::MdsIndex;
using source::MdsShard;
using source::ShardIndex;

// Where each shard is read: decompressed, where it lies there so.
std::vector<std::string> paths_of_shards(const MdsIndex& index) {
  std::vector<std::string> paths;
  for (const MdsShard& shard : index.shards) {
    const std::string raw = shard.raw_path();
    std::error_code error;
    const bool is_raw =
        !shard.zipped ||
        (!storage::is_object_url(raw) && std::filesystem::is_regular_file(raw, error) &&
         std::filesystem::file_size(raw, error) == shard.raw.bytes);
    paths.push_back(is_raw ? raw : shard.folder + shard.zipped->name);
  }
  return paths;
}

// One kind of shard after the other: compressed ones have another kind of index.
// Shards whose sizes index.json does not say get them.
std::vector<ShardIndex> open_shards(MdsIndex& index, const std::vector<std::string>& paths,
                                    const std::vector<std::string>& labels,
                                    const IndexOptions& options, const storage::Storage& storage) {
  std::vector<std::optional<ShardIndex>> opened(paths.size());
  for (const bool is_zipped : {false, true}) {
    std::vector<std::size_t> numbers;
    std::vector<std::string> some;
    std::unordered_map<std::string, std::size_t> number_of;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if ((paths[i] != index.shards[i].raw_path()) != is_zipped) continue;
      number_of.emplace(paths[i], i);
      numbers.push_back(i);
      some.push_back(paths[i]);
    }
    if (some.empty()) continue;
    const source::IndexRecipe recipe{
        .kind = is_zipped ? source::ShardKind::mds_zipped : source::ShardKind::mds,
        .labels = labels,
        .found_with = source::identify_mds_columns(index.columns.all()),
        .scan = [&](const storage::StoredFile& file, const std::string& path,
                    std::span<const std::string> names) {
          return source::scan_mds_shard(file, path, index.shards[number_of.at(path)], index.columns,
                                        names);
        }};
    std::vector<ShardIndex> found = source::open_indexes(some, recipe, options, storage);
    for (std::size_t i = 0; i < found.size(); ++i) opened[numbers[i]] = std::move(found[i]);
  }
  std::vector<ShardIndex> indexes;
  for (std::size_t i = 0; i < opened.size(); ++i) {
    MdsShard& shard = index.shards[i];
    const bool is_zipped = paths[i] != shard.raw_path();
    if (shard.raw.bytes == 0) shard.raw.bytes = opened[i]->stamp().bytes;
    source::require_mds_size(paths[i], is_zipped ? shard.zipped->bytes : shard.raw.bytes,
                             opened[i]->stamp().bytes);
    if (opened[i]->records() != shard.rows)
      throw Error(fmt::format("{}: its index has {} rows, and {} says {}: the shard {}", paths[i],
                              opened[i]->records(), index.file, shard.rows,
                              source::kDamagedOrChanged));
    indexes.push_back(std::move(*opened[i]));
  }
  return indexes;
}

std::filesystem::path folder_of_unpacked(const IndexOptions& options) {
  try {
    return (options.cache.empty() ? storage::default_cache()
                                  : std::filesystem::absolute(options.cache)) /
           "shards";
  } catch (const std::filesystem::filesystem_error&) {
    return {};
  }
}

}  // namespace

SourcePtr source::mds(const ShardPaths& folders, MdsOptions options) {
  if (options.max_record_bytes == 0)
    throw std::invalid_argument("max_record_bytes is 0, which no row fits; the default is 256 MiB");
  Description description = source::describe_mds(folders, options);
  auto storage = std::make_shared<const storage::Storage>(options.storage);
  MdsIndex index = source::open_mds_indexes(folders.as_given(), *storage);
  source::MdsRowsParts parts;
  parts.fields = source::resolve_mds_columns(index.columns, options.columns, index.file);
  parts.paths = paths_of_shards(index);
  parts.folder = folder_of_unpacked(options.index);
  parts.known = source::find_mds_known(index.columns, parts.fields);
  parts.indexes = open_shards(index, parts.paths, parts.known.labels(), options.index, *storage);
  parts.index = std::move(index);
  return source::make_mds_rows(std::move(parts), std::move(options), std::move(storage),
                               std::move(description));
}

}  // namespace penstock
