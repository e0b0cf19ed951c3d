// source/shards/shard_files: many shards, opened when they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/source/shards/shard_index.hpp"
#include "src/storage/storage.hpp"

namespace penstock::source {

/// Opens a shard when it is first read and keeps it open, up to a number of them, and all of a process together up to a
/// quarter of the files that it may have open (RLIMIT_NOFILE), or a few each.
///
/// Threads  any number at once.
class ShardFiles {
 public:
  /// Not so many that the program's own files have no room.
  static constexpr std::size_t kDefaultOpen = 256;

  ShardFiles(std::vector<std::string> paths, storage::StoragePtr storage,
             std::size_t most_open = kDefaultOpen);
  ShardFiles(const ShardFiles&) = delete;
  ShardFiles& operator=(const ShardFiles&) = delete;
  ~ShardFiles();

  [[nodiscard]] std::size_t size() const noexcept { return paths_.size(); }
  [[nodiscard]] const std::string& path(std::size_t shard) const noexcept { return paths_[shard]; }

  [[nodiscard]] bool is_remote() const noexcept;
  /// Where the reads of this storage were answered from.
  [[nodiscard]] std::vector<StorageTier> tiers() const { return storage_->tiers(); }

  /// Reads all of `into`. A Fault if the shard cannot be opened, is no longer the one with this
  /// stamp, or cannot be read there.
  [[nodiscard]] Result<void> read(std::size_t shard, const ShardStamp& stamp, std::uint64_t offset,
                                  std::span<std::byte> into) const;

 private:
  [[nodiscard]] Result<storage::StoredFilePtr> open(std::size_t shard,
                                                    const ShardStamp& stamp) const;
  void forget(std::size_t shard, const storage::StoredFilePtr& file) const;

  std::vector<std::string> paths_;
  storage::StoragePtr storage_;
  std::size_t most_open_;
  mutable std::mutex mutex_;
  mutable std::vector<storage::StoredFilePtr> files_;
  mutable std::vector<std::size_t> opened_;  // shards with a file, as a ring
  mutable std::size_t oldest_ = 0;           // next of them to be closed
  mutable std::size_t counted_ = 0;          // of opened_, in the process's number
};

}  // namespace penstock::source
