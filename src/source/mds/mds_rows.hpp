// source/mds/mds_rows: the rows of MDS shards as a source.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/source/mds.hpp>

#include "src/source/mds/fields.hpp"
#include "src/source/mds/index_json.hpp"
#include "src/source/shards/shard_index.hpp"
#include "src/storage/storage.hpp"

namespace penstock::source {

/// What is known of a row without reading it.
struct MdsKnown {
  std::optional<std::size_t> label;   ///< number of the field
  std::string label_name;             ///< in the index
  std::optional<std::size_t> length;  ///< number of the field whose length is known
  std::string length_name;            ///< in the index; empty where it follows from the row's size

  /// What the index must have.
  [[nodiscard]] std::vector<std::string> labels() const;
};
[[nodiscard]] MdsKnown find_mds_known(const MdsColumns& columns, std::span<const MdsField> fields);

struct MdsRowsParts {
  MdsIndex index;
  std::vector<MdsField> fields;
  MdsKnown known;
  std::vector<std::string> paths;   ///< of the shards, as they are read
  std::vector<ShardIndex> indexes;  ///< of these
  std::filesystem::path folder;     ///< for decompressed shards; may be empty
};
[[nodiscard]] SourcePtr make_mds_rows(MdsRowsParts parts, MdsOptions options,
                                      storage::StoragePtr storage, Description description);

}  // namespace penstock::source
