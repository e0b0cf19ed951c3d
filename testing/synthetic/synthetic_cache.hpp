// testing/synthetic/synthetic_cache: where generated sets are kept, and how one appears there all at
// once.
//
// A set is written to <cache>/<name>.tmp.<pid>.<n> and renamed to <cache>/<name>. The writer holds
// an flock on <cache>/.<name>.lock, which the kernel releases when the process dies, so a
// temporary folder whose lock is free is a dead process's.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "src/storage/local/file.hpp"

namespace penstock::testing {

/// The exclusive right to write one set, among the processes and threads of this machine.
///
/// Where the file system has no locks it is granted to everyone: the rename then decides.
class SetLock {
 public:
  /// Waits for the set's lock; calls `waiting`, which may throw, about ten times a second.
  ///
  /// Errors  Error  the lock file cannot be made
  SetLock(const std::filesystem::path& cache, std::string_view name,
          const std::function<void()>& waiting);
  SetLock(const SetLock&) = delete;
  SetLock& operator=(const SetLock&) = delete;
  ~SetLock();

  /// Whether it really excludes others.
  [[nodiscard]] bool is_exclusive() const noexcept { return exclusive_; }

 private:
  storage::FileDescriptor file_;
  bool exclusive_ = false;
};

/// Removes the temporary folders of processes that are gone. `own` is the set whose lock, held by
/// the caller, is not to be asked for; empty if the caller holds none.
void remove_leftovers(const std::filesystem::path& cache, std::string_view own) noexcept;

/// A folder that is removed unless it is published.
class TemporaryFolder {
 public:
  /// Errors  Error  it cannot be made
  TemporaryFolder(const std::filesystem::path& cache, std::string_view name);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Renames it to `target`; false if there is a folder of that name already.
  ///
  /// Errors  Error  it cannot be renamed
  [[nodiscard]] bool publish(const std::filesystem::path& target);

 private:
  std::filesystem::path path_;
};

/// "cannot <verb> <path>: <errno>; <what to do about it>", as an Error.
[[noreturn]] void throw_cache_error(std::string_view verb, const std::filesystem::path& path,
                                    int error);

}  // namespace penstock::testing
