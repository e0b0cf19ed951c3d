#include "src/storage/cached_store.hpp"

namespace penstock::storage {

Result<void> CachedStore::read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                               std::span<std::byte> into) const {
  std::vector<ByteSpan> missing{{offset, offset + into.size()}};
  std::optional<CachedObject> object;
  // Of a file of a web server without a version, nothing tells it from the next one of its size.
  const bool may_keep = name.service != ObjectService::web || stamp.version != 0;
  if (cache_ && may_keep && !into.empty()) {
    object.emplace(name.url(), stamp);
    missing = cache_->find(*object, offset, into);
    if (missing.empty()) {
      ++disk_.reads;
      disk_.bytes += into.size();
      return {};
    }
    // A server that reads no ranges gives the whole file alone.
    if (!store_->check_ranges(name)) missing = {{offset, offset + into.size()}};
  }
  // One request, also for several parts: another one takes longer than some bytes more do.
  const std::uint64_t begin = missing.front().begin;
  const std::uint64_t end = missing.back().end;
  Result<void> result = store_->read(name, stamp, begin, into.subspan(begin - offset, end - begin));
  if (!result) return result;
  ++bucket_.reads;
  bucket_.bytes += end - begin;
  disk_.bytes += into.size() - (end - begin);
  if (!object) return {};
  for (const ByteSpan& part : missing)
    cache_->store(*object, part.begin, into.subspan(part.begin - offset, part.end - part.begin));
  return {};
}

std::vector<StorageTier> CachedStore::tiers() const {
  std::vector<StorageTier> all;
  if (cache_) {
    StorageTier disk = cache_->tier();
    disk.reads = disk_.reads;
    disk.bytes = disk_.bytes;
    all.push_back(std::move(disk));
  }
  const RequestCounts counts = store_->counts();
  all.push_back({.name = "bucket",
                 .reads = bucket_.reads,
                 .bytes = bucket_.bytes,
                 .requests = counts.requests,
                 .failures = counts.failures,
                 .hedges = counts.hedges});
  return all;
}

}  // namespace penstock::storage
