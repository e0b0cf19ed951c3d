// storage/local/file_lock: the exclusive right to make something of a file or a folder, among processes and threads.
#pragma once

#include <cerrno>
#include <chrono>
#include <thread>

#include <sys/file.h>

#include "src/core/interruption.hpp"

namespace penstock::storage {

/// It is the file or folder itself that is locked, by an open descriptor: no lock file is left in the data's folder, and none
/// need be made where nothing can be.
class FileLock {
 public:
  explicit FileLock(int file) noexcept : file_(file) {}
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  // Explicitly, since a forked child may still hold the descriptor.
  ~FileLock() {
    if (held_) ::flock(file_, LOCK_UN);
  }

  /// False while another holds it; true also where the file system has no such locks.
  [[nodiscard]] bool take() noexcept {
    held_ = held_ || ::flock(file_, LOCK_EX | LOCK_NB) == 0;
    return held_ || errno != EWOULDBLOCK;
  }
  /// Waits, but no longer than this: the process that holds it may have been stopped. Two that do the same work do no harm.
  ///
  /// Errors  Error  it is wanted no longer (core::Interruption)
  void take_or_wait(std::chrono::milliseconds most) {
    constexpr std::chrono::milliseconds kLook{10};
    for (auto waited = kLook; !take() && waited < most; waited += kLook) {
      core::require_wanted();
      std::this_thread::sleep_for(kLook);
    }
  }

 private:
  int file_;
  bool held_ = false;
};

}  // namespace penstock::storage
