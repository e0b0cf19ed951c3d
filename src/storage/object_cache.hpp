// storage/object_cache: ranges of objects that were read, kept on a local disk, and what is known of them in memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/description.hpp>
#include <penstock/storage/object_storage.hpp>

#include "src/storage/cache_entry.hpp"
#include "src/storage/cache_folder.hpp"

namespace penstock::storage {

/// A part of an object: from `begin` up to `end`.
struct ByteSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

/// Threads  any number at once, and any number of processes.
class ObjectCache {
 public:
  /// Errors  as CacheFolder
  ObjectCache(std::filesystem::path folder, std::uint64_t max_bytes,
              CachePolicy policy = CachePolicy::keep)
      : folder_(std::move(folder), max_bytes, policy) {}

  /// Fills those parts of `into`, which begins at `offset` of the object, that are there. Returns the others, in their order:
  /// what they hold is then undefined. A damaged entry is removed.
  [[nodiscard]] std::vector<ByteSpan> find(const CachedObject& object, std::uint64_t offset,
                                           std::span<std::byte> into) const;
  /// Keeps those bytes that are not there yet, if there is room for them and nothing goes wrong. Entries of other versions of
  /// the object go.
  void store(const CachedObject& object, std::uint64_t offset,
             std::span<const std::byte> bytes) const;

  /// What the folder holds, and what is wrong with it.
  [[nodiscard]] StorageTier tier() const;
  /// Where the entry of just this range is, or would be.
  [[nodiscard]] std::filesystem::path path_of(const CachedRange& range) const {
    return folder_.path_of(range);
  }

 private:
  struct Known {
    CachedRange range;
    bool is_written = false;  // else it is just being written
  };
  // What is known of one of the sub-folders.
  struct Place {
    std::mutex mutex;
    bool is_listed = false;
    std::int64_t listed_ns = 0;  // its time of change then
    std::vector<Known> ranges;   // by object and offset
  };

  [[nodiscard]] bool read_entry(const CachedObject& object, const CachedRange& range,
                                std::uint64_t offset, std::span<std::byte> into) const;
  void list(Place& place, unsigned number, bool again) const;
  [[nodiscard]] static std::span<const Known> in_region_of(const Place& place,
                                                           const CachedRange& range);
  [[nodiscard]] std::vector<CachedRange> ranges_of(const CachedRange& wanted) const;
  void forget(const CachedRange& range) const;
  void set_written(const CachedRange& range) const;
  void store_part(const CachedObject& object, const CachedRange& part,
                  std::span<const std::byte> bytes) const;

  CacheFolder folder_;
  mutable std::array<Place, 256> places_;
  mutable std::atomic<std::int64_t> listing_ns_{0};  // spent on listing again
  std::int64_t opened_ns_ = now();
  mutable std::atomic<int> failed_reads_{0};

  [[nodiscard]] static std::int64_t now() noexcept;
};

using ObjectCachePtr = std::shared_ptr<const ObjectCache>;

/// The cache that the options or the environment describe; null without one.
///
/// Errors  as ObjectCache; Error  a variable of the environment has no such value
[[nodiscard]] ObjectCachePtr open_cache(const ObjectCacheOptions& options);

}  // namespace penstock::storage
