// storage/cached_store: a store that is read through a cache on a local disk, and counts what each of both answered.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <penstock/core/description.hpp>

#include "src/storage/object_cache.hpp"
#include "src/storage/object_store.hpp"

namespace penstock::storage {

class CachedStore final : public ObjectStore {
 public:
  /// Without a cache all is read from the store.
  CachedStore(ObjectStorePtr store, ObjectCachePtr cache)
      : store_(std::move(store)), cache_(std::move(cache)) {}

  void list(const ObjectName& prefix, bool recursive,
            const std::function<bool(ListedObject&&)>& each) const override {
    store_->list(prefix, recursive, each);
  }
  Result<FileStamp> stat(const ObjectName& name) const override { return store_->stat(name); }
  Result<void> check_ranges(const ObjectName& name) const override {
    return store_->check_ranges(name);
  }
  Result<void> read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                    std::span<std::byte> into) const override;

  /// The disk, if there is a cache, and the bucket.
  [[nodiscard]] std::vector<StorageTier> tiers() const;

 private:
  struct Count {
    std::atomic<std::uint64_t> reads{0};
    std::atomic<std::uint64_t> bytes{0};
  };
  ObjectStorePtr store_;
  ObjectCachePtr cache_;
  mutable Count disk_;
  mutable Count bucket_;
};

using CachedStorePtr = std::shared_ptr<const CachedStore>;

}  // namespace penstock::storage
