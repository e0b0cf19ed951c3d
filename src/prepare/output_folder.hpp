// prepare/output_folder: where shards are written: a folder of a disk, or of a bucket.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "src/core/byte_sink.hpp"
#include "src/storage/storage.hpp"

namespace penstock::prepare {

/// Threads  const, any number at once.
class OutputFolder {
 public:
  /// `attempts`: of each request that writes to a bucket.
  OutputFolder(std::string path, const ObjectStorageOptions& storage, int attempts);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool is_remote() const noexcept;
  [[nodiscard]] std::string path_of(const std::string& name) const;
  /// Names and sizes of what lies directly in it; of a folder that is not there, nothing.
  ///
  /// Errors  Error  a bucket cannot be listed
  [[nodiscard]] std::map<std::string, std::uint64_t> files() const;
  /// Nothing where there is no such file.
  ///
  /// Errors  Error  it cannot be read; calls it `what`
  [[nodiscard]] std::optional<std::string> read(const std::string& name, const char* what) const;
  [[nodiscard]] Result<storage::StoredFilePtr> open(const std::string& name) const;
  [[nodiscard]] std::unique_ptr<core::ByteSink> create(const std::string& name) const;
  void write(const std::string& name, std::span<const std::byte> bytes) const;

  /// Errors  Error  it cannot be made
  void make() const;
  /// Removes the files that `is_own` of a run that was killed while it wrote them.
  void remove_what_was_begun(const std::function<bool(const std::string& name)>& is_own) const;

 private:
  [[nodiscard]] storage::ObjectName prefix() const;

  std::string path_;
  storage::Storage storage_;
  int attempts_;
};

/// A folder of a disk, for this process alone. Not on every network file system; a bucket knows no locks.
class FolderLock {
 public:
  /// Errors  Error  another process has it
  explicit FolderLock(const OutputFolder& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int folder_ = -1;
};

}  // namespace penstock::prepare
