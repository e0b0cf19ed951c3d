// storage/storage: the one place where sources find, open and read what they are made of,
// be it files or objects.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/description.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/object_storage.hpp>

#include "src/core/byte_sink.hpp"
#include "src/storage/cached_store.hpp"
#include "src/storage/local/file.hpp"
#include "src/storage/object_store.hpp"
#include "src/storage/retry.hpp"
#include "src/storage/stored_file.hpp"
#include "src/storage/web_url.hpp"

namespace penstock::storage {

/// Each of them waits for a request's answer; a bandwidth of 100 MB/s at 30 ms a request is 30
/// photographs of 100 kB.
inline constexpr int kObjectReadsAtOnce = 32;

/// Paths are those of local files, s3://bucket/key, hf://datasets/owner/name@revision/path or https://host/path?query.
///
/// Threads  const, any number at once.
class Storage {
 public:
  explicit Storage(ObjectStorageOptions options = {}) : options_(std::move(options)) {}

  /// The name of a file at a path: of a URL of a web server without its query, which is sent from now on where the file is asked
  /// for; any other path as it is.
  ///
  /// Errors  std::invalid_argument  no such URL; another query was given with it
  [[nodiscard]] std::string name_of(const std::string& path) const;
  /// Such a name with its query again, as plans keep it.
  [[nodiscard]] std::string path_of(const std::string& name) const;

  /// What tells whether the file is still the same. A Fault also for what is no regular file.
  [[nodiscard]] Result<FileStamp> stat(const std::string& path) const;
  /// The same of a file that is read by ranges. A Fault where it can only be read as a whole.
  [[nodiscard]] Result<FileStamp> stat_for_ranges(const std::string& path) const;
  [[nodiscard]] Result<StoredFilePtr> open(const std::string& path) const;
  /// The same where its stamp is known already. An object costs no request for it, and is compared
  /// when it is read; a file that was changed is a Fault.
  [[nodiscard]] Result<StoredFilePtr> open(const std::string& path, const FileStamp& known) const;
  /// Reads a whole file. `known` is its stamp where a listing told it, and null for a local file.
  [[nodiscard]] Result<std::span<const std::byte>> read_whole(
      const char* path, const FileStamp* known, std::uint64_t max_bytes, const Allocate& allocate,
      std::uint64_t head = UINT64_MAX) const;
  /// The text of a file or an object, up to 1 GiB.
  ///
  /// Errors  Error  it cannot be read, or is larger
  [[nodiscard]] std::string read_text(const std::string& path) const;
  /// A file or an object to be written, which appears when it is finished.
  ///
  /// Errors  Error  it cannot be made
  [[nodiscard]] std::unique_ptr<core::ByteSink> create(const std::string& path,
                                                       int attempts = kUsualAttempts) const;

  /// The store of the service that keeps this object, or what lies below it. Made when it is first asked for.
  ///
  /// Errors  as open_object_store(), open_hub_store() and open_cache()
  [[nodiscard]] const ObjectStore& objects(const ObjectName& name) const;
  [[nodiscard]] ObjectStorePtr shared_objects(const ObjectName& name) const;
  /// The same without the cache.
  [[nodiscard]] ObjectStorePtr uncached_objects(const ObjectName& name) const;
  /// Where the reads of objects were answered from; empty where none was opened.
  [[nodiscard]] std::vector<StorageTier> tiers() const;
  /// S3's without the cache, to be written to.
  [[nodiscard]] WritableObjectStorePtr writable_objects() const;

 private:
  [[nodiscard]] ObjectName object_of(const std::string& path) const;

  ObjectStorageOptions options_;
  std::shared_ptr<WebQueries> queries_ = std::make_shared<WebQueries>();
  mutable std::mutex mutex_;
  mutable WritableObjectStorePtr s3_;
  mutable ObjectStorePtr hub_;
  mutable ObjectStorePtr web_;
  mutable std::array<CachedStorePtr, kObjectServices> cached_;  // by their service
};

using StoragePtr = std::shared_ptr<const Storage>;

/// Errors  std::invalid_argument  the path is another URL than s3://, hf:// or https://; it is hf:// and no file of a data set; it
///                                is https:// and names no file of a server
void require_readable_scheme(const std::string& path);

/// Errors  std::invalid_argument  the path is a URL of what is read only
void require_writable(const std::string& path);

}  // namespace penstock::storage
