// source/mds/index_json: what the index.json of an MDS data set says of its shards.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/source/shards.hpp>

#include "src/source/mds/columns.hpp"
#include "src/storage/storage.hpp"

namespace penstock::source {

/// A file of a shard.
struct MdsFile {
  std::string name;         ///< in the folder of index.json, or in one below it
  std::uint64_t bytes = 0;  ///< 0: the index does not say it
  std::string hashes;       ///< JSON, as it stands there
};

struct MdsShard {
  std::string folder;  ///< with a slash at its end
  std::uint64_t rows = 0;
  MdsFile raw;
  std::optional<MdsFile> zipped;  ///< with zstd

  [[nodiscard]] std::string raw_path() const { return folder + raw.name; }
};

/// One or more index.json files: their shards one after the other.
struct MdsIndex {
  std::string file;  ///< the first index.json
  MdsColumns columns;
  std::vector<MdsShard> shards;
};

/// `folder` is empty, or ends with a slash. Adds to `index`, whose columns the shards must have if it has any.
///
/// Errors  Error  it is no index of MDS shards, or has something that is refused; the message names `file`
void read_mds_index(std::string_view text, const std::string& file, const std::string& folder,
                    MdsIndex& index);

/// The index of these folders, or index.json files.
///
/// Errors  std::invalid_argument  no folder, an empty path, or a URL other than s3://, hf:// and https://
///         Error                  an index.json cannot be read, or as read_mds_index(); there is no shard at all
[[nodiscard]] MdsIndex open_mds_indexes(std::span<const std::string> folders,
                                        const storage::Storage& storage);

}  // namespace penstock::source
