#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/source/tokens.hpp>

#include "src/source/catalog.hpp"
#include "src/source/shards/shard_paths.hpp"
#include "src/source/tokens/documents.hpp"
#include "src/source/tokens/megatron_index.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::source {

namespace {

bool has_ending(std::string_view path, std::string_view ending) { return path.ends_with(ending); }

// "data/text" and "data/text.bin" are "data/text.idx".
ShardPaths index_paths(const ShardPaths& prefixes) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::string path : prefixes.as_given()) {
    require_local(path);
    if (has_ending(path, ".bin")) path.resize(path.size() - 4);
    if (!path.empty() && !has_ending(path, ".idx") && !std::filesystem::is_directory(path, error))
      path += ".idx";
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace

SourcePtr megatron(const ShardPaths& prefixes) {
  const auto is_index = [](std::string_view name) { return has_ending(name, ".idx"); };
  std::vector<DocumentShard> shards;
  std::optional<DType> dtype;
  FoundShards found =
      find_shards(index_paths(prefixes), is_index, "*.idx files", storage::Storage());
  for (const std::string& path : found.paths) {
    storage::MappedFile index_file = storage::map_file(path);
    MegatronIndex index = parse_megatron_index(index_file.bytes, std::move(index_file.owner), path);
    if (dtype && *dtype != index.dtype)
      throw Error(
          fmt::format("{} holds {}, and the files before it hold {}: give files of one type", path,
                      name_of(index.dtype), name_of(*dtype)));
    dtype = index.dtype;
    std::string tokens = path;
    tokens.replace(tokens.size() - 4, 4, ".bin");
    storage::MappedFile file = storage::map_file(tokens);
    shards.push_back(
        {file.bytes, std::move(file.owner), std::move(index.table), std::move(tokens)});
  }
  return make_documents({{"tokens", dtype.value_or(DType::u16), {kDynamic}},
                         "megatron",
                         true,
                         describe_megatron(prefixes),
                         std::move(found.notices)},
                        std::move(shards));
}

}  // namespace penstock::source
