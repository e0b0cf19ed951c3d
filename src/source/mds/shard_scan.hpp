// source/mds/shard_scan: where the rows of an MDS shard lie, for its index.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "src/source/mds/index_json.hpp"
#include "src/source/shards/index_files.hpp"

namespace penstock::source {

/// The names under which an index keeps a column's integers, and the lengths of its values in elements of a type.
[[nodiscard]] std::string name_of_mds_integers(const std::string& column);
[[nodiscard]] std::string name_of_mds_lengths(const std::string& column, DType elements);

/// The place of each row in the decompressed shard, and what is to be kept of it, by the names above. `file` is the shard as
/// it is stored.
///
/// Errors  Error  it has another size or number of rows than index.json says, its header is damaged in many places or cannot
///                be decompressed, or it cannot be read
[[nodiscard]] ScannedShard scan_mds_shard(const storage::StoredFile& file, const std::string& path,
                                          const MdsShard& shard, const MdsColumns& columns,
                                          std::span<const std::string> labels);

/// Errors  Error  the file has not the size that index.json says
void require_mds_size(const std::string& path, std::uint64_t expected, std::uint64_t found);

}  // namespace penstock::source
