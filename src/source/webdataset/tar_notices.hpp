// source/webdataset/tar_notices: what a user should know of the shards of a data set, beside the faults of its samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <penstock/source/source.hpp>

#include "src/source/shards/shard_set.hpp"

namespace penstock::source {

/// One notice of each kind, however many shards it is about: no end mark, members that were left out, and keys that come
/// again. `lacks` returns whether a record of a shard is a fault because something is missing.
[[nodiscard]] std::vector<Notice> tar_notices(
    const ShardSet& shards,
    const std::function<bool(std::size_t shard, std::uint64_t record)>& lacks);

}  // namespace penstock::source
