// source/mds/unpacked_shards: compressed shards, decompressed into a folder when they are first read.
//
// The folder: a file for each shard, named by a hash of where the shard is and of its stamp; and .lock, of which a process
// locks a byte while it decompresses the shard whose hash that is. A file is written under another name, flushed and
// renamed; one that has not the shard's size is not used. The time of access of a file is that of its last opening.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/source/mds/index_json.hpp"
#include "src/source/page_cache.hpp"
#include "src/storage/storage.hpp"

namespace penstock::source {

/// Threads  any number at once, and any number of processes.
class MdsUnpackedShards {
 public:
  /// A shard as it is stored.
  struct Packed {
    std::string path;
    storage::FileStamp stamp;
    MdsFile raw;  ///< what it becomes
  };
  /// `folder` is empty where there is no cache folder: each read is a fault then.
  MdsUnpackedShards(std::vector<Packed> shards, std::filesystem::path folder,
                    std::uint64_t most_bytes, storage::StoragePtr storage);

  /// Reads all of `into` from the decompressed shard, which is made if it is not there. A Fault where it cannot be made or
  /// read; a shard that is damaged is decompressed once, and not again for each row.
  [[nodiscard]] Result<void> read(std::size_t shard, std::uint64_t offset,
                                  std::span<std::byte> into) const;
  /// Where the decompressed shard is, or would be.
  [[nodiscard]] std::filesystem::path path_of(std::size_t shard) const;

 private:
  using Opened = Result<storage::StoredFilePtr>;
  using OpenedOrDamage = Decoded<storage::StoredFilePtr>;
  [[nodiscard]] Result<std::shared_ptr<const OpenedOrDamage>> open_or_damage(
      std::size_t shard) const;
  [[nodiscard]] Opened open(std::size_t shard) const;
  [[nodiscard]] Opened find(const std::string& path, std::uint64_t bytes) const;
  [[nodiscard]] Opened unpack(const Packed& shard, const std::string& path) const;
  void make_room(std::uint64_t bytes) const;

  std::vector<Packed> shards_;
  std::filesystem::path folder_;
  std::uint64_t most_bytes_;
  storage::StoragePtr storage_;
  mutable PageCache<OpenedOrDamage> open_;
};

}  // namespace penstock::source
