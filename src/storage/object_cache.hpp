// storage/object_cache: parts of objects that were read, kept on a local disk.
//
// The folder: 256 sub-folders 00 to ff, in them an entry a file, named by a hash of its key; and
// .lock, which holds the sum of the entries' sizes and is locked (flock) while room is made. An
// entry is a header, the key and the bytes, written under another name and renamed. Nothing in
// the folder is trusted: an entry counts if its key is the one looked for and both checksums fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/storage/object_store.hpp"

namespace penstock::storage {

/// Threads  any number at once, and any number of processes.
class ObjectCache {
 public:
  /// Errors  Error                  the folder cannot be made, or not be written
  ///         std::invalid_argument  max_bytes is 0
  ObjectCache(std::filesystem::path folder, std::uint64_t max_bytes);

  /// Fills `into` with the bytes that were stored under this key; false if there are none that are
  /// whole and as long. A damaged entry is removed.
  [[nodiscard]] bool find(std::string_view key, std::span<std::byte> into) const;
  /// Keeps the bytes, if there is room for them and nothing goes wrong. Removes the entries that
  /// were used longest ago where they are too many.
  void store(std::string_view key, std::span<const std::byte> bytes) const;

  /// Where the entry of this key is, or would be.
  [[nodiscard]] std::filesystem::path path_of(std::string_view key) const;

 private:
  [[nodiscard]] std::optional<std::filesystem::path> reserve(const std::filesystem::path& path,
                                                             std::uint64_t bytes) const;
  [[nodiscard]] std::uint64_t make_room(std::uint64_t most) const;

  std::filesystem::path folder_;
  std::uint64_t max_bytes_;
};

/// Reads an entry from an open file: true if it is whole, of this key, and as long as `into`.
[[nodiscard]] bool read_cache_entry(int file, std::string_view key, std::span<std::byte> into);
/// What stands before the bytes in an entry's file.
[[nodiscard]] std::string cache_entry_head(std::string_view key, std::span<const std::byte> bytes);

/// Reads through the cache that the options or the environment describe; `store` itself without
/// one.
///
/// Errors  as ObjectCache; Error  $PENSTOCK_OBJECT_CACHE_MB is no number
[[nodiscard]] ObjectStorePtr with_cache(ObjectStorePtr store, const ObjectCacheOptions& options);

}  // namespace penstock::storage
