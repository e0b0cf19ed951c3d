// storage/object_store: buckets of objects, independent of the service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/storage/object_storage.hpp>

#include "src/storage/http/request_counts.hpp"
#include "src/storage/stored_file.hpp"

namespace penstock::storage {

/// What keeps objects: S3 or another server that speaks its language, the Hugging Face Hub, or a web server.
enum class ObjectService : std::uint8_t { s3, hub, web };
inline constexpr std::size_t kObjectServices = 3;

/// "s3://bucket/key", or "hf://bucket/key", where the bucket is a data set: "datasets/owner/name", with "@revision" behind it
/// where one was given. Of a web server the bucket is "https://host:port", and the key as it stands in the URL, without the
/// query behind it. A key may be empty, or end in a slash, where it stands for a folder.
struct ObjectName {
  std::string bucket;
  std::string key;
  ObjectService service = ObjectService::s3;

  [[nodiscard]] std::string url() const {
    const char* const scheme = service == ObjectService::s3    ? "s3://"
                               : service == ObjectService::hub ? "hf://"
                                                               : "";
    return scheme + bucket + "/" + key;
  }
  /// Another object of the same bucket.
  [[nodiscard]] ObjectName with_key(std::string other) const {
    return {bucket, std::move(other), service};
  }
  /// The key as a prefix of what lies in it: empty, or with a slash at its end.
  [[nodiscard]] std::string folder_prefix() const {
    return key.empty() || key.ends_with('/') ? key : key + '/';
  }
};

[[nodiscard]] inline bool is_object_url(std::string_view path) noexcept {
  return path.starts_with("s3://") || path.starts_with("hf://") || path.starts_with("https://") ||
         path.starts_with("http://");
}

/// A query is left out.
///
/// Errors  std::invalid_argument  none of these URLs, or no bucket; of the Hub, another thing than a data set
[[nodiscard]] ObjectName parse_object_url(std::string_view url);

class WebQueries;

/// One entry of a listing: an object, or, in a listing that is not recursive, a folder.
struct ListedObject {
  std::string key;  ///< whole; a folder's ends in a slash
  bool is_folder = false;
  FileStamp stamp{};
};

/// Threads  const, any number at once.
class ObjectStore {
 public:
  ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;
  virtual ~ObjectStore() = default;

  /// All objects whose keys begin with prefix.key, until `each` returns false. Repeats what failed
  /// and may pass.
  ///
  /// Errors  Error  there is no such bucket, it may not be listed, or the server is away
  virtual void list(const ObjectName& prefix, bool recursive,
                    const std::function<bool(ListedObject&&)>& each) const = 0;
  /// What is there under this name. Repeats what failed and may pass.
  [[nodiscard]] virtual Result<FileStamp> stat(const ObjectName& name) const = 0;
  /// Reads all of `into`, which lies within an object with this stamp. One attempt: the
  /// caller decides about retries.
  [[nodiscard]] virtual Result<void> read(const ObjectName& name, const FileStamp& stamp,
                                          std::uint64_t offset,
                                          std::span<std::byte> into) const = 0;
  /// A Fault where it is known that read() can only read the whole of this object, which has more than one byte. Known after
  /// stat().
  [[nodiscard]] virtual Result<void> check_ranges(const ObjectName&) const { return {}; }
  /// Of all calls of read() so far.
  [[nodiscard]] virtual RequestCounts counts() const { return {}; }
};

using ObjectStorePtr = std::shared_ptr<const ObjectStore>;

/// An upload in parts that was begun and not completed. None of it is listed among the objects.
struct OpenUpload {
  std::string key;
  std::string id;
};

/// A store that can be written to. Each call but list_uploads() is one attempt: the caller decides about retries. An object
/// appears whole, in place of another, when put() or complete_upload() has succeeded.
///
/// Threads  const, any number at once.
class WritableObjectStore : public ObjectStore {
 public:
  [[nodiscard]] virtual Result<void> put(const ObjectName& name,
                                         std::span<const std::byte> bytes) const = 0;
  /// Begins an upload in parts; returns its id. `mark` is kept with the object: a random text, by which the upload is known.
  [[nodiscard]] virtual Result<std::string> begin_upload(const ObjectName& name,
                                                         const std::string& mark) const = 0;
  /// Part `number`, from 1 on; returns its ETag. A part that is sent again replaces the one before.
  [[nodiscard]] virtual Result<std::string> put_part(const ObjectName& name,
                                                     const std::string& upload, int number,
                                                     std::span<const std::byte> bytes) const = 0;
  /// Makes the parts one object. An upload that is not there any more, but whose mark the object has, was completed by an
  /// earlier attempt, whose answer was lost.
  [[nodiscard]] virtual Result<void> complete_upload(const ObjectName& name,
                                                     const std::string& upload,
                                                     const std::string& mark,
                                                     std::span<const std::string> etags) const = 0;
  /// Removes the parts. One that is not there any more is no Fault.
  [[nodiscard]] virtual Result<void> abort_upload(const ObjectName& name,
                                                  const std::string& upload) const = 0;
  /// The open uploads of keys that begin with prefix.key. Repeats what failed and may pass.
  ///
  /// Errors  Error  they may not be listed, or the server is away
  [[nodiscard]] virtual std::vector<OpenUpload> list_uploads(const ObjectName& prefix) const = 0;
};

using WritableObjectStorePtr = std::shared_ptr<const WritableObjectStore>;

/// The store that the options and the environment describe, without its cache.
///
/// Errors  Error  this build has no object storage, or invalid environment variables
[[nodiscard]] WritableObjectStorePtr open_object_store(const ObjectStorageOptions& options);
/// The same for the Hugging Face Hub, which is read only.
///
/// Errors  as above; std::invalid_argument  an option that is of S3 alone
[[nodiscard]] ObjectStorePtr open_hub_store(const ObjectStorageOptions& options);
/// The same for web servers, which are read only. `queries` are sent behind the URLs that they were given with.
///
/// Errors  as above
[[nodiscard]] ObjectStorePtr open_web_store(const ObjectStorageOptions& options,
                                            std::shared_ptr<const WebQueries> queries);

}  // namespace penstock::storage
