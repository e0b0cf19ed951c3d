#include "src/source/mds/unpacked_shards.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <penstock/core/random.hpp>

#include "src/core/interruption.hpp"
#include "src/core/json_fields.hpp"
#include "src/source/mds/unpack.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::source {

namespace {

namespace fs = std::filesystem;

// A file that is removed while it is open still takes its room, so open ones take no more than those in the folder.
constexpr std::uint64_t kMostOpenUnpacked = 32;
constexpr std::string_view kUnpackedEnding = ".unpacked";
constexpr std::string_view kUnpackedTemporary = ".unpacked.tmp.";

// One shard's right to be decompressed, among processes.
class UnpackLock {
 public:
  UnpackLock(const fs::path& folder, const std::string& name)
      : file_(::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) {
    constexpr std::uint64_t kMostOffset = std::uint64_t{1} << 40;
    lock_.l_whence = SEEK_SET;
    lock_.l_start = static_cast<off_t>(XXH3_64bits(name.data(), name.size()) % kMostOffset);
    lock_.l_len = 1;
  }
  // Waits, but not forever: the process that holds it may have been stopped, and two that decompress one shard do no harm.
  // Nor does it wait where the work is wanted no longer. Goes with the file, which no child of this process keeps across exec.
  void take_or_wait() noexcept {
    constexpr int kTries = 6000;
    for (int i = 0; file_.is_open() && i < kTries && !core::Interruption::is_requested(); ++i) {
      struct flock wanted = lock_;
      wanted.l_type = F_WRLCK;
      if (::fcntl(file_.get(), F_OFD_SETLK, &wanted) == 0) return;
      if (errno != EAGAIN && errno != EACCES && errno != EINTR) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

 private:
  storage::FileDescriptor file_;
  struct flock lock_ {};
};

// The hash that index.json has of a decompressed shard, if it is one that is computed here.
class MdsHash {
 public:
  explicit MdsHash(const MdsFile& file) {
    const auto hashes = core::Json::parse(file.hashes, nullptr, false);
    if (!hashes.is_object()) return;
    for (const char* name : {"xxh64", "xxh3_64", "xxh128", "xxh3_128"}) {
      const auto found = hashes.find(name);
      if (found == hashes.end() || !found->is_string()) continue;
      name_ = name;
      expected_ = found->get<std::string>();
      XXH64_reset(&old_, 0);
      XXH3_64bits_reset(&new_);
      XXH3_128bits_reset(&wide_);
      return;
    }
  }
  void add(std::span<const std::byte> bytes) noexcept {
    if (name_ == "xxh64") XXH64_update(&old_, bytes.data(), bytes.size());
    if (name_ == "xxh3_64") XXH3_64bits_update(&new_, bytes.data(), bytes.size());
    if (name_ == "xxh128" || name_ == "xxh3_128")
      XXH3_128bits_update(&wide_, bytes.data(), bytes.size());
  }
  [[nodiscard]] bool fits() const {
    if (name_.empty()) return true;
    if (name_ == "xxh64") return expected_ == fmt::format("{:016x}", XXH64_digest(&old_));
    if (name_ == "xxh3_64") return expected_ == fmt::format("{:016x}", XXH3_64bits_digest(&new_));
    const XXH128_hash_t hash = XXH3_128bits_digest(&wide_);
    return expected_ == fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }
  [[nodiscard]] std::string_view name() const noexcept { return name_; }

 private:
  std::string_view name_;
  std::string expected_;
  XXH64_state_t old_{};
  XXH3_state_t new_{};
  XXH3_state_t wide_{};
};

// A new file that is removed unless it is kept.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path)
      : path_(std::move(path)),
        file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (is_made_ && !is_kept_) ::unlink(path_.c_str());
  }
  [[nodiscard]] bool is_made() const noexcept { return is_made_; }
  [[nodiscard]] bool write(std::span<const std::byte> bytes) noexcept {
    while (!bytes.empty()) {
      const ssize_t put = ::write(file_.get(), bytes.data(), bytes.size());
      if (put < 0 && errno != EINTR) return false;
      if (put > 0) bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
    return true;
  }
  [[nodiscard]] bool flush() noexcept {
    return ::fdatasync(file_.get()) == 0 && file_.close() == 0;
  }
  [[nodiscard]] bool keep(const std::string& as) noexcept {
    is_kept_ = std::rename(path_.c_str(), as.c_str()) == 0;
    return is_kept_;
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  storage::FileDescriptor file_;
  bool is_made_ = file_.is_open();  // else it is another's, or not there
  bool is_kept_ = false;
};

Fault cannot_write(const std::string& path, int error) {
  Fault fault = storage::fault_of_errno(path, 0, "cannot write a decompressed shard", error);
  fault.reason +=
      "; set index_cache, or PENSTOCK_CACHE, to a folder with room, or decompress the "
      "shards beside their compressed files (unzstd)";
  return fault;
}

}  // namespace

MdsUnpackedShards::MdsUnpackedShards(std::vector<Packed> shards, fs::path folder,
                                     std::uint64_t most_bytes, storage::StoragePtr storage)
    : shards_(std::move(shards)),
      folder_(std::move(folder)),
      most_bytes_(most_bytes),
      storage_(std::move(storage)),
      open_(most_bytes_) {}

fs::path MdsUnpackedShards::path_of(std::size_t shard) const {
  const Packed& packed = shards_[shard];
  const bool is_object = storage::is_object_url(packed.path);
  const std::string place =
      is_object ? packed.path : fs::absolute(packed.path).lexically_normal().string();
  constexpr std::size_t kReadable = 100;  // the hash tells shards apart, the name tells people
  return folder_ / fmt::format("{}-{}{}",
                               hash_text(fmt::format("{}\n{} {} {}", place, packed.stamp.bytes,
                                                     packed.stamp.version, packed.raw.bytes)),
                               fs::path(packed.raw.name).filename().string().substr(0, kReadable),
                               kUnpackedEnding);
}

Result<void> MdsUnpackedShards::read(std::size_t shard, std::uint64_t offset,
                                     std::span<std::byte> into) const {
  const auto file = open_.get(
      {shard, 0}, [&] { return open_or_damage(shard); },
      [&](const OpenedOrDamage& opened) {
        if (!opened.value) return CachedBytes{bytes_of_fault(opened.fault)};
        return CachedBytes{
            std::max((*opened.value)->stamp().bytes, most_bytes_ / kMostOpenUnpacked)};
      });
  if (!file) return file.fault();
  if (!(*file)->value) return (*file)->fault;
  Result<void> result = (*(*file)->value)->read(offset, into);
  // ESTALE, or a file that was cut: this descriptor never reads again.
  if (!result) open_.forget({shard, 0}, *file);
  return result;
}

MdsUnpackedShards::Opened MdsUnpackedShards::find(const std::string& path,
                                                  std::uint64_t bytes) const {
  Result<storage::StoredFilePtr> file = storage_->open(path);
  if (!file) return std::move(file.fault());
  if ((*file)->stamp().bytes != bytes) return Fault{.reason = "another size", .file = path};
  // Used now. Its time of change stays what it is, by which those that read it know it.
  const std::array<struct timespec, 2> times{{{0, UTIME_NOW}, {0, UTIME_OMIT}}};
  ::futimens((*file)->descriptor(), times.data());
  return *file;
}

// What else is wrong may pass: there is no room on the disk, or the file cannot be read now.
Result<std::shared_ptr<const MdsUnpackedShards::OpenedOrDamage>> MdsUnpackedShards::open_or_damage(
    std::size_t shard) const {
  try {
    Opened opened = open(shard);
    if (!opened) return std::move(opened.fault());
    return decoded(std::move(opened));
  } catch (const MdsDamage& damage) {
    return decoded(Opened(damage.fault()));
  } catch (const DataError& error) {
    return error.fault();
  }
}

MdsUnpackedShards::Opened MdsUnpackedShards::open(std::size_t shard) const {
  const Packed& packed = shards_[shard];
  if (folder_.empty())
    return Fault{.reason =
                     "there is no cache folder for decompressed shards: set index_cache or "
                     "PENSTOCK_CACHE",
                 .file = packed.path};
  const std::string path = path_of(shard).string();
  if (Opened found = find(path, packed.raw.bytes)) return found;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  UnpackLock lock(folder_, path);
  lock.take_or_wait();
  if (Opened found = find(path, packed.raw.bytes)) return found;
  if (core::Interruption::is_requested())
    return Fault{.reason = core::Interruption::kReason, .file = packed.path};
  return unpack(packed, path);
}

MdsUnpackedShards::Opened MdsUnpackedShards::unpack(const Packed& shard,
                                                    const std::string& path) const {
  if (shard.raw.bytes > most_bytes_)
    return Fault{.reason = fmt::format("the shard has {} bytes when decompressed, more than "
                                       "unpacked_bytes = {}",
                                       shard.raw.bytes, most_bytes_),
                 .file = shard.path};
  auto packed = storage_->open(shard.path, shard.stamp);
  if (!packed) return std::move(packed.fault());
  make_room(shard.raw.bytes);
  // Drawn: processes of several containers have the same ids, and a killed one leaves its files.
  std::random_device draw;
  TemporaryFile out(fmt::format("{}.tmp.{:08x}{:08x}", path, draw(), draw()));
  if (!out.is_made()) return cannot_write(path, errno);
  const auto fail = [&](std::string reason) {
    throw MdsDamage(
        Fault{.reason = std::move(reason) + ": the shard is damaged, or is not that of index.json",
              .file = shard.path});
  };
  constexpr std::size_t kAtOnce = std::size_t{1} << 20;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kAtOnce);
  MdsUnpacker unpacker(**packed, shard.path);
  MdsHash hash(shard.raw);
  std::uint64_t bytes = 0;
  for (std::size_t got = kAtOnce; got == kAtOnce;) {
    got = unpacker.read({buffer.get(), kAtOnce});
    const std::span<const std::byte> piece(buffer.get(), got);
    bytes += got;
    if (bytes > shard.raw.bytes) break;
    hash.add(piece);
    if (!out.write(piece)) return cannot_write(path, errno);
  }
  if (bytes != shard.raw.bytes)
    fail(fmt::format("expected {} bytes when decompressed, as index.json says, found {}{}",
                     shard.raw.bytes, bytes > shard.raw.bytes ? "more than " : "",
                     std::min(bytes, shard.raw.bytes)));
  if (!hash.fits())
    fail(fmt::format("when decompressed it has another {} than index.json says", hash.name()));
  if (!out.flush()) return cannot_write(path, errno);
  // Before it has its name, under which another process may remove it at once.
  Opened opened = storage_->open(out.path());
  if (opened && !out.keep(path)) return cannot_write(path, errno);
  return opened;
}

// Also what dead processes left: an hour is more than any write takes.
void MdsUnpackedShards::make_room(std::uint64_t bytes) const {
  struct Entry {
    std::int64_t used_ns = 0;
    std::uint64_t bytes = 0;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = bytes;
  std::error_code error;
  fs::directory_iterator files(folder_, error);
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    const std::string name = files->path().filename().string();
    std::error_code ignored;
    const bool is_temporary = name.find(kUnpackedTemporary) != std::string::npos;
    if (!is_temporary && !name.ends_with(kUnpackedEnding)) continue;
    struct stat info {};
    if (::lstat(files->path().c_str(), &info) != 0) continue;
    Entry entry{std::int64_t{info.st_atim.tv_sec} * 1'000'000'000 + info.st_atim.tv_nsec,
                static_cast<std::uint64_t>(info.st_size), files->path()};
    constexpr std::int64_t kHour = 3600;
    const bool is_left = is_temporary && ::time(nullptr) - info.st_mtim.tv_sec > kHour;
    if (is_left && fs::remove(entry.path, ignored)) continue;
    total += entry.bytes;
    if (!is_temporary) entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &Entry::used_ns);
  for (const Entry& entry : entries) {
    if (total <= most_bytes_) return;
    std::error_code ignored;
    if (fs::remove(entry.path, ignored)) total -= entry.bytes;
  }
}

}  // namespace penstock::source
