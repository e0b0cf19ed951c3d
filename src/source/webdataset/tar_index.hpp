// source/webdataset/tar_index: the index of a tar file that is being written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/source/shards/shard_sketch.hpp"

namespace penstock::source {

/// The index of what TarWriter wrote, and of zeros up to `bytes`, as the default fields of webdataset() need it. `shard` is for
/// messages.
[[nodiscard]] std::vector<std::byte> tar_index(const ShardSketch& written, std::uint64_t bytes,
                                               const std::string& shard);

}  // namespace penstock::source
