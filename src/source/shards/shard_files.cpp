#include "src/source/shards/shard_files.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <sys/resource.h>

namespace penstock::source {

namespace {

std::atomic<std::size_t> files_of_process{0};  // that some ShardFiles keeps open

constexpr std::size_t kOpenOfEach = 8;  // however many others keep open

// Whether one more may be kept open; it is counted then.
bool take_one(bool in_any_case) noexcept {
  struct rlimit limit {};
  constexpr rlim_t kShare = 4;
  const std::size_t taken = files_of_process.fetch_add(1);
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      taken < limit.rlim_cur / kShare || in_any_case)
    return true;
  files_of_process.fetch_sub(1);
  return false;
}

}  // namespace

ShardFiles::ShardFiles(std::vector<std::string> paths, storage::StoragePtr storage,
                       std::size_t most_open)
    : paths_(std::move(paths)),
      storage_(std::move(storage)),
      most_open_(most_open),
      files_(paths_.size()) {}

ShardFiles::~ShardFiles() { files_of_process.fetch_sub(counted_); }

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
  const bool has_descriptor = (*file)->descriptor() >= 0;
  if (opened_.size() < most_open_ && (!has_descriptor || take_one(opened_.size() < kOpenOfEach))) {
    counted_ += has_descriptor ? 1 : 0;
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
