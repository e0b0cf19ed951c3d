#include "src/storage/object_cache.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <penstock/core/error.hpp>

#include "src/storage/local/file.hpp"

namespace penstock::storage {

namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> kMagic{'\x89', 'P', 'S', 'O', 'B', 'J', '\r', '\n'};
constexpr std::string_view kEnding = ".object";
constexpr std::string_view kTemporary = ".tmp.";
constexpr std::size_t kNameDigits = 32;
constexpr std::uint64_t kDefaultBytes = std::uint64_t{64} << 30;

struct EntryHeader {
  std::array<char, 8> magic = kMagic;
  std::uint64_t key_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hash_low = 0;  // XXH3-128 of the bytes
  std::uint64_t hash_high = 0;
  std::uint64_t head_hash = 0;  // XXH3 of all above, and of the key
};
static_assert(std::has_unique_object_representations_v<EntryHeader> && sizeof(EntryHeader) == 48);

std::uint64_t head_hash(const EntryHeader& header, std::string_view key) noexcept {
  const auto seed = XXH3_64bits(&header, offsetof(EntryHeader, head_hash));
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

EntryHeader header_of(std::string_view key, std::span<const std::byte> bytes) noexcept {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  EntryHeader header{.key_bytes = key.size(),
                     .bytes = bytes.size(),
                     .hash_low = hash.low64,
                     .hash_high = hash.high64};
  header.head_hash = head_hash(header, key);
  return header;
}

bool read_all(int file, std::uint64_t offset, std::span<std::byte> into) noexcept {
  for (std::size_t done = 0; done < into.size();) {
    const ssize_t got =
        ::pread(file, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int file, std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno != EINTR) return false;
    if (put <= 0) continue;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return true;
}

// What a file takes of the disk, more or less.
std::uint64_t taken(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kBlock = 4096;
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

// A link would lead to a file that is not the cache's.
int open_lock(const fs::path& folder) noexcept {
  return ::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
}

// The folder's lock, and the sum of the entries' sizes that is kept in it.
class Ledger {
 public:
  explicit Ledger(const fs::path& folder) : file_(open_lock(folder)) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger() {
    if (held_) ::flock(file_.get(), LOCK_UN);  // a forked child may hold the descriptor
  }

  // Not forever: the process that holds it may have been stopped, and nothing depends on storing.
  [[nodiscard]] bool take() noexcept {
    constexpr int kTries = 200;
    for (int i = 0; file_.is_open() && !held_ && i < kTries; ++i) {
      held_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
      if (held_) break;
      if (errno != EWOULDBLOCK && errno != EINTR) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return held_;
  }

  // Nothing where it was never counted, or the file is damaged.
  [[nodiscard]] std::optional<std::uint64_t> total() const noexcept {
    std::array<std::uint64_t, 2> state{};
    if (!read_all(file_.get(), 0, std::as_writable_bytes(std::span(state)))) return std::nullopt;
    if (state[1] != check(state[0])) return std::nullopt;
    return state[0];
  }
  void set_total(std::uint64_t total) noexcept {
    const std::array<std::uint64_t, 2> state{total, check(total)};
    (void)write_all(file_.get(), 0, std::as_bytes(std::span(state)));
  }

 private:
  static std::uint64_t check(std::uint64_t total) noexcept {
    return XXH3_64bits(&total, sizeof total);
  }
  FileDescriptor file_;
  bool held_ = false;
};

struct Entry {
  std::int64_t used_ns = 0;
  std::uint64_t bytes = 0;
  int folder = 0;
  std::array<char, kNameDigits> name{};
};

// All entries, and what temporary files take. What dead processes left of these is removed: an
// hour is more than any write takes. Files with other names are not the cache's, and left alone.
std::uint64_t scan(const fs::path& cache, std::vector<Entry>& entries) {
  std::uint64_t total = 0;
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  for (int number = 0; number < 256; ++number) {
    const fs::path folder = cache / fmt::format("{:02x}", number);
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), ::closedir);
    if (!directory) continue;
    while (const dirent* const item = ::readdir(directory.get())) {
      const std::string_view name = item->d_name;
      const bool is_entry = name.size() == kNameDigits + kEnding.size() && name.ends_with(kEnding);
      const bool is_temporary =
          name.substr(std::min(name.size(), kNameDigits)).starts_with(kTemporary);
      struct stat info {};
      if ((!is_entry && !is_temporary) ||
          ::fstatat(::dirfd(directory.get()), item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        continue;
      }
      constexpr std::int64_t kHour = 3600;
      if (is_temporary && now.tv_sec - info.st_mtim.tv_sec > kHour) {
        ::unlinkat(::dirfd(directory.get()), item->d_name, 0);
        continue;
      }
      const std::uint64_t bytes = taken(static_cast<std::uint64_t>(info.st_size));
      total += bytes;
      if (!is_entry) continue;
      entries.push_back(
          {.used_ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
           .bytes = bytes,
           .folder = number});
      std::copy_n(name.begin(), kNameDigits, entries.back().name.begin());
    }
  }
  return total;
}

class CachedStore final : public ObjectStore {
 public:
  CachedStore(ObjectStorePtr store, ObjectCache cache)
      : store_(std::move(store)), cache_(std::move(cache)) {}

  void list(const ObjectName& prefix, bool recursive,
            const std::function<bool(ListedObject&&)>& each) const override {
    store_->list(prefix, recursive, each);
  }
  Result<FileStamp> stat(const ObjectName& name) const override { return store_->stat(name); }

  Result<void> read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                    std::span<std::byte> into) const override {
    const std::string key =
        fmt::format("{}\n{} {:016x} {} {}", name.url(), stamp.bytes,
                    static_cast<std::uint64_t>(stamp.version), offset, into.size());
    if (cache_.find(key, into)) return {};
    Result<void> result = store_->read(name, stamp, offset, into);
    if (result) cache_.store(key, into);
    return result;
  }

 private:
  ObjectStorePtr store_;
  ObjectCache cache_;
};

}  // namespace

std::string cache_entry_head(std::string_view key, std::span<const std::byte> bytes) {
  const EntryHeader header = header_of(key, bytes);
  std::string head(reinterpret_cast<const char*>(&header), sizeof header);
  return head.append(key);
}

bool read_cache_entry(int file, std::string_view key, std::span<std::byte> into) {
  struct stat info {};
  const std::uint64_t head_bytes = sizeof(EntryHeader) + key.size();
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<std::uint64_t>(info.st_size) != head_bytes + into.size()) {
    return false;
  }
  std::string head(head_bytes, '\0');
  if (!read_all(file, 0, std::as_writable_bytes(std::span(head)))) return false;
  EntryHeader header;
  std::memcpy(&header, head.data(), sizeof header);
  if (header.magic != kMagic || header.key_bytes != key.size() || header.bytes != into.size() ||
      std::string_view(head).substr(sizeof header) != key ||
      header.head_hash != head_hash(header, key) || !read_all(file, head_bytes, into)) {
    return false;
  }
  const XXH128_hash_t hash = XXH3_128bits(into.data(), into.size());
  return hash.low64 == header.hash_low && hash.high64 == header.hash_high;
}

ObjectCache::ObjectCache(fs::path folder, std::uint64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {
  if (max_bytes_ == 0)
    throw std::invalid_argument("a cache of 0 bytes keeps nothing; leave it out");
  std::error_code error;
  folder_ = fs::absolute(folder_);
  fs::create_directories(folder_, error);
  const FileDescriptor lock(open_lock(folder_));
  if (lock.is_open()) return;
  throw Error(
      fmt::format("cannot write the cache folder {}: {}; set PENSTOCK_OBJECT_CACHE, or "
                  "the cache's option folder, to a folder that can be written",
                  folder_.string(), error ? error.message() : errno_text(errno)));
}

fs::path ObjectCache::path_of(std::string_view key) const {
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return folder_ / fmt::format("{:02x}", hash.high64 >> 56) /
         fmt::format("{:016x}{:016x}{}", hash.high64, hash.low64, kEnding);
}

bool ObjectCache::find(std::string_view key, std::span<std::byte> into) const {
  const fs::path path = path_of(key);
  const FileDescriptor file(open_for_reading(path.c_str()));
  if (!file.is_open()) return false;
  if (read_cache_entry(file.get(), key, into)) {
    ::futimens(file.get(), nullptr);  // used now
    return true;
  }
  ::unlink(path.c_str());
  return false;
}

void ObjectCache::store(std::string_view key, std::span<const std::byte> bytes) const {
  const fs::path path = path_of(key);
  const std::string head = cache_entry_head(key, bytes);
  const auto aside = reserve(path, head.size() + bytes.size());
  if (!aside) return;
  FileDescriptor file(::open(aside->c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  // Not flushed: what a crash of the machine leaves is noticed by its checksum.
  const bool written = file.is_open() && write_all(file.get(), 0, std::as_bytes(std::span(head))) &&
                       write_all(file.get(), head.size(), bytes) && file.close() == 0 &&
                       std::rename(aside->c_str(), path.c_str()) == 0;
  if (!written) ::unlink(aside->c_str());
}

// A temporary file of the entry's size, which counts from the moment that the lock is given back.
std::optional<fs::path> ObjectCache::reserve(const fs::path& path, std::uint64_t bytes) const {
  if (taken(bytes) > max_bytes_) return std::nullopt;
  static std::atomic<std::uint64_t> number{0};  // of this process; its id is in the name too
  const fs::path aside = fs::path(path).replace_extension() +=
      fmt::format("{}{:x}.{:x}", kTemporary, ::getpid(), number.fetch_add(1));
  Ledger ledger(folder_);
  if (!ledger.take()) return std::nullopt;
  if (::access(path.c_str(), F_OK) == 0) return std::nullopt;  // another was quicker
  std::optional<std::uint64_t> total = ledger.total();
  if (!total || *total + taken(bytes) > max_bytes_) {
    // A tenth more than needed, so that it need not be done for each entry.
    const std::uint64_t most = max_bytes_ - taken(bytes);
    total = make_room(std::min(most, total ? max_bytes_ / 10 * 9 : most));
    if (*total > most) {
      ledger.set_total(*total);
      return std::nullopt;
    }
  }
  int fd = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == ENOENT) {
    ::mkdir(aside.parent_path().c_str(), 0777);
    fd = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  const FileDescriptor file(fd);
  if (!file.is_open()) return std::nullopt;
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    ::unlink(aside.c_str());
    return std::nullopt;
  }
  ledger.set_total(*total + taken(bytes));
  return aside;
}

// Removes what was used longest ago, until all the rest takes `most` bytes; what it takes then.
std::uint64_t ObjectCache::make_room(std::uint64_t most) const {
  std::vector<Entry> entries;
  std::uint64_t total = scan(folder_, entries);
  std::ranges::sort(entries, {}, [](const Entry& entry) { return entry.used_ns; });
  for (const Entry& entry : entries) {
    if (total <= most) break;
    const std::string_view name(entry.name.data(), entry.name.size());
    const fs::path path =
        folder_ / fmt::format("{:02x}", entry.folder) / fmt::format("{}{}", name, kEnding);
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) total -= entry.bytes;
  }
  return total;
}

ObjectStorePtr with_cache(ObjectStorePtr store, const ObjectCacheOptions& options) {
  fs::path folder = options.folder;
  if (const char* const variable = std::getenv("PENSTOCK_OBJECT_CACHE");
      folder.empty() && variable) {
    folder = variable;
  }
  if (folder.empty()) return store;
  std::uint64_t max_bytes = options.max_bytes;
  const char* const variable = std::getenv("PENSTOCK_OBJECT_CACHE_MB");
  if (max_bytes == 0 && variable != nullptr && *variable != '\0') {
    const std::string_view text = variable;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), max_bytes);
    if (error != std::errc{} || stop != text.data() + text.size() || max_bytes == 0 ||
        max_bytes > (UINT64_MAX >> 20)) {
      throw Error(fmt::format(
          "expected PENSTOCK_OBJECT_CACHE_MB to be an integer of 1 or more, in MiB, found '{}'",
          text));
    }
    max_bytes <<= 20;
  }
  return std::make_shared<CachedStore>(
      std::move(store), ObjectCache(std::move(folder), max_bytes == 0 ? kDefaultBytes : max_bytes));
}

}  // namespace penstock::storage
