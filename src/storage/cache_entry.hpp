// storage/cache_entry: the files of the object cache: what they are called, and what is in them.
//
// An entry holds a range of one version of an object: a header, a text that says which range (its key), a checksum of each
// 64 KiB, and the bytes. Nothing that is read from the folder is trusted: an entry counts if its key is the one that was
// looked for and the checksums of what is read fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/storage/stored_file.hpp"

namespace penstock::storage {

/// Entries end where a multiple of this begins, so that what a read needs lies in few, known folders.
inline constexpr std::uint64_t kCacheRegion = std::uint64_t{64} << 20;

/// A range of an object, by hashes.
struct CachedRange {
  std::uint64_t object = 0;   ///< of its URL
  std::uint64_t version = 0;  ///< of its size and its ETag
  std::uint64_t folder = 0;   ///< of the URL up to the last slash
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] std::uint64_t end() const noexcept { return offset + bytes; }
  /// Which of the 256 sub-folders it lies in.
  [[nodiscard]] unsigned place() const noexcept;
  /// Of its file, without its ending.
  [[nodiscard]] std::string name() const;
};
/// The range with this name; none where a file has another one.
[[nodiscard]] std::optional<CachedRange> parse_cached_range(std::string_view name);

/// What is cached: one version of an object.
struct CachedObject {
  CachedObject(std::string its_url, const FileStamp& stamp);

  [[nodiscard]] CachedRange range(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return {object, version, folder, offset, bytes};
  }
  /// What an entry has as its key.
  [[nodiscard]] std::string key(const CachedRange& range) const;

  std::string url;
  FileStamp stamp;
  std::uint64_t object;
  std::uint64_t version;
  std::uint64_t folder;
};

/// What stands before the bytes in an entry's file, and how much that is.
[[nodiscard]] std::string cache_entry_head(std::string_view key, std::span<const std::byte> bytes);
[[nodiscard]] std::uint64_t cache_head_bytes(std::size_t key_bytes, std::uint64_t bytes) noexcept;

/// 0: it was read. An errno: reading failed. kDamaged: it is no entry with this key and so many bytes, or a checksum of what
/// is read does not fit.
inline constexpr int kDamaged = -1;
/// Reads a part of an entry that begins `skip` bytes after its first one and fills `into`.
[[nodiscard]] int read_cache_entry(int file, std::string_view key, std::uint64_t bytes,
                                   std::uint64_t skip, std::span<std::byte> into);

/// As pread() and pwrite(), until all is done; 0 or an errno, and kDamaged at the end of the file.
[[nodiscard]] int read_all(int file, std::uint64_t offset, std::span<std::byte> into) noexcept;
[[nodiscard]] int write_all(int file, std::uint64_t offset,
                            std::span<const std::byte> bytes) noexcept;

}  // namespace penstock::storage
