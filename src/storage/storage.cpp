#include "src/storage/storage.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

#include "src/core/lower_case.hpp"
#include "src/core/output_file.hpp"
#include "src/core/storage_tiers.hpp"
#include "src/storage/hub_url.hpp"
#include "src/storage/local/file.hpp"
#include "src/storage/object_writer.hpp"
#include "src/storage/retry.hpp"

namespace penstock::storage {

namespace {

FileStamp stamp_of(const struct stat& info) noexcept {
  return {static_cast<std::uint64_t>(info.st_size),
          std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

// The stamp of a regular file, from what stat() or fstat() returned.
Result<FileStamp> stamp_of(const std::string& path, int failed, const struct stat& info) {
  if (failed != 0) return fault_of_errno(path, 0, "cannot stat", errno);
  if (S_ISREG(info.st_mode)) return stamp_of(info);
  return Fault{
      .reason = fmt::format("expected a regular file, found {}",
                            S_ISDIR(info.st_mode) ? "a folder" : "a pipe, socket or device"),
      .file = path};
}

Fault changed_file(const std::string& path) {
  return {.reason = "the file was changed while it was open; open it again once it is complete",
          .file = path};
}

class LocalFile final : public StoredFile {
 public:
  LocalFile(std::string path, int fd, FileStamp stamp)
      : path_(std::move(path)), file_(fd), stamp_(stamp) {}

  FileStamp stamp() const noexcept override { return stamp_; }
  // Holds the header of a small member, the member and the next header, and costs no more to read
  // than a page.
  std::size_t window_bytes() const noexcept override { return 8192; }
  int descriptor() const noexcept override { return file_.get(); }

  Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override {
    for (std::size_t done = 0; done < into.size();) {
      const ssize_t got = ::pread(file_.get(), into.data() + done, into.size() - done,
                                  static_cast<off_t>(offset + done));
      if (got > 0) {
        done += static_cast<std::size_t>(got);
      } else if (got == 0) {
        return Fault{.reason = "the shard was cut off after it had been indexed; open it again",
                     .file = path_,
                     .offset = offset + done};
      } else if (errno != EINTR) {
        return fault_of_errno(path_, offset + done, "cannot read", errno);
      }
    }
    // Behind the read: what was written before it is seen here.
    struct stat info {};
    if (::fstat(file_.get(), &info) == 0 && stamp_of(info) != stamp_) return changed_file(path_);
    return {};
  }

 private:
  std::string path_;
  FileDescriptor file_;
  FileStamp stamp_;
};

class ObjectFile final : public StoredFile {
 public:
  ObjectFile(ObjectStorePtr store, ObjectName name, FileStamp stamp)
      : store_(std::move(store)), name_(std::move(name)), stamp_(stamp) {}

  FileStamp stamp() const noexcept override { return stamp_; }
  // A request takes as long as a few megabytes do: so many that few are for headers alone.
  std::size_t window_bytes() const noexcept override { return std::size_t{4} << 20; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override {
    return store_->read(name_, stamp_, offset, into);
  }

 private:
  ObjectStorePtr store_;
  ObjectName name_;
  FileStamp stamp_;
};

}  // namespace

const ObjectStore& Storage::objects(const ObjectName& name) const { return *shared_objects(name); }

WritableObjectStorePtr Storage::writable_objects() const {
  const std::lock_guard lock(mutex_);
  if (!s3_) s3_ = open_object_store(options_);
  return s3_;
}

ObjectStorePtr Storage::uncached_objects(const ObjectName& name) const {
  if (name.service == ObjectService::s3) return writable_objects();
  const std::lock_guard lock(mutex_);
  if (name.service == ObjectService::web) {
    if (!web_) web_ = open_web_store(options_, queries_);
    return web_;
  }
  if (!hub_) hub_ = open_hub_store(options_);
  return hub_;
}

ObjectStorePtr Storage::shared_objects(const ObjectName& name) const {
  ObjectStorePtr store = uncached_objects(name);
  const std::lock_guard lock(mutex_);
  CachedStorePtr& cached = cached_[static_cast<std::size_t>(name.service)];
  if (!cached)
    cached = std::make_shared<const CachedStore>(std::move(store), open_cache(options_.cache));
  return cached;
}

std::vector<StorageTier> Storage::tiers() const {
  const std::lock_guard lock(mutex_);
  std::vector<StorageTier> all;
  for (const CachedStorePtr& store : cached_)
    if (store) core::add_tiers(all, store->tiers());
  return all;
}

std::unique_ptr<core::ByteSink> Storage::create(const std::string& path, int attempts) const {
  if (!is_object_url(path)) return std::make_unique<core::OutputFile>(path);
  require_writable(path);
  return std::make_unique<ObjectWriter>(writable_objects(), parse_object_url(path),
                                        ObjectWriterOptions{.attempts = attempts});
}

std::string Storage::name_of(const std::string& path) const {
  if (!is_web_url(path)) return path;
  const WebUrl url = split_web_url(path);
  (void)parse_web_url(path);
  queries_->add(url.plain, url.query);
  return std::string(url.plain);
}

std::string Storage::path_of(const std::string& name) const {
  return is_web_url(name) ? name + queries_->find(name) : name;
}

ObjectName Storage::object_of(const std::string& path) const {
  return parse_object_url(name_of(path));
}

Result<FileStamp> Storage::stat(const std::string& path) const {
  if (is_object_url(path)) {
    const ObjectName name = object_of(path);
    return objects(name).stat(name);
  }
  struct stat info {};
  const int failed = ::stat(path.c_str(), &info);
  return stamp_of(path, failed, info);
}

Result<FileStamp> Storage::stat_for_ranges(const std::string& path) const {
  Result<FileStamp> stamp = stat(path);
  if (!stamp || !is_object_url(path)) return stamp;
  const ObjectName name = object_of(path);
  Result<void> has_ranges = objects(name).check_ranges(name);
  if (!has_ranges) return std::move(has_ranges.fault());
  return stamp;
}

Result<StoredFilePtr> Storage::open(const std::string& path) const {
  if (is_object_url(path)) {
    Result<FileStamp> stamp = stat_for_ranges(path);
    if (!stamp) return std::move(stamp.fault());
    return open(path, *stamp);
  }
  FileDescriptor file(open_for_reading(path.c_str()));
  if (!file.is_open()) return fault_of_errno(path, 0, "cannot open", errno);
  struct stat info {};
  const int failed = ::fstat(file.get(), &info);
  const Result<FileStamp> stamp = stamp_of(path, failed, info);
  if (!stamp) return stamp.fault();
  return StoredFilePtr(std::make_shared<LocalFile>(path, file.release(), *stamp));
}

Result<StoredFilePtr> Storage::open(const std::string& path, const FileStamp& known) const {
  if (is_object_url(path)) {
    ObjectName name = object_of(path);
    return StoredFilePtr(
        std::make_shared<ObjectFile>(shared_objects(name), std::move(name), known));
  }
  Result<StoredFilePtr> file = open(path);
  if (file && (*file)->stamp() != known) {
    return Fault{.reason = "the shard was changed after it had been indexed; open it again",
                 .file = path};
  }
  return file;
}

Result<std::span<const std::byte>> Storage::read_whole(const char* path, const FileStamp* known,
                                                       std::uint64_t max_bytes,
                                                       const Allocate& allocate,
                                                       std::uint64_t head) const {
  if (known == nullptr) return read_file(path, max_bytes, allocate, head);
  const auto fault = [&](std::string reason) {
    return Fault{.reason = std::move(reason), .file = path};
  };
  if (known->bytes == 0) return fault("the object is empty (0 bytes)");
  if (known->bytes > max_bytes) {
    return fault(fmt::format("the object has {} bytes, more than max_file_bytes = {}", known->bytes,
                             max_bytes));
  }
  const Result<std::span<std::byte>> room = allocate(std::min(known->bytes, head));
  if (!room) {
    Fault full = room.fault();
    full.file = path;
    return full;
  }
  const ObjectName name = object_of(path);
  Result<void> result = objects(name).read(name, *known, 0, *room);
  if (!result) return std::move(result.fault());
  return std::span<const std::byte>(*room);
}

std::string Storage::read_text(const std::string& path) const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  if (!is_object_url(path)) {
    Result<std::string> text = read_text_file(path, kMost);
    if (text) return std::move(*text);
    throw Error(fmt::format("cannot read {}: {}; check the path", path, text.fault().reason));
  }
  const ObjectName object = object_of(path);
  const std::string name = object.url();
  const ObjectStore& store = objects(object);
  const Result<FileStamp> stamp = store.stat(object);
  if (!stamp) throw Error(fmt::format("cannot read {}: {}", name, stamp.fault().reason));
  if (stamp->bytes > kMost)
    throw Error(fmt::format("cannot read {}: it holds more than {} bytes", name, kMost));
  std::string text(stamp->bytes, '\0');
  auto result = with_retries(
      [&] { return store.read(object, *stamp, 0, std::as_writable_bytes(std::span(text))); });
  if (!result) throw Error(fmt::format("cannot read {}: {}", name, result.fault().reason));
  return text;
}

void require_readable_scheme(const std::string& path) {
  if (is_hub_url(path)) return static_cast<void>(parse_hub_url(path));
  if (is_web_url(path)) return static_cast<void>(parse_web_url(path));
  if (is_object_url(path)) return;
  // What pathlib makes of these URLs, and what is typed for them.
  for (const std::string_view scheme : {"s3:/", "hf:/", "https:/", "http:/"})
    if (const std::size_t rest = path.find_first_not_of('/', scheme.size());
        rest != path.npos && core::lower_case(path.substr(0, scheme.size())) == scheme) {
      const std::string meant = fmt::format("{}/{}", scheme, path.substr(rest));
      if (is_web_url(meant)) (void)parse_web_url(meant);  // which shows no password
      throw std::invalid_argument(fmt::format(
          "{} is not a path: did you mean {}? (In Python, give it as a str.)",
          is_web_url(meant) ? path.substr(0, path.find('?')) : path, split_web_url(meant).plain));
    }
  if (path.find("://") == path.npos && !path.starts_with("pipe:") && !path.starts_with("s3:/") &&
      !path.starts_with("hf:/")) {
    return;
  }
  // It speaks the language of S3, too.
  const std::string instead =
      path.starts_with("gs://")
          ? fmt::format(
                "write s3://{}, with AWS_ENDPOINT_URL=https://storage.googleapis.com and an "
                "HMAC key of Google Cloud Storage in AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY; a file that is public is also "
                "https://storage.googleapis.com/{}",
                path.substr(5), path.substr(5))
          : "copy them, or mount the place where they are";
  throw std::invalid_argument(
      fmt::format("{} is not a path: data are read from local files, from s3://bucket/key, "
                  "hf://datasets/owner/name and https://host/path; {}",
                  path, instead));
}

void require_writable(const std::string& path) {
  if (path.starts_with("hf:")) throw std::invalid_argument(cannot_write_to_hub(path));
  if (path.starts_with("https:") || path.starts_with("http:"))
    throw std::invalid_argument(cannot_write_to_web(path));
}

}  // namespace penstock::storage
