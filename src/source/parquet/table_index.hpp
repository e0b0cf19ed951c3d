// source/parquet/table_index: the index of a Parquet file that is being written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/source/shards/shard_sketch.hpp"

namespace penstock::source {

/// The index of what ParquetTableWriter wrote, of `bytes`, as images() needs it: with the integers of the column "label". The
/// sketch must have kept the footer. `file` is for messages.
[[nodiscard]] std::vector<std::byte> parquet_image_index(const ShardSketch& written,
                                                         std::uint64_t bytes,
                                                         const std::string& file);

}  // namespace penstock::source
