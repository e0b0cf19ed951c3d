#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/source/tokens.hpp>

#include "src/source/catalog.hpp"
#include "src/source/shards/foreign_files.hpp"
#include "src/source/shards/index_files.hpp"
#include "src/source/shards/shard_paths.hpp"
#include "src/source/tokens/documents.hpp"
#include "src/source/tokens/flat_tokens.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::source {

namespace {

// An index that is not of these tokens is not used: the file was replaced since it was mapped, or another tool made it.
std::unique_ptr<const DocumentTable> table_of(ShardIndex index, const FlatTokens& flat,
                                              const TokenFileOptions& options) {
  const std::uint64_t tokens = flat.tokens.size() / size_of(flat.dtype);
  const std::uint64_t records = index.records();
  if (records >= 1 && records <= tokens && index.record_end(records - 1) == tokens)
    return std::make_unique<IndexedEnds>(std::move(index));
  return std::make_unique<EndTable>(find_ends_of(flat, *options.document_end));
}

IndexRecipe recipe_of(const TokenFileOptions& options, DType dtype) {
  return {.kind = ShardKind::tokens,
          .found_with = fmt::format("document_end {}, dtype {}, offset {}", *options.document_end,
                                    name_of(dtype), options.offset),
          .scan = [options](const storage::StoredFile&, const std::string& path, auto) {
            const storage::MappedFile file = storage::map_file(path);
            ScannedShard scanned;
            scanned.contents.record_ends =
                find_ends_of(open_flat(file.bytes, path, options), *options.document_end);
            scanned.records = scanned.contents.record_ends.size();
            return scanned;
          }};
}

}  // namespace

SourcePtr token_files(const ShardPaths& files, const TokenFileOptions& options) {
  if (options.dtype && !is_integer(*options.dtype))
    throw std::invalid_argument(
        fmt::format("tokens are integers, found {}", name_of(*options.dtype)));
  for (const std::string& given : files.as_given()) require_local(given);
  const auto is_shard = [](std::string_view name) {
    return name.ends_with(".bin") || name.ends_with(".npy");
  };
  std::vector<DocumentShard> shards;
  std::vector<std::string> paths;
  std::optional<DType> dtype = std::nullopt;
  std::error_code ignored;
  FoundShards found = find_shards(files, is_shard, "*.bin or *.npy files", storage::Storage());
  for (const std::string& path : found.paths) {
    if (const auto foreign = describe_foreign(path))
      throw Error(fmt::format("{} is {}", path, *foreign));
    storage::MappedFile file = storage::map_file(path);
    const FlatTokens flat = open_flat(file.bytes, path, options);
    if (flat.tokens.empty()) continue;
    if (std::filesystem::exists(std::filesystem::path(path).replace_extension(".idx"), ignored))
      throw Error(fmt::format(
          "{} has an index beside it, as Megatron's data sets have: read it with megatron()",
          path));
    if (!is_integer(flat.dtype))
      throw Error(fmt::format("{} holds {}, and tokens are integers", path, name_of(flat.dtype)));
    if (dtype && *dtype != flat.dtype)
      throw Error(
          fmt::format("{} holds {}, and the files before it hold {}: give files of one type", path,
                      name_of(flat.dtype), name_of(*dtype)));
    dtype = flat.dtype;
    shards.push_back({flat.tokens, std::move(file.owner), nullptr, path,
                      static_cast<std::uint64_t>(flat.tokens.data() - file.bytes.data())});
    paths.push_back(path);
  }
  if (options.document_end) {
    std::vector<ShardIndex> indexes = open_indexes(
        paths, recipe_of(options, dtype.value_or(DType::u16)), options.index, storage::Storage());
    for (std::size_t k = 0; k < shards.size(); ++k) {
      shards[k].table = table_of(std::move(indexes[k]), {*dtype, shards[k].tokens}, options);
      shards[k].document_end = options.document_end;
    }
  } else {
    for (DocumentShard& shard : shards)
      shard.table = std::make_unique<EndTable>(
          std::vector<std::uint64_t>{shard.tokens.size() / size_of(*dtype)});
  }
  return make_documents({{"tokens", dtype.value_or(options.dtype.value_or(DType::u16)), {kDynamic}},
                         "token_files",
                         true,
                         describe_token_files(files, options),
                         std::move(found.notices)},
                        std::move(shards));
}

}  // namespace penstock::source
