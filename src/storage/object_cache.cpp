#include "src/storage/object_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <tuple>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

namespace penstock::storage {

namespace {

namespace fs = std::filesystem;

// After so many reads of entries that failed the disk is asked no more.
constexpr int kMostFailedReads = 8;
// With keep the time of an entry's use orders only what goes when the limit is lowered.
constexpr std::int64_t kUsedAnewS = 600;

auto order_of(const CachedRange& range) noexcept {
  return std::tuple(range.object, range.offset, range.version, range.bytes);
}
bool is_same(const CachedRange& one, const CachedRange& other) noexcept {
  return order_of(one) == order_of(other);
}

// The parts of [begin, end) that none of the ranges covers. They are in the order of their offsets.
std::vector<ByteSpan> gaps_of(ByteSpan wanted, std::span<const CachedRange> ranges) {
  std::vector<ByteSpan> gaps;
  std::uint64_t at = wanted.begin;
  for (const CachedRange& range : ranges) {
    if (range.end() <= at) continue;
    if (range.offset >= wanted.end) break;
    if (range.offset > at) gaps.push_back({at, range.offset});
    at = range.end();
  }
  if (at < wanted.end) gaps.push_back({at, wanted.end});
  return gaps;
}

}  // namespace

std::int64_t ObjectCache::now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool ObjectCache::read_entry(const CachedObject& object, const CachedRange& range,
                             std::uint64_t offset, std::span<std::byte> into) const {
  const fs::path path = folder_.path_of(range);
  const FileDescriptor file(open_for_reading(path.c_str()));
  int error = file.is_open() ? 0 : errno;
  if (error == ENOENT) return false;
  if (error == 0)
    error =
        read_cache_entry(file.get(), object.key(range), range.bytes, offset - range.offset, into);
  if (error == 0) {
    struct stat info {};
    struct timespec time {};
    ::clock_gettime(CLOCK_REALTIME, &time);
    if (folder_.policy() == CachePolicy::lru ||
        (::fstat(file.get(), &info) == 0 && time.tv_sec - info.st_mtim.tv_sec > kUsedAnewS))
      ::futimens(file.get(), nullptr);  // used now
    return true;
  }
  if (error == kDamaged) {
    folder_.remove(range);
  } else if (error != EMFILE && error != ENFILE && error != ENOMEM) {
    ++failed_reads_;
    folder_.fail("reading", error);
  }
  return false;
}

// Others add entries and remove some: the folder is listed again when it was changed, but for no more than a hundredth of the
// time. What is not known is read from the bucket.
void ObjectCache::list(Place& place, unsigned number, bool again) const {
  if (place.is_listed && (!again || listing_ns_ * 100 > now() - opened_ns_)) return;
  const fs::path path = folder_.place(number);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return;  // nothing is there yet
  const std::int64_t changed =
      std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (place.is_listed && changed == place.listed_ns) return;
  const std::int64_t begin = now();
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return;
  std::erase_if(place.ranges, [](const Known& known) { return known.is_written; });
  constexpr std::string_view kEnding = ".object";
  while (const dirent* const item = ::readdir(directory.get())) {
    const std::string_view name = item->d_name;
    if (!name.ends_with(kEnding)) continue;
    if (const auto range = parse_cached_range(name.substr(0, name.size() - kEnding.size())))
      place.ranges.push_back({*range, true});
  }
  std::ranges::sort(place.ranges, {}, [](const Known& known) { return order_of(known.range); });
  if (place.is_listed) listing_ns_ += now() - begin;
  place.is_listed = true;
  place.listed_ns = changed;
}

// What is known of any version of an object in the region that a range lies in.
std::span<const ObjectCache::Known> ObjectCache::in_region_of(const Place& place,
                                                              const CachedRange& range) {
  const auto region_of = [](const Known& known) {
    return std::pair(known.range.object, known.range.offset / kCacheRegion);
  };
  const auto found = std::ranges::equal_range(
      place.ranges, std::pair(range.object, range.offset / kCacheRegion), {}, region_of);
  return {found.begin(), found.end()};
}

// What is there of any version of the object, in the order of the offsets, and overlaps with what is wanted.
std::vector<CachedRange> ObjectCache::ranges_of(const CachedRange& wanted) const {
  Place& place = places_[wanted.place()];
  const std::lock_guard lock(place.mutex);
  list(place, wanted.place(), true);
  std::vector<CachedRange> found;
  for (const Known& known : in_region_of(place, wanted))
    if (known.is_written && known.range.version == wanted.version &&
        known.range.offset < wanted.end() && known.range.end() > wanted.offset)
      found.push_back(known.range);
  return found;
}

void ObjectCache::forget(const CachedRange& range) const {
  Place& place = places_[range.place()];
  const std::lock_guard lock(place.mutex);
  std::erase_if(place.ranges, [&](const Known& known) { return is_same(known.range, range); });
}

void ObjectCache::set_written(const CachedRange& range) const {
  Place& place = places_[range.place()];
  const std::lock_guard lock(place.mutex);
  for (Known& known : place.ranges)
    if (is_same(known.range, range)) known.is_written = true;
}

std::vector<ByteSpan> ObjectCache::find(const CachedObject& object, std::uint64_t offset,
                                        std::span<std::byte> into) const {
  std::vector<ByteSpan> missing;
  const std::uint64_t end = offset + into.size();
  if (failed_reads_ >= kMostFailedReads) return {{offset, end}};
  folder_.note_use(object.folder);
  for (std::uint64_t at = offset; at < end;) {
    const std::uint64_t stop = at + std::min(end - at, kCacheRegion - at % kCacheRegion);
    const CachedRange wanted = object.range(at, stop - at);
    const auto part = [&](std::uint64_t from, std::uint64_t to) {
      return into.subspan(from - offset, to - from);
    };
    if (!read_entry(object, wanted, at, part(at, stop))) {
      std::vector<CachedRange> there;
      std::uint64_t read_to = at;
      for (const CachedRange& range : ranges_of(wanted)) {
        const std::uint64_t from = std::max(range.offset, read_to);
        const std::uint64_t to = std::min(range.end(), stop);
        if (from >= to) continue;
        if (read_entry(object, range, from, part(from, to))) {
          there.push_back(object.range(from, to - from));
          read_to = to;
        } else {
          forget(range);
        }
      }
      std::ranges::copy(gaps_of({at, stop}, there), std::back_inserter(missing));
    }
    at = stop;
  }
  return missing;
}

void ObjectCache::store(const CachedObject& object, std::uint64_t offset,
                        std::span<const std::byte> bytes) const {
  const std::uint64_t end = offset + bytes.size();
  for (std::uint64_t at = offset; at < end && folder_.takes_more();) {
    const std::uint64_t stop = at + std::min(end - at, kCacheRegion - at % kCacheRegion);
    store_part(object, object.range(at, stop - at), bytes.subspan(at - offset, stop - at));
    at = stop;
  }
}

void ObjectCache::store_part(const CachedObject& object, const CachedRange& part,
                             std::span<const std::byte> bytes) const {
  // Threads of this process write no byte twice: what one of them writes is known to the others.
  std::vector<CachedRange> mine;
  std::vector<CachedRange> outdated;
  {
    Place& place = places_[part.place()];
    const std::lock_guard lock(place.mutex);
    list(place, part.place(), false);
    std::vector<CachedRange> there;
    for (const Known& known : in_region_of(place, part)) {
      if (known.range.version == part.version)
        there.push_back(known.range);
      else if (known.is_written)
        outdated.push_back(known.range);
    }
    for (const ByteSpan& gap : gaps_of({part.offset, part.end()}, there))
      mine.push_back(object.range(gap.begin, gap.end - gap.begin));
    for (const CachedRange& range : mine)
      place.ranges.insert(
          std::ranges::upper_bound(place.ranges, order_of(range), {},
                                   [](const Known& known) { return order_of(known.range); }),
          {range, false});
  }
  for (const CachedRange& range : mine) {
    const std::span<const std::byte> own = bytes.subspan(range.offset - part.offset, range.bytes);
    const std::string key = object.key(range);
    const auto room =
        folder_.reserve(range, cache_head_bytes(key.size(), range.bytes) + range.bytes, outdated);
    for (const CachedRange& old : std::exchange(outdated, {}))
      if (::access(folder_.path_of(old).c_str(), F_OK) != 0) forget(old);
    if (!room) {
      forget(range);
      continue;
    }
    const std::string head = cache_entry_head(key, own);
    int error = write_all(room->file, 0, std::as_bytes(std::span(head)));
    if (error == 0) error = write_all(room->file, head.size(), own);
    // Not flushed: what a crash of the machine leaves is noticed by its checksums.
    if (error != 0) {
      folder_.fail("writing", error);
      folder_.give_back(*room);
      forget(range);
    } else if (folder_.publish(*room, range)) {
      set_written(range);
    } else {
      forget(range);
    }
  }
}

StorageTier ObjectCache::tier() const {
  const CacheFolder::Holding holding = folder_.holding();
  return {.name = "disk",
          .folder = folder_.path().string(),
          .entries = holding.entries,
          .held_bytes = holding.bytes,
          .budget_bytes = holding.budget,
          .warning = folder_.warning()};
}

ObjectCachePtr open_cache(const ObjectCacheOptions& options) {
  const auto variable = [](const char* name) {
    const char* const text = std::getenv(name);
    return std::string_view(text == nullptr ? "" : text);
  };
  fs::path folder = options.folder;
  if (folder.empty()) folder = variable("PENSTOCK_OBJECT_CACHE");
  if (folder.empty()) return nullptr;
  std::uint64_t max_bytes = options.max_bytes;
  if (const std::string_view text = variable("PENSTOCK_OBJECT_CACHE_MB");
      max_bytes == 0 && !text.empty()) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), max_bytes);
    if (error != std::errc{} || stop != text.data() + text.size() || max_bytes == 0 ||
        max_bytes > (UINT64_MAX >> 20)) {
      throw Error(fmt::format(
          "expected PENSTOCK_OBJECT_CACHE_MB to be an integer of 1 or more, in MiB, found '{}'",
          text));
    }
    max_bytes <<= 20;
  }
  std::optional<CachePolicy> policy = options.policy;
  if (const std::string_view text = variable("PENSTOCK_OBJECT_CACHE_POLICY");
      !policy && !text.empty()) {
    policy = enum_of<CachePolicy>(text);
    if (!policy)
      throw Error(fmt::format(
          "expected PENSTOCK_OBJECT_CACHE_POLICY to be 'keep' or 'lru', found '{}'", text));
  }
  return std::make_shared<const ObjectCache>(std::move(folder), max_bytes,
                                             policy.value_or(CachePolicy::keep));
}

}  // namespace penstock::storage
