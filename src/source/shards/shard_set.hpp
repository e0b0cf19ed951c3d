// source/shards/shard_set: the records of many shards, numbered consecutively.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/random.hpp>

#include "src/source/shards/shard_files.hpp"
#include "src/source/shards/shard_index.hpp"

namespace penstock::source {

/// Behind what is no longer as it was indexed.
inline constexpr std::string_view kDamagedOrChanged =
    "is damaged, or was changed after it was indexed; remove its .penstock-index, which lies "
    "beside "
    "it or in the folder indexes of the cache (index_cache), and open it again";

class ShardSet {
 public:
  /// One record of one shard.
  struct Place {
    std::size_t shard = 0;
    std::uint64_t record = 0;
  };

  ShardSet(std::vector<std::string> paths, std::vector<ShardIndex> indexes,
           storage::StoragePtr storage)
      : files_(std::move(paths), std::move(storage)), indexes_(std::move(indexes)) {
    std::uint64_t records = 0;
    for (const ShardIndex& index : indexes_) ends_.push_back(records += index.records());
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] std::size_t shards() const noexcept { return indexes_.size(); }
  [[nodiscard]] const ShardIndex& index(std::size_t shard) const noexcept {
    return indexes_[shard];
  }
  [[nodiscard]] const std::string& path(std::size_t shard) const noexcept {
    return files_.path(shard);
  }

  /// Whether any shard is an object.
  [[nodiscard]] bool is_remote() const noexcept { return files_.is_remote(); }

  [[nodiscard]] Place place(std::uint64_t number) const noexcept {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), number);
    const auto shard = static_cast<std::size_t>(end - ends_.begin());
    return {shard, number - (shard == 0 ? 0 : ends_[shard - 1])};
  }

  /// Numbers of the records with which shards begin that have some, as Source::chunks.
  [[nodiscard]] std::vector<std::uint64_t> begins() const {
    std::vector<std::uint64_t> all;
    std::uint64_t begin = 0;
    for (const std::uint64_t end : ends_) {
      if (begin < end) all.push_back(begin);
      begin = end;
    }
    return all;
  }

  /// "file.tfrecord:17", what a record without a name of its own is called.
  [[nodiscard]] std::string key(const Place& place) const {
    const std::string& whole = path(place.shard);
    return whole.substr(whole.rfind('/') + 1) + ':' + std::to_string(place.record);
  }
  /// The same with the whole path.
  [[nodiscard]] std::string location(const Place& place) const {
    return path(place.shard) + ':' + std::to_string(place.record);
  }

  [[nodiscard]] Result<void> read(std::size_t shard, std::uint64_t offset,
                                  std::span<std::byte> into) const {
    return files_.read(shard, indexes_[shard].stamp(), offset, into);
  }

  /// A bucket holds all shards.
  [[nodiscard]] std::vector<StorageTier> tiers() const {
    std::vector<StorageTier> all = files_.tiers();
    for (StorageTier& tier : all)
      for (const ShardIndex& index : indexes_)
        if (tier.name == "bucket") tier.held_bytes += index.stamp().bytes;
    return all;
  }

  /// Of the shards' names, sizes and contents, and of `more`.
  [[nodiscard]] std::string hash(const std::string& more) const {
    std::string text = hash_text(more);
    for (std::size_t shard = 0; shard < indexes_.size(); ++shard) {
      const std::string& whole = path(shard);
      text += whole.substr(whole.rfind('/') + 1);
      text += '\0';
      for (const std::uint64_t number :
           {indexes_[shard].stamp().bytes, indexes_[shard].content_hash()}) {
        text.append(reinterpret_cast<const char*>(&number), sizeof number);
      }
    }
    return hash_text(text);
  }

 private:
  ShardFiles files_;
  std::vector<ShardIndex> indexes_;
  std::vector<std::uint64_t> ends_;  // one behind the last record of each shard
};

}  // namespace penstock::source
