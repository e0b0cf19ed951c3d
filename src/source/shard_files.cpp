#include "src/source/shard_files.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock::detail {

ShardFiles::ShardFiles(std::vector<std::string> paths, std::size_t most_open)
    : paths_(std::move(paths)), most_open_(most_open), files_(paths_.size()) {}

Result<void> ShardFiles::read(std::size_t shard, const ShardStamp& stamp, std::uint64_t offset,
                              std::span<std::byte> into) const {
  Result<FilePtr> file = open(shard, stamp);
  if (!file) return std::move(file.fault());
  for (std::size_t done = 0; done < into.size();) {
    const ssize_t got = ::pread((*file)->get(), into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return Fault{.reason = "the shard was cut off after it had been indexed; open it again",
                   .file = path(shard),
                   .offset = offset + done};
    } else if (errno != EINTR) {
      const int error = errno;
      if (is_transient(error)) forget(shard, *file);  // ESTALE: this descriptor never reads again
      return fault_of_errno(path(shard), offset + done, "cannot read", error);
    }
  }
  return {};
}

Result<ShardFiles::FilePtr> ShardFiles::open(std::size_t shard, const ShardStamp& stamp) const {
  {
    const std::lock_guard lock(mutex_);
    if (files_[shard]) return files_[shard];
  }
  // Outside of the lock: opening may take long where the storage is far.
  auto file = std::make_shared<const FileDescriptor>(open_for_reading(path(shard).c_str()));
  if (!file->is_open()) {
    return fault_of_errno(path(shard), 0, "cannot open", errno);
  }
  struct stat info {};
  if (::fstat(file->get(), &info) != 0) {
    return fault_of_errno(path(shard), 0, "cannot stat", errno);
  }
  if (stamp_of(info) != stamp) {
    return Fault{.reason = "the shard was changed after it had been indexed; open it again",
                 .file = path(shard)};
  }
  FilePtr closed;  // after the lock is gone
  const std::lock_guard lock(mutex_);
  if (files_[shard]) return files_[shard];
  files_[shard] = file;
  if (std::ranges::count(opened_, shard) > 0) return FilePtr(std::move(file));  // forgotten once
  if (opened_.size() < most_open_) {
    opened_.push_back(shard);
  } else {
    closed = std::move(files_[opened_[oldest_]]);
    opened_[oldest_] = shard;
    oldest_ = (oldest_ + 1) % opened_.size();
  }
  return FilePtr(std::move(file));
}

void ShardFiles::forget(std::size_t shard, const FilePtr& file) const {
  const std::lock_guard lock(mutex_);
  if (files_[shard] == file) files_[shard] = nullptr;  // others may still hold it
}

}  // namespace penstock::detail
