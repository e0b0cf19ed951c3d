// prepare/shard_format: what the formats of shards differ in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <penstock/prepare/prepare.hpp>
#include <penstock/source/source.hpp>

#include "src/prepare/shard_writer.hpp"

namespace penstock::prepare {

/// "data-000003.tar"; "data-00003-of-00012.parquet", as datasets and the Hugging Face Hub have it.
[[nodiscard]] std::string shard_name(const PrepareOptions& options, std::uint64_t shard,
                                     std::uint64_t shards);

/// What lies beside Parquet files is hidden: their readers take every other file of a folder for one of them.
[[nodiscard]] std::string jpeg_index_name(PrepareFormat format, const std::string& shard);
/// Of what readers of a bucket look for beside the shard.
[[nodiscard]] std::string shard_index_name(PrepareFormat format, const std::string& shard);
/// Of the list of the shards that were made.
[[nodiscard]] std::string record_name(PrepareFormat format);
/// Whether a run of that name may have begun to write a file: a shard, or what lies beside it.
[[nodiscard]] bool is_own_name(const PrepareOptions& options, const std::string& file);
/// Whether readers of the folder take the file for a shard.
[[nodiscard]] bool is_shard_name(PrepareFormat format, const std::string& file);

[[nodiscard]] std::unique_ptr<ShardWriter> make_shard_writer(PrepareFormat format,
                                                             std::unique_ptr<core::ByteSink> to,
                                                             const Input& input);

/// The shards in a folder, as their readers open them: this makes their indexes.
[[nodiscard]] SourcePtr open_shards(PrepareFormat format, const std::string& folder,
                                    const ObjectStorageOptions& storage);

}  // namespace penstock::prepare
