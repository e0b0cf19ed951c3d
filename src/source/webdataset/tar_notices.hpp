// source/webdataset/tar_notices: what a user should know of the shards of a data set, beside the faults of its samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <penstock/source/source.hpp>

#include "src/source/shards/shard_set.hpp"

namespace penstock::source {

/// Whether a record of a shard is without a member that a field is made of.
using RecordLacks = std::function<bool(std::size_t shard, std::uint64_t record)>;

/// One notice of each kind, however many shards it is about: no end mark, members that were left out, and keys that come
/// again. Links are a warning of the shards in which something is missing, and a notice of the others. `lacks` returns
/// whether a record is a fault because something is missing, `lacks_any` whether it has no member for a field, required
/// or not.
[[nodiscard]] std::vector<Notice> tar_notices(const ShardSet& shards, const RecordLacks& lacks,
                                              const RecordLacks& lacks_any);

}  // namespace penstock::source
