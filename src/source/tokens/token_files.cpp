#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/source/tokens.hpp>

#include "src/source/descriptions.hpp"
#include "src/source/shards/shard_paths.hpp"
#include "src/source/tokens/documents.hpp"
#include "src/source/tokens/flat_tokens.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::source {

SourcePtr token_files(const ShardPaths& files, const TokenFileOptions& options) {
  if (options.dtype && !is_integer(*options.dtype))
    throw std::invalid_argument(
        fmt::format("tokens are integers, found {}", name_of(*options.dtype)));
  for (const std::string& given : files.as_given()) require_local(given);
  const auto is_shard = [](std::string_view name) {
    return name.ends_with(".bin") || name.ends_with(".npy");
  };
  std::vector<DocumentShard> shards;
  std::optional<DType> dtype = std::nullopt;
  std::error_code ignored;
  for (const std::string& path :
       find_shards(files, is_shard, "*.bin or *.npy files", storage::Storage())) {
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
    shards.push_back({flat.tokens, std::move(file.owner),
                      std::make_unique<EndTable>(find_ends_of(flat, options.document_end)), path});
  }
  return make_documents({{"tokens", dtype.value_or(options.dtype.value_or(DType::u16)), {kDynamic}},
                         "token_files",
                         true,
                         describe_token_files(files, options)},
                        std::move(shards));
}

}  // namespace penstock::source
