// storage/cache_folder: what the processes that share a cache's folder agree on through the folder itself: how much it may
// hold, how much it holds, and what of it is in use.
//
//   00 … ff/NAME.object       an entry
//   00 … ff/NAME.tmp.PID.N    one that is being written; locked (flock) while its process lives
//   .ledger                   the budget, what the entries take, and when to look through them again; locked to change it
//   .readers/PID.N            the folders that an open cache reads from; locked while its process lives
//   .folders/HASH             an empty file for each of these folders; its time says when it was read last
//
// A process may end at any moment. What it reserved is in the ledger before its file is there, so that the entries never
// take more than the ledger says; the next look through the folder counts them again.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <penstock/storage/object_storage.hpp>

#include "src/storage/cache_entry.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::storage {

/// An empty file of the size that was asked for, which counts from then on. Locked, so that others see that it is written.
struct CacheReservation {
  std::filesystem::path path;
  int file = -1;
  std::uint64_t taken = 0;
};

/// Threads  any number at once, and any number of processes.
class CacheFolder {
 public:
  static constexpr std::uint64_t kDefaultBytes = std::uint64_t{64} << 30;
  /// How long an entry of a folder that no open cache reads stays in any case.
  static constexpr std::int64_t kIdleS = 3600;

  /// `max_bytes` becomes the folder's budget; 0: the one that it has.
  ///
  /// Errors  Error  the folder cannot be made, or not be written for another reason than a full or failing disk
  CacheFolder(std::filesystem::path path, std::uint64_t max_bytes, CachePolicy policy);
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  ~CacheFolder();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] CachePolicy policy() const noexcept { return policy_; }
  [[nodiscard]] std::filesystem::path place(unsigned number) const;
  [[nodiscard]] std::filesystem::path path_of(const CachedRange& range) const;

  /// Notes that something of this folder of objects is read.
  void note_use(std::uint64_t folder) const;
  /// Room for an entry, after `outdated` ones were removed where there was none, and, as the policy says, others. None where there is no room, where
  /// the entry is there, or where something goes wrong.
  [[nodiscard]] std::optional<CacheReservation> reserve(
      const CachedRange& range, std::uint64_t file_bytes,
      const std::vector<CachedRange>& outdated) const;
  /// The entry is complete: its file gets its name. Closes the file.
  [[nodiscard]] bool publish(const CacheReservation& reservation, const CachedRange& range) const;
  /// It was not written: gives its room back. Closes the file.
  void give_back(const CacheReservation& reservation) const;
  /// Removes a damaged entry.
  void remove(const CachedRange& range) const;

  /// Nothing is added from now on, after an error that says that the disk is full or fails. Other errors, such as too many
  /// open files, change nothing.
  void fail(const char* what, int error) const;
  [[nodiscard]] bool takes_more() const noexcept { return takes_more_; }
  /// Why nothing is added; empty where something may be.
  [[nodiscard]] std::string warning() const;

  /// What the ledger says.
  struct Holding {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
    std::uint64_t budget = 0;
  };
  [[nodiscard]] Holding holding() const;

 private:
  class Ledger;
  struct State;
  [[nodiscard]] bool make_room(State& state, std::uint64_t bytes) const;
  void touch(std::uint64_t folder) const;

  std::filesystem::path path_;
  CachePolicy policy_;
  std::uint64_t budget_;  // where the folder has none
  std::int64_t process_;  // that made it; a forked child is another
  FileDescriptor reader_;
  std::filesystem::path reader_path_;
  mutable std::atomic<bool> takes_more_{true};
  mutable std::atomic<bool> budget_is_set_{false};
  mutable std::atomic<std::int64_t> full_until_ns_{0};
  mutable std::atomic<std::int64_t> locked_until_ns_{0};
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::uint64_t, std::int64_t> used_;  // when each folder was noted
  mutable std::string warning_;
};

}  // namespace penstock::storage
