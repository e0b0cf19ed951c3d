// source/shards: which files make up a sharded data set, and where their indexes are kept.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/enum_names.hpp>

namespace penstock {

/// One or more of: the path of a shard; a folder, whose shards count in the order of their names'
/// bytes; a pattern of the shell: with braces, "train-{000000..000099}.tar" or "{train,val}.tar",
/// in the order as written, or with * ? [...], in the order of the paths' bytes. What is there
/// under the very name that was given is never taken for a pattern. Each may be s3://bucket/key.
///
///   source::webdataset("imagenet/train-{000000..001023}.tar");
///   source::webdataset({"a.tar", "b.tar"});
class ShardPaths {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  ShardPaths(std::string path) : paths_{std::move(path)} {}
  ShardPaths(const char* path) : paths_{path} {}
  ShardPaths(const std::filesystem::path& path) : paths_{path.string()} {}
  ShardPaths(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  ShardPaths(std::initializer_list<std::string> paths) : paths_(paths) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] std::span<const std::string> as_given() const noexcept { return paths_; }

 private:
  std::vector<std::string> paths_;
};

/// Where an index is looked for and kept.
enum class IndexPlace {
  beside,  ///< `<shard>.penstock-index`; where that cannot be written, and for objects, as `cache`
  cache,   ///< in a folder of their own
  memory,  ///< nowhere: each opening scans the shards, unless it finds an index in either place
};
template <>
struct EnumNames<IndexPlace> {
  static constexpr std::pair<IndexPlace, const char*> kNames[] = {
      {IndexPlace::beside, "beside"}, {IndexPlace::cache, "cache"}, {IndexPlace::memory, "memory"}};
};

/// How the index of a sharded data set is kept and made. None of it changes what records there are.
///
/// An index is made when a shard has none, or none that fits: it holds the shard's size and time of
/// change and checksums of itself, and a stale or damaged one is never used. It appears all at once
/// (written aside, flushed, renamed). Processes that open the same shards at the same time share
/// the work where the file system has locks, and each does all of it where not.
struct IndexOptions {
  IndexPlace place = IndexPlace::beside;
  /// The folder for IndexPlace::cache. Empty: $PENSTOCK_CACHE, else $XDG_CACHE_HOME/penstock, else
  /// ~/.cache/penstock, else penstock-UID in the temporary folder; `indexes` in it.
  std::filesystem::path cache{};
  /// Threads that read indexes and scan shards; 0 means one per hardware thread, but at least 8,
  /// since they mostly wait for storage.
  int threads = 0;
};

}  // namespace penstock
