// A file of three parts: a head, a hash table of positions, and records one behind the other. A record is written whole
// before its position is published by one atomic store, so that no process ever sees half of one; what was reserved and
// never published is lost room and nothing else.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <penstock/core/error.hpp>
#include <penstock/jpeg/jpeg_index.hpp>

namespace penstock {

namespace {

constexpr std::array<char, 16> kMark{"pnstk shared 1\n"};
constexpr std::size_t kHeadBytes = 4096;
constexpr std::size_t kAlignment = 16;
constexpr std::size_t kPartBytes = std::size_t{1} << 18;
constexpr std::size_t kLeastBytes = std::size_t{64} << 10;
// Places for two million images in a GiB.
constexpr std::size_t kBytesAPlace = 512;
// Beyond so many places a table is as good as full.
constexpr std::size_t kMostProbes = 64;

struct Head {
  std::array<char, 16> mark;
  std::uint64_t file_bytes;
  std::uint64_t places;
  std::uint64_t records_at;
  std::atomic<std::uint64_t> used;   // of the file: where the next record begins
  std::atomic<std::uint64_t> count;  // of images
};
using Place = std::atomic<std::uint64_t>;  // a position in the file; 0: none
static_assert(Place::is_always_lock_free, "processes share it");
static_assert(sizeof(Head) <= kHeadBytes);

struct Record {
  std::uint64_t size;
  std::array<std::uint64_t, 2> hash;
  std::uint64_t bytes;     // of the index, which lie behind
  std::uint64_t checksum;  // of the index
};

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what, int error) {
  throw Error(
      fmt::format("shared JPEG index {}: {}: {}", path.string(), what, std::strerror(error)));
}

}  // namespace

class SharedJpegIndex::File {
 public:
  File(const std::filesystem::path& path, std::size_t max_bytes) {
    if (path.string().find("://") != std::string::npos)
      throw Error(fmt::format(
          "shared JPEG index {}: expected a local file, which processes can map", path.string()));
    if (max_bytes < kLeastBytes)
      throw std::invalid_argument(fmt::format(
          "shared JPEG index: expected at least {} bytes, found {}", kLeastBytes, max_bytes));
    // Two attempts: another process may make it between them.
    for (int attempt = 0; !open(path); ++attempt) {
      if (attempt == 2) fail(path, "cannot be opened", ENOENT);
      make(path, max_bytes);
    }
  }
  ~File() {
    ::munmap(memory_, bytes_);
    ::close(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] std::shared_ptr<const JpegIndex> find(const JpegKey& key) const {
    const Lookup found = look_up(key);
    if (!found.record) return nullptr;
    const std::span bytes(memory_ + found.before + sizeof(Record), found.record->bytes);
    if (checksum_of(bytes) != found.record->checksum) return nullptr;
    auto index = JpegIndex::from_bytes(bytes);
    return index ? std::make_shared<const JpegIndex>(*std::move(index)) : nullptr;
  }

  void put(const JpegKey& key, const JpegIndex& index) {
    const std::vector<std::byte> bytes = index.to_bytes();
    const std::uint64_t at = reserve(sizeof(Record) + bytes.size());
    if (at == 0) return;
    const Record record{key.size, key.hash, bytes.size(), checksum_of(bytes)};
    std::memcpy(memory_ + at, &record, sizeof record);
    std::memcpy(memory_ + at + sizeof record, bytes.data(), bytes.size());
    for (;;) {
      const Lookup found = look_up(key);
      if (found.place == nullptr) return;  // full
      std::uint64_t before = found.before;
      if (!has_room(reinterpret_cast<std::byte*>(found.place) - memory_, sizeof(Place))) return;
      if (!found.place->compare_exchange_strong(before, at, std::memory_order_release)) continue;
      if (!found.record) head().count.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }

  [[nodiscard]] std::size_t size() const { return head().count.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bytes() const {
    struct stat status {};
    constexpr std::size_t kBlock = 512;
    return ::fstat(file_, &status) == 0 ? static_cast<std::size_t>(status.st_blocks) * kBlock : 0;
  }

 private:
  /// Where a key is, or would be: no place where the table is full.
  struct Lookup {
    Place* place = nullptr;
    std::uint64_t before = 0;  // the record's position
    std::optional<Record> record{};
  };

  [[nodiscard]] Head& head() const { return *reinterpret_cast<Head*>(memory_); }
  [[nodiscard]] Place* places() const { return reinterpret_cast<Place*>(memory_ + kHeadBytes); }

  [[nodiscard]] Lookup look_up(const JpegKey& key) const {
    for (std::uint64_t probe = 0; probe < std::min<std::uint64_t>(kMostProbes, places_); ++probe) {
      Place& place = places()[(key.hash[0] + probe) % places_];
      const std::uint64_t at = place.load(std::memory_order_acquire);
      if (at == 0) return {&place};
      const std::optional<Record> record = record_at(at);
      if (record && record->size == key.size && record->hash == key.hash)
        return {&place, at, record};
    }
    return {};
  }

  // A copy, which stays as it was checked. None at a position that no record can have: the file was written by something else.
  [[nodiscard]] std::optional<Record> record_at(std::uint64_t at) const {
    if (at % kAlignment != 0 || at < records_at_ || at > bytes_ - sizeof(Record)) return {};
    Record record;
    std::memcpy(&record, memory_ + at, sizeof record);
    return record.bytes <= bytes_ - at - sizeof record ? std::optional(record) : std::nullopt;
  }

  // Room for `bytes`; 0: none.
  [[nodiscard]] std::uint64_t reserve(std::size_t bytes) {
    const std::uint64_t needed = aligned(bytes);
    if (head().used.load(std::memory_order_relaxed) + needed > bytes_) return 0;
    const std::uint64_t at = head().used.fetch_add(needed, std::memory_order_relaxed);
    if (at < records_at_ || at + needed > bytes_) return 0;
    return has_room(static_cast<std::ptrdiff_t>(at), needed) ? at : 0;
  }
  // On the disk: writing to a mapped page that it has no room for would end the process. Asked for once for each part.
  [[nodiscard]] bool has_room(std::ptrdiff_t at, std::uint64_t bytes) {
    const auto first = static_cast<std::uint64_t>(at) / kPartBytes;
    const std::uint64_t last = (static_cast<std::uint64_t>(at) + bytes - 1) / kPartBytes;
    for (std::uint64_t part = first; part <= last; ++part) {
      if (parts_[part].load(std::memory_order_relaxed)) continue;
      const std::uint64_t begin = part * kPartBytes;
      const std::uint64_t size = std::min<std::uint64_t>(kPartBytes, bytes_ - begin);
      if (::posix_fallocate(file_, static_cast<off_t>(begin), static_cast<off_t>(size)) != 0)
        return false;
      parts_[part].store(true, std::memory_order_relaxed);
    }
    return true;
  }

  // False where there is no such file.
  [[nodiscard]] bool open(const std::filesystem::path& path) {
    file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file_ < 0) {
      if (errno == ENOENT) return false;
      fail(path, "cannot be opened", errno);
    }
    try {
      map(path);
    } catch (...) {
      ::close(file_);
      throw;
    }
    return true;
  }

  // A process that may write to it can end the processes that have mapped it, by making it shorter.
  static void require_own(const std::filesystem::path& path, const struct stat& status) {
    const auto refuse = [&](const std::string& what) {
      throw Error(fmt::format("shared JPEG index {}: {}", path.string(), what));
    };
    if (!S_ISREG(status.st_mode))
      refuse("expected a regular file, found another kind: name another");
    if (status.st_uid != ::geteuid())
      refuse(fmt::format("the file is another user's ({}): name another", status.st_uid));
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      refuse(fmt::format("others may write to it: chmod go-w {}, or remove it", path.string()));
  }

  void map(const std::filesystem::path& path) {
    struct stat status {};
    if (::fstat(file_, &status) != 0) fail(path, "cannot be read", errno);
    require_own(path, status);
    Head found{};
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    if (::pread(file_, &found, sizeof found, 0) != static_cast<ssize_t>(sizeof found) ||
        found.mark != kMark || found.file_bytes != bytes || found.places == 0 ||
        found.records_at > bytes || found.records_at < kHeadBytes ||
        found.places > (found.records_at - kHeadBytes) / sizeof(Place))
      throw Error(
          fmt::format("shared JPEG index {}: the file is of another kind or version: remove it, or "
                      "name another",
                      path.string()));
    bytes_ = bytes;
    places_ = found.places;
    records_at_ = found.records_at;
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) fail(path, "cannot be mapped", errno);
    memory_ = static_cast<std::byte*>(memory);
    parts_ = std::vector<std::atomic<bool>>(bytes_ / kPartBytes + 1);
  }

  // Makes the file whole, under its name, or not at all; one that another process made is left alone.
  static void make(const std::filesystem::path& path, std::size_t max_bytes) {
    std::string name = path.string() + ".XXXXXX";
    const int file = ::mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) fail(path, "cannot be made", errno);
    const std::uint64_t places = std::bit_floor(max_bytes / kBytesAPlace);
    Head head{};
    head.mark = kMark;
    head.file_bytes = max_bytes / kAlignment * kAlignment;
    head.places = places;
    head.records_at = aligned(kHeadBytes + places * sizeof(Place));
    head.used = head.records_at;
    int error = 0;
    if (::ftruncate(file, static_cast<off_t>(head.file_bytes)) != 0) error = errno;
    if (error == 0) error = ::posix_fallocate(file, 0, static_cast<off_t>(kHeadBytes));
    if (error == 0 && ::pwrite(file, &head, sizeof head, 0) != static_cast<ssize_t>(sizeof head))
      error = errno;
    if (error == 0 && ::fchmod(file, 0644) != 0) error = errno;
    if (error == 0 && ::link(name.c_str(), path.c_str()) != 0 && errno != EEXIST) error = errno;
    ::close(file);
    ::unlink(name.c_str());
    if (error != 0) fail(path, "cannot be made", error);
  }

  int file_ = -1;
  std::byte* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t places_ = 0;
  std::uint64_t records_at_ = 0;
  std::vector<std::atomic<bool>> parts_;  // that have room on the disk
};

SharedJpegIndex::SharedJpegIndex(const std::filesystem::path& file, std::size_t max_bytes)
    : file_(std::make_unique<File>(file, max_bytes)) {}
SharedJpegIndex::~SharedJpegIndex() = default;

std::shared_ptr<const JpegIndex> SharedJpegIndex::find(const JpegKey& key) const {
  return file_->find(key);
}
void SharedJpegIndex::put(const JpegKey& key, JpegIndex index) { file_->put(key, index); }
std::size_t SharedJpegIndex::size() const { return file_->size(); }
std::size_t SharedJpegIndex::bytes() const { return file_->bytes(); }

}  // namespace penstock
