#include "src/source/shards/shard_files.hpp"

#include <algorithm>
#include <utility>

namespace penstock::source {

ShardFiles::ShardFiles(std::vector<std::string> paths, storage::StoragePtr storage,
                       std::size_t most_open)
    : paths_(std::move(paths)),
      storage_(std::move(storage)),
      most_open_(most_open),
      files_(paths_.size()) {}

bool ShardFiles::is_remote() const noexcept {
  return std::ranges::any_of(paths_,
                             [](const std::string& path) { return storage::is_object_url(path); });
}

Result<void> ShardFiles::read(std::size_t shard, const ShardStamp& stamp, std::uint64_t offset,
                              std::span<std::byte> into) const {
  Result<storage::StoredFilePtr> file = open(shard, stamp);
  if (!file) return std::move(file.fault());
  Result<void> result = (*file)->read(offset, into);
  // ESTALE: this descriptor never reads again.
  if (!result && result.fault().transient) forget(shard, *file);
  return result;
}

Result<storage::StoredFilePtr> ShardFiles::open(std::size_t shard, const ShardStamp& stamp) const {
  {
    const std::lock_guard lock(mutex_);
    if (files_[shard]) return files_[shard];
  }
  // Outside of the lock: opening may take long where the storage is far.
  Result<storage::StoredFilePtr> file = storage_->open(path(shard), stamp);
  if (!file) return file;
  storage::StoredFilePtr closed;  // after the lock is gone
  const std::lock_guard lock(mutex_);
  if (files_[shard]) return files_[shard];
  files_[shard] = *file;
  if (std::ranges::count(opened_, shard) > 0) return file;  // forgotten once
  if (opened_.size() < most_open_) {
    opened_.push_back(shard);
  } else {
    closed = std::move(files_[opened_[oldest_]]);
    opened_[oldest_] = shard;
    oldest_ = (oldest_ + 1) % opened_.size();
  }
  return file;
}

void ShardFiles::forget(std::size_t shard, const storage::StoredFilePtr& file) const {
  const std::lock_guard lock(mutex_);
  if (files_[shard] == file) files_[shard] = nullptr;  // others may still hold it
}

}  // namespace penstock::source
