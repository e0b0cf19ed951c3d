// prepare/make_shard: the samples of a shard, read and prepared on all threads, and used in order.
#pragma once

#include <stop_token>

#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/prepare/prepare.hpp>

#include "src/prepare/input.hpp"
#include "src/prepare/shard_writer.hpp"

namespace penstock::prepare {

/// What is done with the samples; each may be missing.
struct ShardUse {
  ShardWriter* writer = nullptr;
  JpegIndexStore* index = nullptr;
};

/// Errors  DataError  a sample that cannot be read
///         Error      `stop` was requested; what `use` throws
[[nodiscard]] PrepareReport make_shard(const PrepareOptions& options, const Input& input,
                                       const PrepareShard& shard, const ShardUse& use,
                                       const OnPrepared& on_prepared, const std::stop_token& stop);

}  // namespace penstock::prepare
