#include "src/source/shards/index_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/random.hpp>

#include "src/core/progress.hpp"
#include "src/source/in_parallel.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/storage/default_cache.hpp"
#include "src/storage/local/file.hpp"
#include "src/storage/local/file_lock.hpp"
#include "src/storage/retry.hpp"

namespace penstock::source {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".penstock-index.tmp.";

// The reason of a fault behind what was tried, which the message says itself.
std::string_view reason_of(const Fault& fault, std::string_view tried) {
  const std::string_view reason = fault.reason;
  return reason.starts_with(tried) ? reason.substr(tried.size()) : reason;
}

storage::FileStamp require_shard(const std::string& path, Result<storage::FileStamp> stamp) {
  if (stamp) return *stamp;
  throw Error(fmt::format(
      "cannot stat the shard {}: {}{}", path, reason_of(stamp.fault(), "cannot stat: "),
      storage::is_object_url(path) ? "" : "; check the path and the permissions of its folders"));
}

storage::StoredFilePtr require_open(const std::string& path, Result<storage::StoredFilePtr> file) {
  if (file) return *file;
  throw Error(fmt::format("cannot open the shard {}: {}; check its permissions", path,
                          reason_of(file.fault(), "cannot open: ")));
}

// Written aside, flushed and renamed, so that a reader finds all of it or none. The name is drawn,
// since process numbers of several machines may meet in one folder.
// What is there and is no regular file, but a link or a device, is left alone.
bool store(const fs::path& path, std::span<const std::byte> bytes) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return false;
  std::random_device draw;
  const fs::path aside = path.parent_path() / fmt::format("{}{}{:08x}{:08x}", path.stem().string(),
                                                          kTemporary, draw(), draw());
  const int error = storage::write_file(aside.c_str(), bytes, true);
  if (error == 0 && std::rename(aside.c_str(), path.c_str()) == 0) return true;
  std::error_code ignored;
  if (error != EEXIST) fs::remove(aside, ignored);
  return false;
}

// How many threads the options ask for.
std::size_t index_threads(const IndexOptions& options) {
  constexpr int kAtLeast = 8;
  return static_cast<std::size_t>(options.threads > 0 ? options.threads
                                                      : std::max(kAtLeast, default_threads()));
}

// How long another process may take to index a shard before this one does it, too.
constexpr std::chrono::minutes kLongestWait{1};

class IndexOpener {
 public:
  IndexOpener(std::span<const std::string> shards, const IndexRecipe& recipe,
              const IndexOptions& options, const storage::Storage& storage)
      : shards_(shards),
        recipe_(recipe),
        options_(options),
        storage_(storage),
        found_(shards.size()) {
    try {
      cache_ = (options.cache.empty() ? storage::default_cache() : fs::absolute(options.cache)) /
               "indexes";
    } catch (const fs::filesystem_error&) {
      // Without a cache folder, what is not beside its shard is in memory.
    }
  }

  std::vector<ShardIndex> run() {
    const std::size_t threads = index_threads(options_);
    core::ProgressCounter progress("indexing shards", "shards", shards_.size());
    const auto look = [&](std::size_t shard, bool wait) {
      open(shard, wait);
      if (found_[shard]) progress.add(1);
    };
    in_parallel(shards_.size(), threads, [&](std::size_t shard) { look(shard, false); });
    // Those that others were indexing; most are there by now.
    if (!std::ranges::all_of(found_, [](const auto& index) { return index.has_value(); })) {
      in_parallel(shards_.size(), threads, [&](std::size_t shard) {
        if (!found_[shard]) look(shard, true);
      });
    }
    remove_leftovers();
    std::vector<ShardIndex> indexes;
    indexes.reserve(found_.size());
    for (auto& index : found_) indexes.push_back(std::move(*index));
    return indexes;
  }

 private:
  void open(std::size_t shard, bool wait) {
    const std::string& path = shards_[shard];
    ShardStamp stamp = require_shard(path, storage_.stat_for_ranges(path));
    std::set<std::string> labels(recipe_.labels.begin(), recipe_.labels.end());
    if (find(shard, stamp, labels)) return;

    const storage::StoredFilePtr file = require_open(
        path, storage::is_object_url(path) ? storage_.open(path, stamp) : storage_.open(path));
    storage::FileLock lock(file->descriptor());
    if (wait) {
      lock.take_or_wait(kLongestWait);
    } else if (!lock.take()) {
      return;
    }
    stamp = file->stamp();
    // Another may have made it in the meantime; there is no lock of an object to wait for.
    if (!storage::is_object_url(path) && find(shard, stamp, labels)) return;

    const std::vector<std::string> names(labels.begin(), labels.end());
    ScannedShard scanned = recipe_.scan(*file, path, names);
    scanned.contents.found_with = recipe_.found_with;
    // An object is compared at each read.
    if (!storage::is_object_url(path) && require_shard(path, storage_.stat(path)) != stamp) {
      throw Error(
          fmt::format("the shard {} changes while it is being indexed; open it once it is "
                      "complete",
                      path));
    }
    const std::vector<std::byte> bytes =
        ShardIndex::encode(recipe_.kind, stamp, scanned.records, scanned.contents);
    // Nothing tells an object without a version from the next one of its size.
    const bool has_version = !storage::is_object_url(path) || stamp.version != 0;
    if (scanned.is_complete && has_version) keep(path, bytes);
    scanned = {};
    found_[shard] = ShardIndex::of_encoded(bytes);
  }

  // Whether there is an index that fits. One that lacks a label adds its own to those wanted, so
  // that two users of one shard do not undo each other's index.
  bool find(std::size_t shard, const ShardStamp& stamp, std::set<std::string>& labels) {
    const std::string& path = shards_[shard];
    // Of an object the cache's comes first: it costs no request.
    std::array<std::string, 2> places{beside(path), cached(path).string()};
    if (storage::is_object_url(path)) std::swap(places[0], places[1]);
    for (const std::string& place : places) {
      if (place.empty()) continue;
      std::optional<ShardIndex> index = load(path, place, stamp);
      if (!index || index->kind() != recipe_.kind || index->stamp() != stamp ||
          index->found_with() != recipe_.found_with)
        continue;
      if (std::ranges::all_of(recipe_.labels, [&](const std::string& name) {
            return index->labels(name) != nullptr;
          })) {
        found_[shard] = std::move(*index);
        return true;
      }
      // Not any number of them: each takes room for each record.
      constexpr std::size_t kMostLabels = 64;
      for (std::string& name : index->label_names())
        if (labels.size() < kMostLabels) labels.insert(std::move(name));
    }
    return false;
  }

  std::optional<ShardIndex> load(const std::string& shard, const std::string& place,
                                 const ShardStamp& stamp) {
    Result<storage::StoredFilePtr> file = storage_.open(place);
    if (!file) return std::nullopt;
    // Records take a byte at least, and a number or two in each of the columns that they have.
    constexpr std::uint64_t kMostAByte = 32;
    constexpr std::uint64_t kMostAlways = 1 << 20;
    const auto size = static_cast<std::size_t>((*file)->stamp().bytes);
    if (size > kMostAlways && (size - kMostAlways) / kMostAByte > stamp.bytes) return std::nullopt;
    auto bytes = std::make_unique_for_overwrite<std::byte[]>(size + ShardIndex::kPadding);
    const std::span<std::byte> all(bytes.get(), size);
    if (!storage::with_retries([&] { return (*file)->read(0, all); })) return std::nullopt;
    std::optional<ShardIndex> index = ShardIndex::decode(std::move(bytes), size);
    if (!storage::is_object_url(place) || !index || index->stamp().bytes != stamp.bytes)
      return index;
    // Made from a local copy of the shard. Kept, with the object's stamp, for the next time.
    bytes = std::make_unique_for_overwrite<std::byte[]>(size + ShardIndex::kPadding);
    const std::span<const std::byte> old = index->file_bytes();
    std::copy(old.begin(), old.end(), bytes.get());
    if (!ShardIndex::restamp({bytes.get(), size}, stamp)) return std::nullopt;
    keep(shard, {bytes.get(), size});
    return ShardIndex::decode(std::move(bytes), size);
  }

  void keep(const std::string& path, std::span<const std::byte> bytes) {
    if (options_.location == IndexLocation::memory) return;
    const bool beside_it =
        options_.location == IndexLocation::next_to_data && !storage::is_object_url(path);
    if (beside_it && store(beside(path), bytes)) {
      remember(fs::path(beside(path)).parent_path());
    } else if (!cache_.empty()) {
      std::error_code ignored;
      fs::create_directories(cache_, ignored);
      if (store(cached(path), bytes)) remember(cache_);
    }
  }

  std::string beside(const std::string& path) const { return index_path(recipe_.kind, path); }

  fs::path cached(const std::string& path) const {
    if (cache_.empty()) return {};
    const fs::path absolute =
        storage::is_object_url(path) ? fs::path(path) : fs::absolute(path).lexically_normal();
    constexpr std::size_t kReadable = 100;  // the hash tells shards apart, the name tells people
    return cache_ / fmt::format("{}-{}{}", hash_text(absolute.string()),
                                absolute.filename().string().substr(0, kReadable), kIndexEnding);
  }

  void remember(const fs::path& folder) {
    const std::lock_guard lock(mutex_);
    written_to_.insert(folder);
  }

  // What killed processes left where something was written now. An hour is more than any write
  // takes.
  void remove_leftovers() const noexcept {
    try {
      for (const fs::path& folder : written_to_) {
        for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder)) {
          if (entry.path().filename().string().find(kTemporary) == std::string::npos) continue;
          std::error_code ignored;
          const auto age = fs::file_time_type::clock::now() - entry.last_write_time(ignored);
          if (!ignored && age > std::chrono::hours(1)) fs::remove(entry.path(), ignored);
        }
      }
    } catch (const std::exception&) {
      // They take a little room and do no harm.
    }
  }

  std::span<const std::string> shards_;
  const IndexRecipe& recipe_;
  const IndexOptions& options_;
  const storage::Storage& storage_;
  fs::path cache_;
  std::vector<std::optional<ShardIndex>> found_;
  std::mutex mutex_;
  std::set<fs::path> written_to_;
};

}  // namespace

std::string index_path(ShardKind kind, const std::string& shard) {
  std::string path = shard + std::string(kIndexEnding);
  if (kind == ShardKind::parquet) path.insert(shard.rfind('/') + 1, 1, '.');
  return path;
}

std::size_t threads_in_shard(const IndexOptions& options, std::size_t shards) {
  return std::max<std::size_t>(index_threads(options) / std::max<std::size_t>(shards, 1), 1);
}

std::vector<ShardIndex> open_indexes(std::span<const std::string> shards, const IndexRecipe& recipe,
                                     const IndexOptions& options, const storage::Storage& storage) {
  if (options.threads < 0) {
    throw std::invalid_argument(fmt::format(
        "expected threads >= 0 for making an index, where 0 chooses, found {}", options.threads));
  }
  return IndexOpener(shards, recipe, options, storage).run();
}

}  // namespace penstock::source
