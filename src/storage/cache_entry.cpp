#include "src/storage/cache_entry.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace penstock::storage {

namespace {

constexpr std::array<char, 8> kEntryMagic{'\x89', 'P', 'S', 'R', 'N', 'G', '\r', '\n'};
constexpr std::uint64_t kCheckedBytes = 64 << 10;  // of which each has a checksum

struct EntryHeader {
  std::array<char, 8> magic = kEntryMagic;
  std::uint64_t key_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t head_hash = 0;  // XXH3 of all above, of the key and of the checksums
};
static_assert(std::has_unique_object_representations_v<EntryHeader> && sizeof(EntryHeader) == 32);

std::uint64_t checksums_of(std::uint64_t bytes) noexcept {
  return (bytes + kCheckedBytes - 1) / kCheckedBytes;
}

std::uint64_t hash_of_bytes(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

// `rest` is what follows the header: the key and the checksums.
std::uint64_t hash_of_head(const EntryHeader& header, std::string_view rest) noexcept {
  const auto seed = XXH3_64bits(&header, offsetof(EntryHeader, head_hash));
  return XXH3_64bits_withSeed(rest.data(), rest.size(), seed);
}

std::uint64_t hash_of_text(std::string_view text) noexcept {
  return XXH3_64bits(text.data(), text.size());
}

bool parse_hex(std::string_view text, std::uint64_t& number) noexcept {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return !text.empty() && error == std::errc{} && stop == text.data() + text.size();
}

}  // namespace

unsigned CachedRange::place() const noexcept {
  const std::array<std::uint64_t, 2> both{object, offset / kCacheRegion};
  return static_cast<unsigned>(XXH3_64bits(both.data(), sizeof both) >> 56);
}

std::string CachedRange::name() const {
  return fmt::format("{:016x}{:016x}{:016x}-{:x}-{:x}", object, version, folder, offset, bytes);
}

std::optional<CachedRange> parse_cached_range(std::string_view name) {
  constexpr std::size_t kDigits = 16;
  if (name.size() < 3 * kDigits + 4) return std::nullopt;
  CachedRange range;
  const std::size_t dash = name.find('-', 3 * kDigits + 1);
  if (dash == name.npos || name[3 * kDigits] != '-' ||
      !parse_hex(name.substr(0, kDigits), range.object) ||
      !parse_hex(name.substr(kDigits, kDigits), range.version) ||
      !parse_hex(name.substr(2 * kDigits, kDigits), range.folder) ||
      !parse_hex(name.substr(3 * kDigits + 1, dash - 3 * kDigits - 1), range.offset) ||
      !parse_hex(name.substr(dash + 1), range.bytes) || range.name() != name ||
      range.bytes > kCacheRegion - range.offset % kCacheRegion) {
    return std::nullopt;
  }
  return range;
}

CachedObject::CachedObject(std::string its_url, const FileStamp& its_stamp)
    : url(std::move(its_url)), stamp(its_stamp), object(hash_of_text(url)) {
  const std::array<std::uint64_t, 2> both{stamp.bytes, static_cast<std::uint64_t>(stamp.version)};
  version = XXH3_64bits(both.data(), sizeof both);
  folder = hash_of_text(std::string_view(url).substr(0, url.rfind('/') + 1));
}

std::string CachedObject::key(const CachedRange& range) const {
  return fmt::format("{}\n{} {:016x} {}", url, stamp.bytes,
                     static_cast<std::uint64_t>(stamp.version), range.offset);
}

std::uint64_t cache_head_bytes(std::size_t key_bytes, std::uint64_t bytes) noexcept {
  return sizeof(EntryHeader) + key_bytes + checksums_of(bytes) * sizeof(std::uint64_t);
}

std::string cache_entry_head(std::string_view key, std::span<const std::byte> bytes) {
  std::string rest(key);
  for (std::size_t at = 0; at < bytes.size(); at += kCheckedBytes) {
    const std::uint64_t hash =
        hash_of_bytes(bytes.subspan(at, std::min<std::size_t>(kCheckedBytes, bytes.size() - at)));
    rest.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  }
  EntryHeader header{.key_bytes = key.size(), .bytes = bytes.size()};
  header.head_hash = hash_of_head(header, rest);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + rest;
}

int read_cache_entry(int file, std::string_view key, std::uint64_t bytes, std::uint64_t skip,
                     std::span<std::byte> into) {
  struct stat info {};
  if (::fstat(file, &info) != 0) return errno;
  const std::uint64_t head_bytes = cache_head_bytes(key.size(), bytes);
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) != head_bytes + bytes ||
      skip > bytes || into.size() > bytes - skip) {
    return kDamaged;
  }
  std::string head(head_bytes, '\0');
  if (const int error = read_all(file, 0, std::as_writable_bytes(std::span(head)))) return error;
  EntryHeader header;
  std::memcpy(&header, head.data(), sizeof header);
  const std::string_view rest = std::string_view(head).substr(sizeof header);
  if (header.magic != kEntryMagic || header.key_bytes != key.size() || header.bytes != bytes ||
      !rest.starts_with(key) || header.head_hash != hash_of_head(header, rest)) {
    return kDamaged;
  }
  const auto fits = [&](std::uint64_t number, std::span<const std::byte> part) {
    std::uint64_t hash = 0;
    std::memcpy(&hash, rest.data() + key.size() + number * sizeof hash, sizeof hash);
    return hash == hash_of_bytes(part);
  };
  // What has a checksum of its own is read in its place, the ends of the others beside it.
  std::vector<std::byte> whole;
  for (std::uint64_t at = skip; at < skip + into.size();) {
    const std::uint64_t number = at / kCheckedBytes;
    const std::uint64_t begin = number * kCheckedBytes;
    const std::uint64_t end = std::min(begin + kCheckedBytes, bytes);
    const std::uint64_t stop = std::min(end, skip + into.size());
    std::span<std::byte> part = into.subspan(at - skip, stop - at);
    if (at != begin || stop != end) {
      whole.resize(end - begin);
      if (const int error = read_all(file, head_bytes + begin, whole)) return error;
      if (!fits(number, whole)) return kDamaged;
      std::memcpy(part.data(), whole.data() + (at - begin), part.size());
    } else {
      if (const int error = read_all(file, head_bytes + begin, part)) return error;
      if (!fits(number, part)) return kDamaged;
    }
    at = stop;
  }
  return 0;
}

int read_all(int file, std::uint64_t offset, std::span<std::byte> into) noexcept {
  for (std::size_t done = 0; done < into.size();) {
    const ssize_t got =
        ::pread(file, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got == 0) return kDamaged;
    if (got < 0 && errno != EINTR) return errno;
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return 0;
}

int write_all(int file, std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno != EINTR) return errno;
    if (put <= 0) continue;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return 0;
}

}  // namespace penstock::storage
