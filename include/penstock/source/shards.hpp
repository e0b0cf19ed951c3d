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

/// One or more of: the path of a shard; a folder, whose shards are taken in the order of their names' bytes; a pattern of
/// the shell: with braces, "train-{000000..000099}.tar" or "{train,val}.tar", in the order as written, or with * ? [...],
/// in the order of the paths' bytes. A file whose name is exactly what was given is taken, even where that looks like a
/// pattern. Each may be s3://bucket/key.
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
enum class IndexLocation {
  /// as `<file>.penstock-index` in the file's folder; in the cache where that cannot be written, and for objects in buckets
  next_to_data,
  cache,   ///< in the cache folder only
  memory,  ///< not kept: each opening scans the files, unless it finds an index in one of the two
};
template <>
struct EnumNames<IndexLocation> {
  static constexpr std::pair<IndexLocation, const char*> kNames[] = {
      {IndexLocation::next_to_data, "next_to_data"},
      {IndexLocation::cache, "cache"},
      {IndexLocation::memory, "memory"}};
};

/// How the indexes of a data set's files are kept and made. The records are the same with all of these options.
///
/// An index is made when a file has none, or one that does not fit: it has the file's size, time of change and checksums
/// of itself, and one that is stale or damaged is not used. It is written under another name, flushed and renamed.
/// Processes that open the same files at the same time share the work where the file system has locks; where it has none,
/// each of them does all of it.
struct IndexOptions {
  /// where an index is looked for and kept
  IndexLocation location = IndexLocation::next_to_data;
  /// the cache folder; by default $PENSTOCK_CACHE, else $XDG_CACHE_HOME/penstock, else ~/.cache/penstock, else penstock-UID
  /// in the temporary folder; the indexes are in `indexes` there
  std::filesystem::path cache{};
  /// threads that read indexes and scan files; 0: one for each hardware thread, but at least 8, since they mostly wait for
  /// storage
  int threads = 0;
};

template <class Visitor>
void visit_fields(Visitor& visit, IndexOptions& options) {
  visit("location", options.location);
  visit("cache", options.cache);
  visit("threads", options.threads);
}

}  // namespace penstock
